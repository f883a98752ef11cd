"""`crib sql` and `crib check`: what a database holds, a first tool over it, and what it says against a statement."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import make_shop

from toolcrib import Crib
from toolcrib.features.sql_tools.inspection import Column, Table, to_text, write_starter

HOSTILE_NAME = 'order "by"; DROP TABLE customers --\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toolcrib.toml").write_text("")
    make_shop(tmp_path / "shop.sqlite")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_tool(project: Path, statement: str, database: str = "shop.sqlite") -> None:
    (project / "tools").mkdir(exist_ok=True)
    document = {
        "tool_id": "ask",
        "tool_type": "sql",
        "version": "1.0.0",
        "description": "Ask",
        "executor_id": "sql_client",
        "config": {"database": database, "statement": statement},
    }
    (project / "tools" / "ask.json").write_text(json.dumps(document))


def test_tables_and_columns_are_listed(project: Path, cli: Callable[..., Any]) -> None:
    done = cli("sql", "inspect", "shop.sqlite", "customers", "orders")
    assert [line.split() for line in done.out.splitlines()] == [
        ["TABLE", "COLUMN", "TYPE", "REMARK"],
        ["customers", "id", "INTEGER", "key"],
        ["customers", "name", "TEXT", "not", "null"],
        ["customers", "city", "TEXT"],
        ["customers", "credit", "REAL"],
        ["customers", "photo", "BLOB"],
        ["orders", "number", "INTEGER", "key"],
        ["orders", "customer", "INTEGER", "not", "null"],
        ["orders", "total", "TEXT"],
    ]
    found = json.loads(cli("sql", "inspect", "shop.sqlite", "--json").out)
    assert [table["name"] for table in found] == ["customers", "names", "orders"]
    missing = cli("sql", "inspect", "shop.sqlite", "nothing")
    assert (missing.code, "there is no table 'nothing'; there are: customers, names, orders" in missing.err) == (
        1,
        True,
    )


def test_inspection_is_bound_to_the_workspace(project: Path, cli: Callable[..., Any]) -> None:
    for database in (
        "../other.sqlite",
        "/etc/passwd",
        ".toolcrib/index.sqlite3",
        "postgresql://me@db.example.com/shop",
    ):
        done = cli("sql", "inspect", database)
        assert (done.code, done.out) == (1, "")


def test_a_first_tool_over_a_table_can_be_called_at_once(project: Path, cli: Callable[..., Any]) -> None:
    assert cli("sql", "new", "shop.sqlite", "customers").code == 0
    with Crib(project) as crib:
        assert crib.problems == []
        tool = crib.find("find-customers").tool
        assert crib.problems_of(tool) == []
        rows: Any = crib.call_sync("find-customers", city="Oslo", rows=1).value
        assert [row["name"] for row in rows] == ["Ada"]
    again = cli("sql", "new", "shop.sqlite", "customers")
    assert (again.code, "is there already; name another file with --to" in again.err) == (1, True)


def test_names_of_a_hostile_database_are_quoted(project: Path) -> None:
    database = sqlite3.connect(project / "shop.sqlite")
    quoted = '"' + HOSTILE_NAME.replace('"', '""') + '"'
    database.execute(f"CREATE TABLE {quoted} ({quoted} TEXT, rows INTEGER, 'select' BLOB)")
    database.execute(f"INSERT INTO {quoted} VALUES ('a', 1, NULL)")
    database.commit()
    database.close()
    with Crib(project) as crib:
        (table,) = [table for table in crib.inspect_database("shop.sqlite") if table.name == HOSTILE_NAME]
        document = to_text(write_starter("shop.sqlite", table, "find-hostile"))
        (project / "tools").mkdir()
        (project / "tools" / "find_hostile.yaml").write_text(document)
        assert crib.problems == []
        result = crib.call_sync("find-hostile", rows=1, row_limit=5)
        assert result.unwrap() == [{HOSTILE_NAME: "a", "rows": 1, "select": None}]


def test_a_table_of_a_schema_is_named_with_it() -> None:
    columns = (
        Column(name="Id", type="integer", nullable=False, key=True),
        Column(name="tags", type="text[]", nullable=True, key=False),
    )
    document: Any = write_starter("${secret:SHOP}", Table(name="sales.Orders", kind="table", columns=columns), "a")
    assert document["config"]["statement"].startswith(
        'SELECT "Id", tags\nFROM sales."Orders"\nWHERE (:Id IS NULL OR "Id" = :Id)'
    )
    items = document["output_schema"]["items"]["properties"]
    assert items == {"Id": {"type": "integer"}, "tags": {"type": ["array", "null"]}}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT name FROM custmers", "SQLite: no such table: custmers"),
        ("SELECT nam FROM customers", "SQLite: no such column: nam"),
        ("SELECT FROM", 'SQLite: near "FROM": syntax error'),
        ("SELECT load_extension('a')", "SQLite refused the statement (not authorized to use function: load_extension)"),
    ],
)
def test_check_asks_the_database_about_the_statement(
    project: Path, cli: Callable[..., Any], statement: str, problem: str
) -> None:
    write_tool(project, statement)
    done = cli("check")
    assert (done.code, problem in done.out) == (1, True)


def test_check_finds_a_database_that_is_not_there(project: Path, cli: Callable[..., Any]) -> None:
    write_tool(project, "SELECT 1", "missing.sqlite")
    assert "'missing.sqlite' does not exist" in cli("check").out
    write_tool(project, "SELECT 1", "${secret:NOWHERE}")
    assert "ask asks for the host's variable NOWHERE, which is not granted to it" in cli("check").out
    write_tool(project, "SELECT name FROM customers")
    assert cli("check").code == 0


def test_a_tool_is_shown_with_its_database_and_statement(project: Path, cli: Callable[..., Any]) -> None:
    write_tool(project, "SELECT name\n  FROM customers", "shop.sqlite")
    shown = {line.split(":")[0]: line.partition(":")[2].strip() for line in cli("show", "ask").out.splitlines()}
    assert (shown["database"], shown["statement"], shown["requires"]) == (
        *("shop.sqlite", "SELECT name FROM customers"),
        "fs.read",
    )


def test_check_runs_nothing(project: Path, cli: Callable[..., Any]) -> None:
    document = {
        "tool_id": "ask",
        "tool_type": "sql",
        "version": "1.0.0",
        "description": "Ask",
        "executor_id": "sql_client",
        "config": {"database": "shop.sqlite", "statement": "DELETE FROM customers", "write": True},
    }
    (project / "tools").mkdir()
    (project / "tools" / "ask.json").write_text(json.dumps(document))
    assert cli("check").code == 0
    database = sqlite3.connect(project / "shop.sqlite")
    assert database.execute("SELECT count(*) FROM customers").fetchone() == (4,)
    database.close()
