"""What is wrong with the description of a statement is said when it is written, with its place and its cure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import BUNDLE, document, make_shop

from toolcrib import Crib, ToolError
from toolcrib.features.bundles.format import read_tool
from toolcrib.lib.database_url import parse_server

CITY = {"city": {"type": "string"}}


@pytest.mark.parametrize(
    ("impl", "problem"),
    [
        (
            {"statement": "SELECT :town"},
            "impl.statement: :town is not an argument; declare town, or write the name of one",
        ),
        ({"statement": "SELECT :citty"}, "impl.statement: :citty is not an argument; did you mean :city?"),
        ({"statement": "SELECT 1"}, "impl.statement: does not use the argument city; write :city, or remove it"),
        ({"statement": "SELECT :city; SELECT 2"}, "impl.statement: holds several statements"),
        ({"statement": 3}, "impl.statement: must be text"),
        ({"database": ""}, "impl.database: names no database"),
        ({"database": "file:x?mode=rwc"}, "impl.database: is neither a path in the workspace nor a URL"),
        ({"database": ":memory:"}, "impl.database: is neither a path in the workspace nor a URL"),
        ({"database": "mysql://a/b"}, "impl.database: is neither a path in the workspace nor a URL"),
        ({"database": "a/${secret:X}"}, "impl.database: a path holds no slots"),
        ({"database": "${arg:city}"}, "impl.database: ${arg:city} is not known here; write ${secret:NAME}"),
        ({"database": "postgresql://me:secret-word@db/shop"}, "impl.database: holds a password that everyone can read"),
        ({"database": "postgresql://me@db/shop?sslkey=/etc/passwd"}, "impl.database: has the option 'sslkey', which"),
        ({"database": "postgresql://me@a,b/shop"}, "impl.database: names several hosts"),
        ({"database": "postgresql://me@db/"}, "impl.database: names no database"),
        ({"database": "postgresql://db/shop"}, "impl.database: names no user"),
        ({"hosts": ["db.example.com"]}, "impl.hosts: a file of the workspace has no host"),
        ({"confirm": False}, "impl.confirm: is for statements that write"),
        ({"returns": "table"}, 'impl.returns: "table" is unknown; write "rows" or "list" or "row" or "value"'),
        ({"maxRows": 0}, "impl.maxRows: must be an integer from 1 to 100000"),
        ({"maxBytes": 10**9}, "impl.maxBytes: must be an integer from 1 to 10000000"),
        ({"timeoutMs": "long"}, "impl.timeoutMs: must be an integer from 1 to 600000"),
        ({"max_rows": 5}, "impl.max_rows: is not read; did you mean maxRows?"),
        ({"urlTemplate": "https://a"}, 'impl.urlTemplate: is for tools of type "http"; remove it'),
        ({"goFunc": "a"}, 'impl.goFunc: is for tools of type "go"; remove it'),
        (
            {"choices": {"sort": {"a": "b"}}},
            "impl.choices: sort is not an argument with exactly these values; declare it",
        ),
        ({"choices": {"city": {}}}, "impl.choices: city offers nothing"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_its_cure(
    problems_of: Callable[..., str], impl: dict[str, object], problem: str
) -> None:
    written = {"statement": "SELECT :city", **impl}
    assert problem in problems_of(arguments=CITY, **written)


def test_a_choice_that_a_call_may_leave_out_is_refused(problems_of: Callable[..., str]) -> None:
    sort = {"sort": {"enum": ["a", "b"]}}
    choices = {"sort": {"a": "id", "b": "name"}}
    assert "sort may be left out; list it in required" in problems_of("SELECT :sort", sort, choices=choices)
    assert problems_of("SELECT :sort", {"sort": {**sort["sort"], "default": "a"}}, choices=choices) == ""
    split = {"sort": {"a": "id", "b": "1; DROP TABLE a"}}
    assert "several statements" in problems_of(
        "SELECT :sort", {"sort": {**sort["sort"], "default": "a"}}, choices=split
    )


def test_choices_make_a_bounded_number_of_statements(problems_of: Callable[..., str]) -> None:
    keys = [str(number) for number in range(9)]
    arguments = {name: {"enum": keys, "default": "1"} for name in ("a", "b")}
    choices = {name: dict.fromkeys(keys, "1") for name in ("a", "b")}
    assert "make 81 statements, the limit is 64; offer fewer" in problems_of(
        "SELECT :a, :b", arguments, choices=choices
    )


def test_choices_do_not_multiply_a_long_statement(problems_of: Callable[..., str]) -> None:
    keys = [str(number) for number in range(8)]
    arguments = {name: {"enum": keys, "default": "1"} for name in ("a", "b")}
    choices = {name: dict.fromkeys(keys, "1") for name in ("a", "b")}
    found = problems_of(f"SELECT :a, :b, '{'x' * 20_000}'", arguments, choices=choices)
    assert "make statements of more than 200000 characters together" in found


def test_a_tool_says_what_it_requires_and_what_it_changes() -> None:
    def read(**impl: Any) -> tuple[set[str], str | None, bool, bool]:
        tool = read_tool(document("SELECT 1", **impl), bundle_id=BUNDLE, slug="a", version="v1").tool
        return {*tool.requires}, tool.side_effects, tool.requires_confirmation, tool.idempotent

    assert read() == ({"fs.read"}, "read_only", False, True)
    assert read(write=True) == ({"fs.read", "fs.write"}, "writes", True, False)
    assert read(write=True, confirm=False) == ({"fs.read", "fs.write"}, "writes", False, False)
    assert read(database="${secret:SHOP}") == ({"net.postgresql"}, "read_only", False, True)
    assert read(database="postgresql://a@db/shop", write=True)[0] == {"net.postgresql"}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://a@db/shop", "is not a URL of PostgreSQL"),
        ("postgresql://a@/shop", "names no host"),
        ("postgresql://a@%2Ftmp/shop", "names no host"),
        ("postgresql://a@db:0/shop", "has a host that is refused"),
        ("postgresql://a@db/shop?host=evil", "has the option 'host'"),
        ("postgresql://a@db/shop?options=-cdefault_transaction_read_only%3Doff", "has the option 'options'"),
        ("postgresql://a@db/shop?sslrootcert=/etc/shadow", "has the option 'sslrootcert'"),
        ("postgresql://a@db/shop?service=x", "has the option 'service'"),
        ("postgresql://a@db/sh op", "is not a URL of PostgreSQL"),
    ],
)
def test_a_url_that_leads_elsewhere_is_refused_without_repeating_its_password(url: str, problem: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_server(url.replace("a@", "a:secret-word@"))
    assert problem in refused.value.message
    assert "secret-word" not in refused.value.message


def test_a_url_is_read_with_its_parts_decoded() -> None:
    server = parse_server(
        "postgres://us%40er:p%2Fw@db.example.com:6432/my%20shop?sslmode=verify-full&sslrootcert=system"
    )
    assert (server.user, server.password, server.name, server.url.authority) == (
        *("us@er", "p/w", "my shop"),
        "db.example.com:6432",
    )
    assert "p/w" not in repr(server)


FILE = {
    ".yaml": """\
tool_id: find-customers
tool_type: sql
version: "1.0.0"
description: Find customers by city
category: shop
executor_id: sql_client
config:
  database: shop.sqlite
  statement: SELECT name FROM customers WHERE city = :city ORDER BY name
  returns: list
  max_rows: 10
parameters:
  - {name: city, type: string, required: true, description: The city.}
""",
    ".toml": """\
tool_id = "find-customers"
tool_type = "sql"
version = "1.0.0"
description = "Find customers by city"
category = "shop"
executor_id = "sql_client"
[config]
database = "shop.sqlite"
statement = "SELECT name FROM customers WHERE city = :city ORDER BY name"
returns = "list"
[[parameters]]
name = "city"
type = "string"
required = true
description = "The city."
""",
    ".json": """\
{"tool_id": "find-customers", "tool_type": "sql", "version": "1.0.0", "description": "Find customers by city",
 "category": "shop", "executor_id": "sql_client",
 "config": {"database": "shop.sqlite", "returns": "list",
            "statement": "SELECT name FROM customers WHERE city = :city ORDER BY name"},
 "parameters": [{"name": "city", "type": "string", "required": true, "description": "The city."}]}
""",
}


@pytest.mark.parametrize("suffix", FILE)
@pytest.mark.parametrize("folder", ["tools", ".ai/tools/shop"])
async def test_a_file_describes_the_same_tool_in_every_notation(tmp_path: Path, folder: str, suffix: str) -> None:
    (tmp_path / "toolcrib.toml").write_text("")
    make_shop(tmp_path / "shop.sqlite")
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / f"find_customers{suffix}").write_text(FILE[suffix])
    async with Crib(tmp_path) as crib:
        assert crib.problems == []
        result = await crib.call("find-customers", city="Oslo")
        assert result.value == [{"name": "Ada"}, {"name": "Cleo"}]
        assert crib.find("find-customers").tool.requires == {"fs.read"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (":city ", ":town ", "find_customers.yaml:9: config.statement: :town is not an argument"),
        ("max_rows: 10", "maxRows: 10", "config.maxRows: is unknown to sql_client; did you mean max_rows?"),
        ("database: shop.sqlite", "database: ''", "config.database: names no database"),
    ],
)
async def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    (tmp_path / "toolcrib.toml").write_text("")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "find_customers.yaml").write_text(FILE[".yaml"].replace(old, new))
    async with Crib(tmp_path) as crib:
        assert problem in crib.problems[0].message
