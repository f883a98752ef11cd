"""Statements on SQLite: bound arguments, typed rows, limits, writing, and what the file is guarded by."""

import asyncio
import contextlib
import json
import sqlite3
import struct
import time
import tracemalloc
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sandboxes import make_sandbox
from sql_shop import CUSTOMERS, Shop, make_shop

from toolcrib import Call, Chunk, Crib, Kind, ToolError
from toolcrib.features.sql_tools.sqlite_engine import OpenFile, SqliteEngine
from toolcrib.features.sql_tools.statement import Statement
from toolcrib.infra.files.jail import JailedFile
from toolcrib.infra.sandbox.jobs import WorkspacePolicy

ALL = "SELECT id FROM customers"
IDS = {"ids": {"type": "array"}}
ENDLESS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT n FROM numbers"

HOSTILE: list[Any] = [
    *(
        "' OR 1=1 --",
        '" OR ""="',
        "1; DROP TABLE customers",
        "'); DELETE FROM customers; --",
        "\\'; --",
        "%",
        "_",
        "?1",
    ),
    *(":city", "${secret:X}", "\x00", "é\u202e", "x" * 20_000, "NULL", "1e999", "0x10", "/*", "--"),
    *(True, False, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.0, 1e308, [], [1, None, "'"], {"a": ["'"]}, [[1]], None),
]


async def test_rows_are_objects_and_every_type_has_its_json_form(shop: Shop) -> None:
    result = await shop.run("SELECT * FROM customers ORDER BY id LIMIT 2")
    assert result.value == {
        "rows": [
            {"id": 1, "name": "Ada", "city": "Oslo", "credit": 12.5, "photo": "AP8="},
            {"id": 2, "name": "Bo", "city": "Ulm", "credit": None, "photo": None},
        ],
        "truncated": False,
    }
    assert "fs" in result.meta["sandbox"]["guarantees"]


async def test_an_argument_is_bound_and_never_read_as_sql(shop: Shop) -> None:
    name = shop.store("SELECT :value AS back, typeof(:value) AS kind", {"value": {}}, returns="row")
    for value in HOSTILE:
        result = await shop.call(name, {"value": value})
        back = json.loads(result.value["back"]) if isinstance(value, list | dict) else result.value["back"]
        assert back == value, repr(value)[:80]
    assert shop.rows("SELECT count(*) FROM customers") == [(len(CUSTOMERS),)]


async def test_an_integer_that_sqlite_cannot_hold_is_refused_before_anything_runs(shop: Shop) -> None:
    result = await shop.run("SELECT :n", {"n": 2**63})
    assert result.error.kind is Kind.VALIDATION
    assert result.refused


async def test_arguments_that_are_too_long_are_refused(shop: Shop) -> None:
    for size, problem in (
        (2_000_000, "a value has more than 1000000 bytes"),
        (9_000_000, "the arguments are too long"),
    ):
        result = await shop.run("SELECT length(:text)", {"text": "x" * size}, maxBytes=1_000)
        assert (result.error.kind, problem in result.error.message) == (Kind.LIMIT_EXCEEDED, True), result.error


async def test_an_argument_that_is_left_out_is_null(shop: Shop) -> None:
    name = shop.store(f"{ALL} WHERE (:city IS NULL OR city = :city)", {"city": {"type": "string"}}, returns="list")
    assert len((await shop.call(name)).value) == len(CUSTOMERS)
    assert (await shop.call(name, city="Ulm")).value == [{"id": 2}]


@pytest.mark.parametrize(
    ("ids", "inside", "outside"),
    [([1, 3], [1, 3], [2, 4]), ([], [], [1, 2, 3, 4]), (["1"], [1], [2, 3, 4]), ([*range(2_000)], [1, 2, 3, 4], [])],
)
async def test_a_list_is_bound_behind_in_whatever_its_length(
    shop: Shop, ids: list[object], inside: list[int], outside: list[int]
) -> None:
    for word, found in (("IN", inside), ("NOT IN", outside)):
        result = await shop.run(f"{ALL} WHERE id {word} (:ids)", {"ids": ids}, IDS, returns="list")
        assert [row["id"] for row in result.value] == found


async def test_limit_and_a_choice_of_columns_come_from_the_call(shop: Shop) -> None:
    name = shop.store(
        f"{ALL} ORDER BY :sort LIMIT :most",
        {"sort": {"enum": ["newest", "name"], "default": "name"}, "most": {"type": "integer", "default": 2}},
        choices={"sort": {"newest": "id DESC", "name": "name"}},
        returns="list",
    )
    assert (await shop.call(name)).value == [{"id": 1}, {"id": 2}]
    assert (await shop.call(name, sort="newest", most=1)).value == [{"id": 4}]
    refused = await shop.call(name, sort="(SELECT 1)")
    assert refused.error.kind is Kind.VALIDATION


async def test_a_tool_returns_rows_a_list_one_row_or_one_value(shop: Shop) -> None:
    one = f"{ALL} WHERE id = 2"
    assert (await shop.run(one)).value == {"rows": [{"id": 2}], "truncated": False}
    assert (await shop.run(one, returns="list")).value == [{"id": 2}]
    assert (await shop.run(one, returns="row")).value == {"id": 2}
    assert (await shop.run(one, returns="value")).value == 2
    assert (await shop.run(f"{one} + 100", returns="row")).value is None
    assert (await shop.run(f"{one} + 100", returns="value")).value is None
    several = await shop.run(ALL, returns="row")
    assert (several.error.kind, "takes one; add LIMIT 1" in several.error.message) == (Kind.PERMANENT, True)
    wide = await shop.run("SELECT 1 AS a, 2 AS b", returns="value")
    assert 'returned 2 columns, and "returns": "value" takes one' in wide.error.message


async def test_two_columns_of_one_name_are_refused_instead_of_one_being_lost(shop: Shop) -> None:
    result = await shop.run("SELECT 1 AS a, 2 AS a")
    assert result.error.message == "several columns are called 'a'; name each with AS"


async def test_a_result_that_was_cut_off_says_so(shop: Shop) -> None:
    result = await shop.run(f"{ENDLESS}", maxRows=3)
    assert result.value == {"rows": [{"n": 1}, {"n": 2}, {"n": 3}], "truncated": True}
    assert result.meta["truncated"] == "more than 3 rows"
    exact = await shop.run(f"{ENDLESS} LIMIT 3", maxRows=3)
    assert exact.value["truncated"] is False
    large = await shop.run("SELECT hex(zeroblob(400)) AS a FROM customers", maxBytes=2_000)
    assert (len(large.value["rows"]), large.value["truncated"]) == (2, True)


async def test_a_list_that_would_be_cut_off_is_an_error_with_what_was_read(shop: Shop) -> None:
    result = await shop.run(ENDLESS, maxRows=2, returns="list")
    assert result.error.kind is Kind.LIMIT_EXCEEDED
    assert "returned more than 2 rows; ask for less, add LIMIT" in result.error.message
    assert result.value == [{"n": 1}, {"n": 2}]


async def test_the_operator_bounds_every_tool(shop: Shop) -> None:
    async with Crib(shop.root, sql_tools={"max_rows": 2}) as crib:
        result: Any = await crib.call(shop.store(ALL, maxRows=1_000))
        assert (len(result.value["rows"]), result.value["truncated"]) == (2, True)


async def test_an_output_schema_judges_the_rows(shop: Shop) -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}
    result = await shop.run(ALL, returns="list", outputSchema=schema)
    assert result.error.kind is Kind.OUTPUT_INVALID


async def test_rows_reach_a_client_that_listens_one_by_one(shop: Shop) -> None:
    name = shop.store(f"{ENDLESS} LIMIT 450", returns="list")
    events = [event async for event in shop.crib.stream(name)]
    chunks = [event.value for event in events if isinstance(event, Chunk)]
    assert chunks == [{"n": number} for number in range(1, 451)] == events[-1].value


@pytest.mark.parametrize(
    ("value", "problem"),
    [("1e999", "row 1, column 'a': a float of inf has no JSON form"), ("CAST(x'ff' AS TEXT)", "CAST(… AS BLOB)")],
)
async def test_a_value_without_a_json_form_is_told_by_its_place(shop: Shop, value: str, problem: str) -> None:
    result = await shop.run(f"SELECT {value} AS a")
    assert result.error.kind is Kind.PERMANENT
    assert problem in result.error.message


async def test_full_text_search_and_json_work(shop: Shop) -> None:
    found = await shop.run("SELECT name FROM names WHERE names MATCH :text", {"text": "ada"}, returns="value")
    assert found.value == "Ada"
    values = await shop.run("SELECT value FROM json_each(:list)", {"list": [1, 2]}, returns="list")
    assert values.value == [{"value": 1}, {"value": 2}]


@pytest.mark.parametrize(
    "statement",
    [
        "WITH a AS (SELECT 1) INSERT INTO customers (name) SELECT 'x'",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT * FROM pragma_table_info('customers')",
        "SELECT * FROM pragma_database_list",
        "SELECT fts3_tokenizer('simple')",
        "WITH a AS (SELECT 1) UPDATE customers SET name = 'x'",
        "WITH a AS (SELECT 1) DELETE FROM customers",
    ],
)
async def test_sqlite_itself_refuses_what_a_tool_that_reads_must_not_do(shop: Shop, statement: str) -> None:
    result = await shop.run(statement)
    assert result.error.kind is Kind.BLOCKED, result.error
    assert ("no tool may use" if "function" in result.error.message else "only reading") in result.error.message
    assert shop.rows("SELECT count(*) FROM customers") == [(len(CUSTOMERS),)]


async def test_a_tool_that_writes_is_confirmed_first_and_changes_rows_only(shop: Shop) -> None:
    name = shop.store("INSERT INTO customers (name) VALUES (:name) RETURNING id", {"name": {}}, write=True)
    asked = await shop.call(name, name="Eve")
    assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
    token: Any = asked.error.details["confirmation"]
    done = await shop.call(Call(name=name, arguments={"name": "Eve"}, caller=shop.crib.caller, confirmation=token))
    assert done.value == {"rows": [{"id": 5}], "truncated": False, "affected": 1}
    assert shop.rows("SELECT name FROM customers WHERE id = 5") == [("Eve",)]
    many = await shop.run("UPDATE customers SET city = 'Rom'", write=True, confirm=False)
    assert many.value == {"rows": [], "truncated": False, "affected": 5}
    for statement in ("WITH a AS (SELECT 1) SELECT load_extension('x')", "SELECT * FROM pragma_user_version"):
        refused = await shop.run(statement, write=True, confirm=False)
        assert refused.error.kind is Kind.BLOCKED
        assert refused.error.message.endswith(("only rows can be changed", "no tool may use this function"))


async def test_a_change_that_fails_leaves_nothing(shop: Shop) -> None:
    result = await shop.run(
        "INSERT INTO orders (number, customer) SELECT id, CASE id WHEN 4 THEN 99 ELSE id END FROM customers",
        write=True,
        confirm=False,
    )
    assert result.error.kind is Kind.CONFLICT
    assert "FOREIGN KEY constraint failed" in result.error.message
    assert not result.error.partial_side_effects
    assert shop.rows("SELECT * FROM orders") == []


async def test_a_change_whose_rows_cannot_be_returned_is_undone(shop: Shop) -> None:
    result = await shop.run("UPDATE customers SET city = 'Rom' RETURNING 9e999 AS a", write=True, confirm=False)
    assert "row 1, column 'a': a float of inf has no JSON form" in result.error.message
    assert shop.rows("SELECT count(*) FROM customers WHERE city = 'Rom'") == [(0,)]


async def test_all_rows_are_changed_even_if_not_all_are_shown(shop: Shop) -> None:
    add = "INSERT INTO customers (name) SELECT value FROM json_each(:names) RETURNING id"
    result = await shop.run(add, {"names": ["x"] * 500}, write=True, confirm=False, maxRows=1)
    assert (result.value["truncated"], result.value["affected"]) == (True, 500)
    assert shop.rows("SELECT count(*) FROM customers WHERE name = 'x'") == [(500,)]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT absent FROM customers", "SQLite: no such column: absent"),
        ("SELECT 1 FROM missing", "SQLite: no such table: missing"),
        ("SELECT FROM WHERE", 'SQLite: near "FROM": syntax error'),
        ("SELECT hex(zeroblob(100000000))", "a value has more than 1000000 bytes; leave it out, or raise maxBytes"),
    ],
)
async def test_an_error_of_sqlite_reaches_the_caller_in_its_own_words(shop: Shop, statement: str, problem: str) -> None:
    assert problem in (await shop.run(statement)).error.message


def doubled(way: str) -> str:
    """A statement of a few lines, of which SQLite makes as many parts as 2 to the power of 30 before it runs anything."""
    parts = ["a0 AS NOT MATERIALIZED (SELECT 1 AS x)"]
    parts += [f"a{n} AS NOT MATERIALIZED ({way.format(n - 1)})" for n in range(1, 30)]
    return f"WITH {', '.join(parts)} SELECT x FROM a29"


async def test_a_statement_that_takes_too_much_memory_is_refused_and_the_next_one_runs(shop: Shop) -> None:
    hungry = [
        doubled("SELECT p.x FROM a{0} p, a{0} q"),
        doubled("SELECT x FROM a{0} UNION ALL SELECT x FROM a{0}"),
        f"SELECT {', '.join(f'zeroblob(900000) AS b{number}' for number in range(600))}",
    ]
    async with Crib(shop.root, sandbox={"memory_mb": 48}) as crib:
        for statement in hungry:
            result: Any = await crib.call(shop.store(statement))
            assert (result.error.kind, "sandbox.memory_mb" in result.error.message) == (Kind.LIMIT_EXCEEDED, True)
            result = await crib.call(shop.store(ALL))
            assert len(result.value["rows"]) == len(CUSTOMERS)


async def test_a_large_sort_goes_to_disk_up_to_its_limit(shop: Shop) -> None:
    endless = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)"
    sort = (
        f"SELECT count(*) AS count FROM ({endless} SELECT DISTINCT randomblob(200000) AS value FROM numbers LIMIT {{}})"
    )
    result = await shop.run(sort.format(100), returns="value", timeoutMs=30_000)
    assert result.value == 100, result.error
    result = await shop.run(sort.format(5_000), returns="value", timeoutMs=30_000)
    assert (result.error.kind, "sandbox.disk_mb" in result.error.message) == (Kind.TRANSIENT, True), result.error


async def test_of_rows_that_are_too_large_only_the_first_is_read(shop: Shop) -> None:
    rows = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000) SELECT n, zeroblob(900000) AS b FROM c"
    tracemalloc.start()
    try:
        found = await shop.run(rows, maxBytes=2_000)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.value["rows"], found.value["truncated"]) == ([], True)
    assert found.meta["truncated"] == "more than 2000 bytes"
    assert most < 20_000_000
    # Nor is a row sent that no line of the channel can hold.
    found = await shop.run("SELECT 1 AS n, NULL AS b UNION ALL SELECT 2, zeroblob(4900000)", maxBytes=5_000_000)
    assert (found.value["rows"], found.value["truncated"]) == ([{"n": 1, "b": None}], True)
    found = await shop.run("SELECT printf('%.*c', 1900000, x'01') AS b", maxBytes=5_000_000)
    assert (found.value["rows"], found.value["truncated"]) == ([], True)


async def test_a_call_ends_at_its_time_although_sqlite_is_busy_with_one_step(shop: Shop) -> None:
    # One call of instr(), which SQLite does not interrupt, and which would take minutes.
    slow = "SELECT instr(printf('%.*c', 900000, 'a'), printf('%.*c', 450000, 'a') || 'b') AS place"
    ended = await shop.run(slow, timeoutMs=50)
    assert ended.error.kind is Kind.TIMEOUT
    assert (await shop.run("SELECT 1 AS one", returns="value")).value == 1


async def test_a_database_may_grow_beyond_what_a_job_may_keep(shop: Shop) -> None:
    async with Crib(shop.root, sandbox={"disk_mb": 1}) as crib:
        grow = shop.store("UPDATE customers SET photo = zeroblob(900000)", write=True, confirm=False)
        result: Any = await crib.call(grow)
        assert result.value["affected"] == len(CUSTOMERS)


async def test_a_function_that_no_tool_may_use_is_told_as_such(shop: Shop) -> None:
    refused = await shop.run("SELECT load_extension('x') AS x")
    assert refused.error.message == (
        "SQLite refused the statement (not authorized to use function: load_extension); no tool may use this function"
    )


@pytest.mark.parametrize(
    ("path", "kind", "problem"),
    [
        ("../outside.sqlite", Kind.BLOCKED, "outside"),
        ("/etc/passwd", Kind.BLOCKED, "outside"),
        ("link.sqlite", Kind.BLOCKED, "leads out"),
        (".env", Kind.BLOCKED, "sensitive"),
        (".toolcrib/index.sqlite3", Kind.BLOCKED, "sensitive"),
        ("missing.sqlite", Kind.NOT_FOUND, "missing.sqlite"),
        ("folder", Kind.VALIDATION, "folder"),
        ("twice.sqlite", Kind.BLOCKED, "has 2 names"),
    ],
)
async def test_only_files_of_the_workspace_that_are_no_secrets_are_databases(
    shop: Shop, path: str, kind: Kind, problem: str
) -> None:
    outside = shop.root.parent / "outside.sqlite"
    outside.write_bytes((shop.root / "shop.sqlite").read_bytes())
    (shop.root / ".env").write_bytes(outside.read_bytes())
    (shop.root / "folder").mkdir()
    (shop.root / "link.sqlite").symlink_to(outside)
    (shop.root / "twice.sqlite").hardlink_to(shop.root / "shop.sqlite")
    result = await shop.run(ALL, database=path)
    assert result.refused
    assert (result.error.kind, problem in result.error.message) == (kind, True), result.error
    assert not (shop.root / "missing.sqlite").exists()


async def test_what_lies_under_a_name_beside_the_database_leads_sqlite_nowhere(shop: Shop) -> None:
    write = shop.store("UPDATE customers SET city = 'Rom'", write=True, confirm=False, timeoutMs=5_000)
    read = shop.store(ALL, timeoutMs=5_000)
    outside = shop.root.parent / "outside.txt"
    for ending in ("-journal", "-wal", "-shm"):
        beside = shop.root / f"shop.sqlite{ending}"
        for victim in (outside, shop.root / "notes.txt", shop.root / "toolcrib.toml"):
            for put in (beside.symlink_to, beside.hardlink_to):
                victim.write_text("# kept")
                make_shop(shop.root / "fresh.sqlite", wal=ending != "-journal")
                (shop.root / "fresh.sqlite").replace(shop.root / "shop.sqlite")
                put(victim)
                results = [await shop.call(name) for name in (write, read)]
                assert victim.read_text() == "# kept", (beside, victim, put, results)
                beside.unlink(missing_ok=True)
        beside.mkdir()
        await shop.call(write)
        beside.rmdir()


async def test_a_file_that_is_no_database_is_told_as_such(shop: Shop) -> None:
    (shop.root / "text.sqlite").write_text("hello " * 1_000)
    result = await shop.run(ALL, database="text.sqlite")
    assert result.error.message.startswith("the file cannot be read as a database: file is not a database")
    (shop.root / "torn.sqlite").write_bytes((shop.root / "shop.sqlite").read_bytes()[:6_000])
    result = await shop.run("SELECT * FROM customers", database="torn.sqlite")
    assert result.error.message.startswith("the file cannot be read as a database: ")


async def test_a_column_whose_name_is_no_text_is_told_as_such(shop: Shop) -> None:
    path = shop.root / "shop.sqlite"
    path.write_bytes(path.read_bytes().replace(b"credit REAL", b"cre\xffit REAL"))
    result = await shop.run("SELECT * FROM customers")
    assert (result.error.kind, "decode" in result.error.message) == (Kind.PERMANENT, True), result.error


async def test_a_file_that_is_replaced_is_opened_anew(shop: Shop) -> None:
    name = shop.store("SELECT count(*) FROM customers", returns="value")
    assert (await shop.call(name)).value == len(CUSTOMERS)
    other = shop.root / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE customers (id)")
    database.close()
    other.replace(shop.root / "shop.sqlite")
    assert (await shop.call(name)).value == 0


async def test_a_file_that_is_replaced_while_it_is_opened_is_told_as_such(shop: Shop) -> None:
    sandbox = make_sandbox()
    engine = SqliteEngine(sandbox, WorkspacePolicy(workspace=shop.root), 1)
    other = OpenFile(JailedFile(str(shop.root / "shop.sqlite"), (0, 0)))
    with pytest.raises(ToolError, match="the database was replaced by another file; try again") as caught:
        await engine.explain(other, Statement("SELECT 1", ()), deadline=time.monotonic() + 20)
    assert caught.value.retryable
    await engine.close()
    sandbox.close()


async def test_a_machine_that_cannot_sandbox_a_statement_refuses_before_anything_runs(shop: Shop) -> None:
    async with Crib(shop.root) as crib:
        crib._resources.lend(sandbox=crib._resources.own(make_sandbox(require=("weightlessness",))))
        result: Any = await crib.call(shop.store(ALL))
        assert result.refused
        assert (result.error.kind, "weightlessness" in result.error.message) == (Kind.SANDBOX_UNAVAILABLE, True)


async def test_a_database_in_wal_mode_is_read_while_another_program_writes(shop: Shop) -> None:
    writer = sqlite3.connect(shop.root / "shop.sqlite", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    name = shop.store("SELECT count(*) FROM customers", returns="value")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM customers")
    assert (await shop.call(name)).value == len(CUSTOMERS)
    writer.execute("COMMIT")
    assert (await shop.call(name)).value == 0
    writer.close()


async def test_a_change_in_which_a_program_was_killed_is_undone_before_anything_is_read(shop: Shop) -> None:
    other = sqlite3.connect(shop.root / "shop.sqlite", isolation_level=None)
    for statement in (
        "PRAGMA cache_size = 1",
        "BEGIN",
        "INSERT INTO orders SELECT value, 1, hex(zeroblob(999)) FROM json_each('[1,2,3,4,5]')",
    ):
        other.execute(statement)
    for ending in ("", "-journal"):
        (shop.root / f"torn.sqlite{ending}").write_bytes((shop.root / f"shop.sqlite{ending}").read_bytes())
    other.close()
    assert (await shop.run("SELECT count(*) FROM orders", returns="value", database="torn.sqlite")).value == 0
    assert not (shop.root / "torn.sqlite-journal").exists()


async def test_dates_are_compared_as_the_text_they_are(shop: Shop) -> None:
    result = await shop.run("SELECT date(:day, '+1 day')", {"day": str(date(2026, 1, 31))}, returns="value")
    assert result.value == "2026-02-01"


async def test_a_workspace_elsewhere_is_where_paths_begin(shop: Shop, tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.mkdir()
    (tmp_path / "shop.sqlite").rename(inside / "shop.sqlite")
    async with Crib(tmp_path, workspace={"folder": inside}) as crib:
        result: Any = await crib.call(shop.store(ALL))
        assert len(result.value["rows"]) == len(CUSTOMERS)


def write_super_journal(database: Path, victim: Path) -> None:
    """What a tool that may write files leaves beside a database: the journal of a transaction that names another file."""
    magic, sector, name = bytes.fromhex("d9d505f920a163d7"), 512, str(victim).encode()
    head = magic + struct.pack(">5I", 0, 1, database.stat().st_size // 4096, sector, 4096)
    end = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    Path(f"{database}-journal").write_bytes(head.ljust(sector, b"\0") + end)


def inspect(root: Path) -> None:
    with Crib(root) as crib:
        crib.inspect_database("shop.sqlite")


async def test_a_journal_that_names_another_file_deletes_nothing(shop: Shop, tmp_path: Path) -> None:
    write = shop.store("UPDATE customers SET city = 'Bonn'", write=True, confirm=False)
    read = shop.store(ALL)
    inspected = shop.crib.require(write).tool
    for victim in (tmp_path.with_name(f"{tmp_path.name}-victim"), shop.root / "notes.txt", shop.root / "toolcrib.toml"):
        for act in (
            lambda: shop.call(write),
            lambda: shop.call(read),
            lambda: asyncio.to_thread(shop.crib.problems_of, inspected),
            lambda: asyncio.to_thread(inspect, shop.root),
        ):
            victim.write_text("# kept")
            write_super_journal(shop.root / "shop.sqlite", victim)
            with contextlib.suppress(ToolError):
                await act()
            assert victim.read_text() == "# kept"
            # The change that the journal holds was undone or dropped, and the database can be used.
            assert len((await shop.call(read)).value["rows"]) == len(CUSTOMERS)
