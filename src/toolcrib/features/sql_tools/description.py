"""Read the description of an SQL tool into a `Sql`; documents of bundles and scripts use different keys.

| in a bundle's `impl` | in a script's `config` | part of a Sql |
|---|---|---|
| `maxRows`, `maxBytes`, `timeoutMs` | `max_rows`, `max_bytes`, `timeout_ms` | `max_rows`, `max_bytes`, `timeout_ms` |
| `database`, `statement`, `choices`, `write`, `confirm`, `returns` | the same | the same |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.sql_tools.database import check_database, dialect_of
from toolcrib.features.sql_tools.statement import (
    MAX_TOGETHER,
    MAX_VARIANTS,
    Dialect,
    check_statement,
    count_variants,
    fill_choices,
    find_parameters,
)
from toolcrib.lib.document_format import sql_capabilities
from toolcrib.lib.http_syntax import read_hosts
from toolcrib.lib.names import near_misses
from toolcrib.lib.positions import show
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Rows, SideEffects, Spelling, Sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.document_fields import Fields

MAX_ROWS, MAX_ROWS_DEFAULT = 100_000, 1_000
MAX_BYTES, MAX_BYTES_DEFAULT = 10_000_000, 1_000_000
MAX_TIMEOUT_MS, TIMEOUT_MS = 600_000, 10_000
KEYS = ("database", "statement", "choices", "write", "confirm", "returns", "max_rows", "max_bytes", "timeout_ms")
RENAMED = {"max_rows": "maxRows", "max_bytes": "maxBytes", "timeout_ms": "timeoutMs"}
DOCUMENT_KEYS = tuple(RENAMED.get(key, key) for key in KEYS)


def capabilities_of(run: Sql) -> frozenset[str]:
    """The capabilities that are required to run the statement."""
    return sql_capabilities(run.database, write=run.write)


def side_effects_of(run: Sql) -> SideEffects:
    """The side effects of a call."""
    return SideEffects.WRITES if run.write else SideEffects.READ_ONLY


def read_statement(
    description: Fields, parameters: Mapping[str, object], spelling: Spelling, hosts: tuple[str, ...] | None = None
) -> Sql:
    """The statement of a description; problems are reported with the keys that the document uses."""
    in_document = spelling is Spelling.DOLLARS
    names = RENAMED if in_document else {}
    before = len(description.report.problems)
    description.require({"database": '"data/shop.sqlite"', "statement": '"SELECT … WHERE city = :city"'})
    write = description.switch("write") is True
    confirm = description.switch("confirm")
    if confirm is not None and not write:
        description.refuse("confirm", "is for statements that write; remove it")
    run = Sql(
        database=description.text("database"),
        statement=description.text("statement"),
        choices=_choices(description),
        write=write,
        confirm=confirm is not False,
        returns=description.word("returns", Rows, Rows.ROWS),
        max_rows=_whole(description, names, "max_rows", MAX_ROWS, MAX_ROWS_DEFAULT),
        max_bytes=_whole(description, names, "max_bytes", MAX_BYTES, MAX_BYTES_DEFAULT),
        timeout_ms=_whole(description, names, "timeout_ms", MAX_TIMEOUT_MS, TIMEOUT_MS),
        spelling=spelling,
        hosts=read_hosts(description) if in_document else hosts,
    )
    if len(description.report.problems) == before:
        for key, problem in problems_of(run, parameters):
            description.refuse(key, problem)
        for key, remark in _remarks(run, parameters):
            description.warn(key, remark)
    return run


def problems_of(run: Sql, parameters: Mapping[str, object]) -> list[tuple[str, str]]:
    """The problems of a statement, each with the key it is about; no database is opened."""
    if problem := check_database(run.database):
        return [("database", problem)]
    dialect = dialect_of(run.database)
    if run.hosts is not None and dialect is Dialect.SQLITE:
        return [("hosts", "a file of the workspace has no host; remove it")]
    if problems := _problems_of_choices(run, parameters):
        return [("choices", problem) for problem in problems]
    return [("statement", problem) for problem in _problems_of_text(run, parameters, dialect)]


def list_arguments(parameters: Mapping[str, object]) -> frozenset[str]:
    """The arguments that are declared as lists."""
    return frozenset(
        name for name, schema in declared_of(parameters).items() if isinstance(schema, dict) and _is_list(schema)
    )


def declared_of(parameters: Mapping[str, object]) -> Mapping[str, object]:
    """The declared arguments, each with its schema."""
    properties = parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _is_list(schema: Mapping[str, object]) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _whole(description: Fields, names: Mapping[str, str], key: str, at_most: int, default: int) -> int:
    return description.whole(names.get(key, key), at_least=1, at_most=at_most, default=default)


def _choices(description: Fields) -> dict[str, dict[str, str]]:
    written = description.part("choices")
    return {} if written is None else {name: written.texts(name) for name in written.values}


def _problems_of_choices(run: Sql, parameters: Mapping[str, object]) -> list[str]:
    problems = []
    declared = declared_of(parameters)
    for name, pieces in run.choices.items():
        schema = declared.get(name)
        values = schema.get("enum") if isinstance(schema, dict) else None
        if not pieces:
            problems.append(f"{name[:40]} offers nothing; write its values, each with the SQL that it stands for")
        elif not isinstance(values, list) or set(map(str, values)) != pieces.keys():
            wanted = show([*pieces])
            problems.append(
                f'{name[:40]} is not an argument with exactly these values; declare it with "enum": {wanted}'
            )
        elif not _is_certain(name, parameters):
            problems.append(f"{name[:40]} may be left out; list it in required, or give it a default")
    count = count_variants(run.choices)
    longest = len(run.statement) + sum(max(map(len, pieces.values()), default=0) for pieces in run.choices.values())
    if not problems and count > MAX_VARIANTS:
        problems.append(f"make {count} statements, the limit is {MAX_VARIANTS}; offer fewer")
    elif not problems and count > 1 and count * longest > MAX_TOGETHER:
        problems.append(
            f"make statements of more than {MAX_TOGETHER} characters together; shorten them, or offer fewer"
        )
    return problems


def _is_certain(name: str, parameters: Mapping[str, object]) -> bool:
    """Whether every call has a value for the argument."""
    required, schema = parameters.get("required"), declared_of(parameters).get(name)
    return (isinstance(required, list) and name in required) or (isinstance(schema, dict) and "default" in schema)


def _problems_of_text(run: Sql, parameters: Mapping[str, object], dialect: Dialect) -> list[str]:
    """The problems of the statements that the choices make, and parameters without an argument."""
    declared = declared_of(parameters)
    try:
        for text in fill_choices(run.statement, dialect, run.choices).values():
            if problem := check_statement(text, dialect, write=run.write):
                return [problem]
    except ToolError as problem:
        return [problem.message]
    unknown = [name for name in _used_names(run, dialect) if name not in declared]
    return [f":{name[:40]} is not an argument; {_cure(name, declared)}" for name in unknown]


def _used_names(run: Sql, dialect: Dialect) -> list[str]:
    """The arguments that the statement uses, choices among them."""
    texts = [run.statement, *fill_choices(run.statement, dialect, run.choices).values()]
    return [*dict.fromkeys(name for text in texts for name in find_parameters(text, dialect))]


def _cure(name: str, declared: Mapping[str, object]) -> str:
    meant = dict(near_misses([name], declared)).get(name, "")
    return f"did you mean :{meant}?" if meant else f"declare {name}, or write the name of one that is declared"


def _remarks(run: Sql, parameters: Mapping[str, object]) -> list[tuple[str, str]]:
    """Warnings about arguments that the statement does not use."""
    used = _used_names(run, dialect_of(run.database))
    unused = [name[:40] for name in declared_of(parameters) if name not in used]
    return [("statement", f"does not use the argument {name}; write :{name}, or remove it") for name in unused]
