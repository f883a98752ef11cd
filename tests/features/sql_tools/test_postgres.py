"""SQL tools on a real PostgreSQL: bound values, types, read-only transactions, limits, cancellation, a server that falls."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from postgres_server import PostgresServer, running_server
from sql_shop import BUNDLE, Shop

from toolcrib import Chunk, Crib, Kind, ToolError
from toolcrib.features.sql_tools.rows import Collected
from toolcrib.features.sql_tools.statement import Statement
from toolcrib.infra.egress.postgres import PostgresConnection
from toolcrib.lib.database_url import parse_server

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.postgres

PASSWORD = "pass:word/with%signs"
SLEEP = "SELECT pg_sleep(600)"
HOSTILE = [
    *(
        "' OR 1=1 --",
        '" OR ""="',
        "1; DROP TABLE customers",
        "'); DELETE FROM customers; --",
        "\\'; --",
        "$1",
        "$$",
        ":a",
    ),
    *("%s", "%(a)s", "é\u202e", "x" * 20_000, "NULL", "{}", '{"a",b}', "\\", '"', "E'\\''", "${secret:SHOP}"),
]
SETUP = f"""
    CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
    CREATE ROLE mighty LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_server_files;
    CREATE ROLE deputy LOGIN PASSWORD '{PASSWORD}' IN ROLE postgres;
    CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}';
    ALTER ROLE stranger SET IntervalStyle = 'iso_8601';
    ALTER ROLE stranger SET DateStyle = 'German';
    ALTER ROLE stranger SET bytea_output = 'escape';
    ALTER ROLE stranger SET TimeZone = 'Asia/Kolkata';
    CREATE DATABASE shop;
"""
TABLES = """
    CREATE TYPE mood AS ENUM ('happy', 'sad');
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, city text, joined date, tags text[], facts jsonb);
    INSERT INTO customers VALUES
        (1, 'Ada', 'Oslo', '2026-01-31', '{a,"b c"}', '{"vip": true}'), (2, 'Bo', 'Ulm', NULL, '{}', NULL),
        (3, 'Cleo', 'Oslo', 'infinity', NULL, '[1, 2]');
    CREATE TABLE orders (number serial PRIMARY KEY, customer int REFERENCES customers (id), total numeric(10, 2));
    CREATE FUNCTION add_order() RETURNS int LANGUAGE sql SECURITY DEFINER AS
        'INSERT INTO orders (customer) VALUES (1) RETURNING number';
    CREATE FUNCTION remark() RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN FOR n IN 1..100000 LOOP RAISE NOTICE '%', repeat('x', 10000); END LOOP; RETURN 1; END $$;
    GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO reader;
"""


def owner(server: PostgresServer, database: str = "shop") -> psycopg.Connection[Any]:
    """A connection that may do everything."""
    import psycopg

    return psycopg.connect(f"postgresql://postgres:owner-password@{server.address}/{database}", autocommit=True)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        with owner(server, "postgres") as connection:
            for statement in SETUP.split(";"):
                connection.execute(statement)  # type: ignore[arg-type]  # a text of our own
        with owner(server) as connection:
            connection.execute(TABLES)  # type: ignore[arg-type]  # a text of our own
        yield server


@pytest.fixture
async def shop(tmp_path: Path, server: PostgresServer) -> AsyncIterator[Shop]:
    (tmp_path / "toolcrib.toml").write_text("")
    async with Crib(
        tmp_path, egress={"private": [server.address]}, sql_tools={"hosts": [server.address], "connections": 3}
    ) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
        crib.secrets.set("SHOP", url(server))
        crib.secrets.set("WORD", PASSWORD)
        shop = Shop(tmp_path, crib)
        shop.database = "${secret:SHOP}"
        yield shop


def url(server: PostgresServer, role: str = "reader") -> str:
    return f"postgresql://{role}:{quote(PASSWORD, safe='')}@{server.address}/shop"


def sessions(server: PostgresServer, where: str = "true") -> int:
    """How many sessions of tools the server has."""
    with owner(server) as connection:
        text = f"SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND {where}"
        row = connection.execute(text).fetchone()  # type: ignore[arg-type]  # a text of our own
    assert row is not None
    return int(row[0])


async def until(reached: Any) -> None:
    async with asyncio.timeout(25):
        while not await asyncio.to_thread(reached):  # noqa: ASYNC110 - the server sets no event
            await asyncio.sleep(0.02)


async def test_every_type_has_its_json_form(shop: Shop) -> None:
    result = await shop.run(
        """
        SELECT 1::int2 AS a, 9007199254740993::int8 AS b, 1.50::numeric AS c, 0.5::float8 AS d, true AS e, 'x'::text AS f,
            '\\x00ff'::bytea AS g, '2026-01-31'::date AS h, '2026-01-31 10:00'::timestamp AS i, NULL::int AS j,
            '2026-01-31 10:00+00'::timestamptz AS k, '10:30'::time AS l, '90 seconds'::interval AS m,
            '00000000-0000-0000-0000-000000000001'::uuid AS n, '{"a": [1, null]}'::jsonb AS o, '{1,NULL,3}'::int[] AS p,
            '{{a,b},{c,d}}'::text[] AS q, 'happy'::mood AS r, '[1,5)'::int4range AS s, '127.0.0.1'::inet AS t,
            'infinity'::date AS u, '-infinity'::timestamptz AS v, '0044-03-15 BC'::date AS w, ROW(1, 'a') AS x, B'101' AS y,
            '12.5'::money::text AS z
        """,
        returns="row",
    )
    assert result.error is None, result.error
    row = result.value
    assert {key: row[key] for key in "abcdefghij"} == {
        "a": 1,
        "b": 9007199254740993,
        "c": "1.50",
        "d": 0.5,
        "e": True,
        "f": "x",
        "g": "AP8=",
        "h": "2026-01-31",
        "i": "2026-01-31T10:00:00",
        "j": None,
    }
    assert {key: row[key] for key in "klmnopqrst"} == {
        "k": "2026-01-31T10:00:00+00:00",
        "l": "10:30:00",
        "m": 90.0,
        "n": "00000000-0000-0000-0000-000000000001",
        "o": {"a": [1, None]},
        "p": [1, None, 3],
        "q": [["a", "b"], ["c", "d"]],
        "r": "happy",
        "s": "[1,5)",
        "t": "127.0.0.1",
    }
    assert {key: row[key] for key in "uvwxy"} == {
        "u": "infinity",
        "v": "-infinity",
        "w": "0044-03-15 BC",
        "x": "(1,a)",
        "y": "101",
    }


async def test_an_argument_is_bound_and_never_read_as_sql(shop: Shop, server: PostgresServer) -> None:
    name = shop.store("SELECT :value::text AS back", {"value": {}}, returns="value")
    for value in HOSTILE:
        assert (await shop.call(name, {"value": value})).value == value, value[:60]
    for given, text in (
        (True, "true"),
        (5, "5"),
        (1.5, "1.5"),
        (None, None),
        ([1, "'"], '[1, "\'"]'),
        ({"a": 1}, '{"a": 1}'),
    ):
        assert (await shop.call(name, {"value": given})).value == text
    refused = await shop.call(name, {"value": "a\x00b"})
    assert (refused.refused, refused.error.kind) == (True, Kind.VALIDATION)
    assert await asyncio.to_thread(lambda: sessions(server)) <= 3


async def test_the_server_infers_the_types_of_arguments(shop: Shop) -> None:
    for where, value, ids in (
        ("id = :v", 2, [2]),
        ("id IN (:v)", [1, 3], [1, 3]),
        ("id NOT IN (:v)", [1, 3], [2]),
        ("id IN (:v)", [], []),
        ("id NOT IN (:v)", [], [1, 2, 3]),
        ("name IN (:v)", ["Ada", "o'Neil\\", '"'], [1]),
        ("id = ANY(:v)", [2], [2]),
        ("tags @> :v", ["b c"], [1]),
        ("facts @> :v", {"vip": True}, [1]),
        ("facts @> :v", [2], [3]),
        ("joined < :v", "2026-02-01", [1]),
        ("(:v IS NULL OR city = :v)", None, [1, 2, 3]),
        ("(:v IS NULL OR city = :v)", "Ulm", [2]),
        ("(:v::int IS NULL OR id > :v)", None, [1, 2, 3]),
        ("id::numeric > :v", 2.5, [3]),
    ):
        kind = {"type": "array"} if isinstance(value, list) else {}
        found = await shop.run(
            f"SELECT id FROM customers WHERE {where} ORDER BY id", {"v": value}, {"v": kind}, returns="list"
        )
        assert found.error is None, (where, found.error)
        assert [row["id"] for row in found.value] == ids, where
    wrong = await shop.run("SELECT 1 FROM customers WHERE id = :v", {"v": "one"})
    assert (wrong.error.kind, wrong.error.details["sqlstate"]) == (Kind.VALIDATION, "22P02")
    assert (await shop.run("SELECT id FROM customers ORDER BY id LIMIT :n", {"n": 1}, returns="value")).value == 1


@pytest.mark.parametrize(
    "statement",
    [
        "WITH a AS (INSERT INTO orders (customer) VALUES (1) RETURNING 1) SELECT * FROM a",
        "SELECT add_order()",
        "SELECT nextval('orders_number_seq')",
        "SELECT set_config('transaction_read_only', 'off', false), add_order()",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT lo_create(0)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT * FROM pg_authid",
        "SELECT * INTO copied FROM customers",
        "SELECT id FROM customers FOR UPDATE",
    ],
)
async def test_the_server_itself_refuses_what_a_tool_that_reads_must_not_do(
    shop: Shop, server: PostgresServer, statement: str
) -> None:
    result = await shop.run(statement)
    assert result.error is not None
    assert result.error.kind in {Kind.BLOCKED, Kind.PERMANENT}, result.error
    with owner(server) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (0,)


async def test_one_text_is_one_statement_even_without_arguments(shop: Shop) -> None:
    shop.store("SELECT 1")
    await shop.run("SELECT 1")
    runner = shop.crib._resources.runners.get("sql")
    bound = runner.bind(shop.crib.find(shop.store("SELECT 1")).tool)
    secret = shop.crib._resources.data.secrets.get("SHOP")
    for write in (False, True):
        with pytest.raises(ToolError, match="cannot insert multiple commands"):
            await bound.runner.postgres.run(
                parse_server(str(secret.reveal())),
                bound.hosts,
                Statement("SELECT 1; COMMIT; DELETE FROM orders", ()),
                [],
                Collected(max_rows=1, max_bytes=100),
                write=write,
                deadline=asyncio.get_running_loop().time() + 10,
            )


async def test_a_session_keeps_nothing_for_the_next_tool(shop: Shop) -> None:
    await shop.run("SELECT set_config('search_path', 'evil', false), pg_advisory_lock(7)")
    for _ in range(4):
        found = await shop.run(
            "SELECT current_setting('search_path') AS path, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks",
            returns="row",
        )
        assert found.value["path"] == '"$user", public'
    assert found.value["locks"] == 0


async def test_a_change_is_kept_or_undone_as_a_whole(shop: Shop, server: PostgresServer) -> None:
    def orders() -> list[Any]:
        with owner(server) as connection:
            return connection.execute("SELECT customer FROM orders ORDER BY 1").fetchall()

    made = await shop.run(
        "INSERT INTO orders (customer, total) SELECT id, :total FROM customers RETURNING customer",
        {"total": "9.50"},
        write=True,
        confirm=False,
        maxRows=2,
    )
    assert made.value == {"rows": [{"customer": 1}, {"customer": 2}], "truncated": True, "affected": 3}
    assert orders() == [(1,), (2,), (3,)]
    failed = await shop.run("INSERT INTO orders (customer) VALUES (1), (99)", write=True, confirm=False)
    assert (failed.error.kind, failed.error.partial_side_effects) == (Kind.CONFLICT, False)
    assert orders() == [(1,), (2,), (3,)]
    gone = await shop.run("DELETE FROM orders", write=True, confirm=False)
    assert gone.value == {"rows": [], "truncated": False, "affected": 3}
    slow = await shop.run(
        "WITH a AS (INSERT INTO orders (customer) VALUES (1) RETURNING 1) SELECT pg_sleep(600) FROM a",
        write=True,
        confirm=False,
        timeoutMs=300,
    )
    assert slow.error.kind is Kind.TIMEOUT
    assert orders() == []


async def test_a_large_result_is_read_only_as_far_as_the_tool_allows(shop: Shop, server: PostgresServer) -> None:
    many = await shop.run("SELECT generate_series(1, 10000000000) AS n", maxRows=5, timeoutMs=20_000)
    assert ([row["n"] for row in many.value["rows"]], many.value["truncated"]) == ([1, 2, 3, 4, 5], True)
    wide = await shop.run("SELECT repeat('x', 1000) AS x, generate_series(1, 10000000)", maxBytes=3_500)
    assert (len(wide.value["rows"]), wide.value["truncated"]) == (3, True)
    await until(lambda: sessions(server, "state = 'active'") == 0)


async def test_a_row_that_is_too_large_is_not_read_into_memory(shop: Shop, server: PostgresServer) -> None:
    before = memory()
    writing: dict[str, Any] = {"write": True, "confirm": False}
    for statement, most, options in (
        ("SELECT repeat('x', 100000000) AS a", 4_000_000, {}),
        ("SELECT remark()", 4_000_000, {}),
        ("INSERT INTO orders (customer) SELECT remark()", 1_000_000, writing),
        ("INSERT INTO orders (customer) VALUES (1) RETURNING repeat('x', 100000000) AS a", 4_000_000, writing),
    ):
        result = await shop.run(statement, timeoutMs=60_000, **options)
        assert result.error.kind is Kind.LIMIT_EXCEEDED, statement
        cure = "leave large columns out, or raise maxBytes of the tool"
        assert result.error.message == f"the server sends more than {most} bytes for one row; {cure}"
    # Read whole, a row has three copies: in libpq, in its answer, in Python.
    assert memory() - before < 100_000_000
    many = await shop.run("SELECT repeat('x', 900000) AS a FROM generate_series(1, 100)", maxBytes=2_000_000)
    assert many.meta["truncated"] == "more than 2000000 bytes"
    with owner(server) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    await until(lambda: sessions(server, "state = 'active'") == 0)


def memory() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_a_role_with_its_own_notation_of_values_reads_the_same(shop: Shop, server: PostgresServer) -> None:
    shop.crib.secrets.set("STRANGER", url(server, "stranger"))
    result = await shop.run(
        "SELECT '90 seconds'::interval AS a, '2026-01-31'::date AS b, '2026-01-31 10:00+00'::timestamptz AS c, decode('00ff', 'hex') AS d",
        database="${secret:STRANGER}",
        returns="row",
    )
    assert result.value == {"a": 90.0, "b": "2026-01-31", "c": "2026-01-31T15:30:00+05:30", "d": "AP8="}


async def test_json_that_is_nested_too_deeply_is_told_as_such(shop: Shop) -> None:
    result = await shop.run("SELECT (repeat('[', 5000) || repeat(']', 5000))::jsonb AS a")
    assert result.error.kind is Kind.PERMANENT
    assert result.error.message.startswith("a JSON value is nested too deeply; select a part of it")


async def test_rows_reach_a_client_that_listens_one_by_one(shop: Shop) -> None:
    name = shop.store("SELECT n FROM generate_series(1, 450) AS n", returns="list")
    events = [event async for event in shop.crib.stream(name)]
    assert [event.value for event in events if isinstance(event, Chunk)] == [{"n": n} for n in range(1, 451)]


async def test_a_statement_that_takes_too_long_ends_on_the_server_too(shop: Shop, server: PostgresServer) -> None:
    result = await shop.run(SLEEP, timeoutMs=200)
    assert result.error.kind is Kind.TIMEOUT
    await until(lambda: sessions(server, "query LIKE '%pg_sleep%' AND state = 'active'") == 0)
    assert (await shop.run("SELECT 1", returns="value")).value == 1


async def test_a_session_that_the_server_does_not_reset_ends_with_its_crib(
    shop: Shop, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []

    async def wait_for_ever(connection: PostgresConnection) -> None:
        used.append(connection)
        await asyncio.Event().wait()

    monkeypatch.setattr(PostgresConnection, "reset", wait_for_ever)
    await until(lambda: sessions(server) == 0)
    given: Any = {"egress": {"private": [server.address]}, "sql_tools": {"hosts": [server.address]}}
    async with Crib(shop.root, **given) as crib:
        assert (await crib.call(shop.store("SELECT 1", returns="value"))).value == 1
    assert [connection.is_usable for connection in used] == [False]
    await until(lambda: sessions(server) == 0)


async def test_a_caller_that_leaves_ends_its_statement_on_the_server(shop: Shop, server: PostgresServer) -> None:
    call = asyncio.ensure_future(shop.run(SLEEP, timeoutMs=600_000))
    await until(lambda: sessions(server, "query LIKE '%pg_sleep%' AND state = 'active'") == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, 20)
    await until(lambda: sessions(server, "query LIKE '%pg_sleep%' AND state = 'active'") == 0)


async def test_connections_are_bounded_shared_and_closed(shop: Shop, server: PostgresServer) -> None:
    await until(lambda: sessions(server) == 0)
    name = shop.store("SELECT pg_sleep(0.05)")
    async with asyncio.timeout(30):
        results = await asyncio.gather(*(shop.call(name) for _ in range(20)))
    assert all(results)
    assert 1 <= await asyncio.to_thread(lambda: sessions(server)) <= 3
    await shop.crib.close()
    await until(lambda: sessions(server) == 0)


async def test_a_role_that_reaches_beyond_its_database_is_refused(shop: Shop, server: PostgresServer) -> None:
    shop.crib.secrets.set("OWNER", f"postgresql://postgres:owner-password@{server.address}/shop")
    shop.crib.secrets.set("MIGHTY", url(server, "mighty"))
    # A role that is a member of a superuser can take that one on in the middle of a statement.
    shop.crib.secrets.set("DEPUTY", url(server, "deputy"))
    for name in ("OWNER", "MIGHTY", "DEPUTY"):
        result = await shop.run("SELECT 1", database=f"${{secret:{name}}}")
        assert result.error.kind is Kind.BLOCKED
        assert "the role of the URL can read files of the server or start programs there" in result.error.message


async def test_a_password_is_in_no_error_and_no_journal(shop: Shop, server: PostgresServer, tmp_path: Path) -> None:
    wrong = "wrong-and-secret-word"
    shop.crib.secrets.set("WRONG", f"postgresql://reader:{wrong}@{server.address}/shop")
    refused = await shop.run("SELECT 1", database="${secret:WRONG}")
    assert refused.error.kind is Kind.AUTH
    assert "password authentication failed" in refused.error.message
    parts = await shop.run(
        "SELECT 1", database=f"postgresql://reader:${{secret:WORD}}@{server.address}/shop", returns="value"
    )
    assert parts.value == 1
    missing = await shop.run("SELECT 1", database="${secret:NOWHERE}")
    assert (missing.refused, "crib secret set NOWHERE" in missing.error.message) == (True, True)
    await shop.crib.close()
    written = b"".join(path.read_bytes() for path in (tmp_path / ".toolcrib").rglob("*") if path.is_file())
    for word in (wrong, PASSWORD, "pass%3Aword%2Fwith%25signs"):
        assert word.encode() not in written
        assert word not in json.dumps([refused.to_json(), missing.to_json()])


async def test_a_server_that_falls_is_told_and_used_again_once_it_is_back(tmp_path: Path) -> None:
    with running_server() as server:
        with owner(server, "postgres") as connection:
            connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reader-word'")
        (tmp_path / "toolcrib.toml").write_text("")
        given: Any = {"egress": {"private": [server.address]}, "sql_tools": {"hosts": [server.address]}}
        async with Crib(tmp_path, **given) as crib:
            crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
            crib.secrets.set("SHOP", f"postgresql://reader:reader-word@{server.address}/postgres")
            shop = Shop(tmp_path, crib)
            shop.database = "${secret:SHOP}"
            assert (await shop.run("SELECT 1", returns="value")).value == 1
            call = asyncio.ensure_future(shop.run(SLEEP, timeoutMs=60_000))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.stop)
            fallen = await asyncio.wait_for(call, 20)
            assert (fallen.error.kind, fallen.error.retryable) == (Kind.TRANSIENT, True), fallen.error
            down = await shop.run("SELECT 1")
            assert (down.error.kind, server.address in down.error.message) == (Kind.TRANSIENT, True)
            await asyncio.to_thread(server.start)
            assert (await shop.run("SELECT 1", returns="value")).value == 1
