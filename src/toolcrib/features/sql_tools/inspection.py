"""Inspect databases: list tables and columns, write a first tool for a table, and check statements without running them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.sql_tools.database import dialect_of
from toolcrib.features.sql_tools.rows import Collected
from toolcrib.features.sql_tools.statement import Dialect, Statement
from toolcrib.infra.plain_code import run_async
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Sql, Tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from toolcrib.core.resources import Resources
    from toolcrib.features.sql_tools.runner import BoundSql, SqlRunner

SECONDS = 10.0
MAX_COLUMNS, MAX_BYTES = 20_000, 5_000_000
MAX_FILTERS = 5
LIMIT_PARAMETER = {
    "type": "integer",
    "required": False,
    "default": 20,
    "minimum": 1,
    "maximum": 1_000,
    "description": "How many rows to return at most.",
}
SQLITE_COLUMNS = """
    SELECT t.name AS "table", t.type AS kind, c.name AS "column", c.type AS type, c."notnull" = 0 AND c.pk = 0 AS nullable, c.pk > 0 AS key
    FROM pragma_table_list AS t JOIN pragma_table_xinfo(t.name) AS c
    WHERE t.schema = 'main' AND t.type IN ('table', 'view', 'virtual') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND c.hidden <> 1
    ORDER BY t.name, c.cid
"""
POSTGRES_COLUMNS = """
    SELECT CASE n.nspname WHEN 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END AS "table",
        CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END AS kind, a.attname AS "column",
        format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable, coalesce(a.attnum = ANY(k.conkey), false) AS key
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
        LEFT JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'p'
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
        AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY 1, a.attnum
"""
# Prefixes of type names, each with the JSON type of its values; any other type may have any value. SQLite keeps type names as
# written, and stores dates, booleans and decimals in the form in which they were inserted.
TYPES = {
    Dialect.SQLITE: {
        **dict.fromkeys(("int", "bigint", "smallint"), "integer"),
        **dict.fromkeys(("real", "double", "float"), "number"),
        **dict.fromkeys(("text", "varchar", "char", "clob", "blob"), "string"),
    },
    Dialect.POSTGRESQL: {
        **dict.fromkeys(("integer", "bigint", "smallint"), "integer"),
        **dict.fromkeys(("real", "double", "interval"), "number"),
        **dict.fromkeys(("text", "char", "uuid", "numeric", "date", "timestamp", "time", "bytea", "inet"), "string"),
        "boolean": "boolean",
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of a table; `key` says whether it is part of the primary key."""

    name: str
    type: str
    nullable: bool
    key: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table or a view, with its columns."""

    name: str
    kind: str
    columns: tuple[Column, ...]


class Databases:
    """Inspects the databases that SQL tools can use, for authors of such tools."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def tables(self, database: str) -> list[Table]:
        """The tables of a database, under the same guards as a tool that uses it."""
        runner, bound = self._bind(_trial(database))
        collected = Collected(max_rows=MAX_COLUMNS, max_bytes=MAX_BYTES)
        until = time.monotonic() + SECONDS
        try:
            if bound.dialect is Dialect.SQLITE:
                place = bound.find_file()._replace(inspects=True)
                async with _in_time():
                    await runner.sqlite.run(place, Statement(SQLITE_COLUMNS, ()), (), collected, deadline=until)
            else:
                statement = Statement(POSTGRES_COLUMNS.strip(), ())
                server = bound.find_server()
                await runner.postgres.run(server, bound.hosts, statement, (), collected, write=False, deadline=until)
        except ToolError as problem:
            raise bound.masking.hide_error(problem) from None
        return _group(collected)

    async def problems(self, tool: Tool) -> list[str]:
        """The errors that the database reports for the statements of a tool, without running them."""
        runner, bound = self._bind(tool)
        try:
            for statement in bound.statements.values():
                await _try(runner, bound, statement)
        except ToolError as problem:
            told = bound.tell_all(problem)
            return [*(told.lacks or (told.message,))]
        finally:
            await runner.postgres.close()
        return []

    def _bind(self, tool: Tool) -> tuple[SqlRunner, BoundSql]:
        bound = self._resources.runners.get(Sql.kind).bind(tool)
        return bound.runner, bound


async def _try(runner: SqlRunner, bound: BoundSql, statement: Statement) -> None:
    """Let the database parse a statement, which also finds unknown tables and columns."""
    if bound.dialect is Dialect.POSTGRESQL:
        await runner.postgres.describe(bound.find_server(), bound.hosts, statement.text, seconds=SECONDS)
        return
    async with _in_time():
        await runner.sqlite.explain(bound.find_file(), statement, deadline=time.monotonic() + SECONDS)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Give up on a database that another program has locked for long."""
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError:
        message = f"the database did not answer within {SECONDS:g} s; see which program has locked it, and try again"
        raise ToolError(Kind.TRANSIENT, message, retryable=True) from None


def find_problems(resources: Resources, tool: Tool) -> list[str]:
    """The problems that the database finds in a tool's statement, for `crib check`."""
    if not isinstance(tool.run, Sql):
        return []
    # A process of SQLite ends with this event loop; others may serve calls.
    return run_async(Databases(resources).problems(tool))


def _trial(database: str) -> Tool:
    return Tool(name="inspect", description="", parameters={}, run=Sql(database=database, statement="SELECT 1"))


def _group(collected: Collected) -> list[Table]:
    columns: dict[tuple[str, str], list[Column]] = {}
    for row in collected.rows:
        column = Column(
            name=str(row["column"]), type=str(row["type"]), nullable=bool(row["nullable"]), key=bool(row["key"])
        )
        columns.setdefault((str(row["table"]), str(row["kind"])), []).append(column)
    return [Table(name=name, kind=kind, columns=tuple(found)) for (name, kind), found in columns.items()]


def column_schema(column: Column, dialect: Dialect) -> dict[str, object]:
    """The JSON Schema of a column's values, as far as its type determines it."""
    name = column.type.lower()
    types = TYPES[dialect].items()
    kind = "array" if name.endswith("[]") else next((kind for start, kind in types if name.startswith(start)), "")
    if not kind:
        return {}
    return {"type": [kind, "null"] if column.nullable else kind}


def write_starter(database: str, table: Table, name: str) -> dict[str, object]:
    """The document of a tool that finds rows of a table by its first columns; a script as YAML or JSON holds it."""
    dialect = dialect_of(database)
    filters = [column for column in table.columns if not column.type.endswith("[]")][:MAX_FILTERS]
    arguments = {column.name: f"by_{index}" for index, column in enumerate(filters, 1)}
    arguments |= {column.name: column.name for column in filters if column.name.isidentifier()}
    conditions = [f"(:{arguments[c.name]} IS NULL OR {_quote(c.name)} = :{arguments[c.name]})" for c in filters]
    limit = "rows" if "rows" not in arguments.values() else "row_limit"
    order = [_quote(column.name) for column in table.columns if column.key] or ["1"]
    statement = (
        f"SELECT {', '.join(_quote(column.name) for column in table.columns)}\n"
        f"FROM {'.'.join(map(_quote, table.name.split('.', 1)))}\n"
        + (f"WHERE {f'{chr(10)}  AND '.join(conditions)}\n" if conditions else "")
        + f"ORDER BY {', '.join(order)}\nLIMIT :{limit}\n"
    )
    row = {
        "type": "object",
        "properties": {column.name: column_schema(column, dialect) for column in table.columns},
        "required": [column.name for column in table.columns],
        "additionalProperties": False,
    }
    return {
        "tool_id": name,
        "tool_type": "sql",
        "version": "1.0.0",
        "description": f"Find rows of {table.name}, by any of its columns that a call gives",
        "executor_id": "sql_client",
        "config": {"database": database, "statement": statement, "returns": "list"},
        "parameters": [*_parameters(filters, arguments, dialect), {"name": limit, **LIMIT_PARAMETER}],
        "output_schema": {"type": "array", "items": row},
    }


def _parameters(filters: Sequence[Column], arguments: Mapping[str, str], dialect: Dialect) -> list[dict[str, object]]:
    written: list[dict[str, object]] = []
    for column in filters:
        kind = column_schema(column, dialect).get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        text = f"Only rows with this {column.name} ({column.type or 'any type'})."
        written.append({"name": arguments[column.name], "type": kind, "required": False, "description": text})
    return written


def _quote(name: str) -> str:
    """A name as both databases accept it, quoted if necessary."""
    if "\0" in name:
        raise ToolError(Kind.VALIDATION, f"{name[:40]!r} cannot be the name of a column")
    return name if name.isidentifier() and name.islower() and name.isascii() and name not in RESERVED else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# Reserved words of either database, which need quotes; a word too many only causes a superfluous quote.
RESERVED = frozenset(
    [
        "all",
        "and",
        "any",
        "as",
        "asc",
        "between",
        "by",
        "case",
        "check",
        "collate",
        "column",
        "constraint",
        "create",
        "cross",
        "current_date",
        "default",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "false",
        "fetch",
        "for",
        "foreign",
        "from",
        "full",
        "grant",
        "group",
        "having",
        "in",
        "index",
        "inner",
        "intersect",
        "into",
        "is",
        "join",
        "key",
        "left",
        "like",
        "limit",
        "natural",
        "not",
        "null",
        "of",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "primary",
        "references",
        "right",
        "select",
        "set",
        "table",
        "then",
        "to",
        "true",
        "union",
        "unique",
        "update",
        "user",
        "using",
        "values",
        "view",
        "when",
        "where",
        "window",
        "with",
    ]
)


def suggest_name(table: str) -> str:
    """The name of a table as that of a tool."""
    return re.sub(r"[^a-z0-9]+", "-", table.lower()).strip("-")[:40].strip("-") or "rows"


def to_text(document: Mapping[str, object]) -> str:
    """The document as YAML: JSON values are YAML, and the statement is written line by line."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {json.dumps(item, ensure_ascii=False)}" for item in value)]
        elif key == "config" and isinstance(value, dict):
            lines += [f"{key}:", *(line for part in value.items() for line in _config_lines(*part))]
        else:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _config_lines(key: str, value: object) -> list[str]:
    if key != "statement":
        return [f"  {key}: {json.dumps(value, ensure_ascii=False)}"]
    return [f"  {key}: |", *(f"    {line}" for line in str(value).splitlines())]
