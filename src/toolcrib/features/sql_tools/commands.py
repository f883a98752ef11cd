"""`crib sql`: inspect the databases that SQL tools can use, and write a first tool for a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.features.sql_tools.inspection import suggest_name, to_text, write_starter
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli import Answer, CommandError, ExitCode, say, say_json
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.group import answers, example, json_option, pass_opener, project_option
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from toolcrib.features.sql_tools.inspection import Table
    from toolcrib.toolkit.cli.group import Opener

MAX_SHOWN = 20


class DatabaseCrib(ProjectCrib, Protocol):
    """What these commands use of a crib."""

    def inspect_database(self, database: str) -> list[Table]:
        """The tables and columns of a database, under the guards of a tool over it."""


@click.group("sql", epilog=example("crib sql inspect shop.sqlite"))
def sql() -> None:
    """Inspect databases, and write tools for them."""


@sql.command("inspect", epilog=example("crib sql inspect shop.sqlite customers"))
@click.argument("database")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@project_option
@json_option
@pass_opener
def inspect(opener: Opener[DatabaseCrib], database: str, tables: tuple[str, ...], *, as_json: bool) -> int:
    """List the tables and columns of a database.

    DATABASE is what a tool would name: a path in the workspace, or '${secret:NAME}' for a URL of PostgreSQL.
    """
    with opener.open_local() as crib:
        found = _find(crib, database, tables)
    if as_json:
        say_json([_to_json(table) for table in found])
        return ExitCode.DONE
    rows = [
        (table.name, column.name, column.type or "any", _remark(table.kind, nullable=column.nullable, key=column.key))
        for table in found
        for column in table.columns
    ]
    say_table(("table", "column", "type", "remark"), rows)
    return ExitCode.DONE


@sql.command("new", epilog=example("crib sql new shop.sqlite customers"))
@click.argument("database")
@click.argument("table")
@click.option("--to", "path", type=click.Path(path_type=Path), help="The file to write; by default one in tools.")
@project_option
@answers("tool", "file")
@pass_opener
def new(opener: Opener[DatabaseCrib], database: str, table: str, *, path: Path | None) -> Answer:
    """Write a tool that finds rows of a table, to be changed to what is needed.

    DATABASE is what the tool names: a path in the workspace, or '${secret:NAME}' for a URL of PostgreSQL.
    """
    with opener.open_local() as crib:
        (found,) = _find(crib, database, (table,))
        root = crib.settings.root or Path()
    name = "find-" + suggest_name(found.name)
    target = path or root / "tools" / f"{name.replace('-', '_')}.yaml"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(to_text(write_starter(database, found, name)))
    except FileExistsError:
        message = f"{target} is there already; name another file with --to"
        raise CommandError(Kind.CONFLICT, message) from None
    except OSError as problem:
        raise CommandError(Kind.PERMANENT, f"{target}: {problem.strerror}; name another file with --to") from problem
    shown = target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target
    say(f"wrote {shown}; try it: crib call {name} rows=3")
    return Answer({"tool": name, "file": str(shown)})


def _find(crib: DatabaseCrib, database: str, names: tuple[str, ...]) -> list[Table]:
    tables = crib.inspect_database(database)
    known = {table.name: table for table in tables}
    for name in names:
        if name not in known:
            shown = ", ".join([*known][:MAX_SHOWN]) or "none"
            raise ToolError(Kind.NOT_FOUND, f"there is no table {name[:80]!r}; there are: {shown}")
    return [known[name] for name in names] if names else tables


def _remark(kind: str, *, nullable: bool, key: bool) -> str:
    words = [
        word
        for word, holds in (("key", key), ("not null", not nullable and not key), ("view", kind == "view"))
        if holds
    ]
    return ", ".join(words)


def _to_json(table: Table) -> dict[str, object]:
    columns = [
        {"name": column.name, "type": column.type, "nullable": column.nullable, "key": column.key}
        for column in table.columns
    ]
    return {"name": table.name, "kind": table.kind, "columns": columns}
