"""Statements end: at their limit, when their caller leaves, when their file is locked, and with the crib."""

import asyncio
import fcntl
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import Shop

from toolcrib import Crib, Kind
from toolcrib.infra.files.jail import Jail

ENDLESS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers"
READING = ENDLESS + ", customers"
PATIENCE = 20


def is_read(path: Path) -> bool:
    """Whether a statement holds the database open for reading."""
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        other.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return True
    finally:
        other.close()
    return False


async def until(reached: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.01)


async def test_a_statement_that_takes_too_long_is_interrupted(shop: Shop) -> None:
    result = await asyncio.wait_for(shop.run(ENDLESS, timeoutMs=100), PATIENCE)
    assert result.error.kind is Kind.TIMEOUT
    assert result.error.message == "the statement was stopped after 0.1 s; ask for less, or allow it more time"
    assert not result.error.partial_side_effects
    async with asyncio.timeout(PATIENCE):
        assert (await shop.run("SELECT 1", returns="value")).value == 1


async def test_the_event_loop_goes_on_while_a_statement_runs(shop: Shop) -> None:
    call = asyncio.ensure_future(shop.run(ENDLESS, timeoutMs=400))
    turns = 0
    while not call.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 20


async def test_a_caller_that_leaves_ends_its_statement(shop: Shop) -> None:
    name = shop.store(READING, timeoutMs=600_000)
    call = asyncio.ensure_future(shop.call(name))
    await until(lambda: is_read(shop.root / "shop.sqlite"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, PATIENCE)
    assert not is_read(shop.root / "shop.sqlite")
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*(shop.call(shop.store("SELECT 1")) for _ in range(12)))
    assert all(results)


async def test_many_statements_that_are_cancelled_leave_every_place_free(shop: Shop) -> None:
    name = shop.store(READING, timeoutMs=600_000)
    calls = [asyncio.ensure_future(shop.call(name)) for _ in range(30)]
    await until(lambda: is_read(shop.root / "shop.sqlite"))
    for call in calls:
        call.cancel()
    async with asyncio.timeout(PATIENCE):
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        ones = await asyncio.gather(*(shop.run("SELECT 1", returns="value") for _ in range(8)))
    assert [one.value for one in ones] == [1] * 8


async def test_a_reader_that_leaves_a_stream_leaves_no_lock(shop: Shop) -> None:
    name = shop.store(ENDLESS.replace("count(*)", "n"), returns="list", maxRows=10_000)
    events = shop.crib.stream(name)
    async for _ in events:
        break
    await events.aclose()
    database = sqlite3.connect(shop.root / "shop.sqlite", timeout=PATIENCE)
    database.execute("DELETE FROM orders")
    database.commit()
    database.close()


async def test_a_locked_database_is_waited_for_and_then_told(shop: Shop) -> None:
    other = sqlite3.connect(shop.root / "shop.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    result = await shop.run("SELECT count(*) FROM customers", timeoutMs=300)
    assert (result.error.kind, result.error.retryable) == (Kind.TRANSIENT, True)
    assert result.error.message == "another program has locked the database; try again later"
    call = asyncio.ensure_future(shop.run("UPDATE customers SET city = 'Rom'", write=True, confirm=False))
    await asyncio.sleep(0.1)
    assert not call.done()
    other.execute("COMMIT")
    assert (await asyncio.wait_for(call, PATIENCE)).value["affected"] == 4
    other.close()


async def test_a_change_that_is_interrupted_is_undone(shop: Shop) -> None:
    slow = f"UPDATE customers SET credit = ({ENDLESS})"
    result = await shop.run(slow, write=True, confirm=False, timeoutMs=100)
    assert result.error.kind is Kind.TIMEOUT
    assert shop.rows("SELECT sum(credit) FROM customers") == [(15.75,)]


async def test_a_crib_that_closes_ends_what_runs(tmp_path: Path, shop: Shop) -> None:
    name = shop.store(READING, timeoutMs=600_000)
    async with Crib(tmp_path) as crib:
        call = asyncio.ensure_future(crib.call(name))
        await until(lambda: is_read(tmp_path / "shop.sqlite"))
    result = await asyncio.wait_for(call, PATIENCE)
    assert result.error.kind is Kind.CANCELLED
    assert not is_read(tmp_path / "shop.sqlite")


async def test_writers_of_two_cribs_change_each_row_once(tmp_path: Path, shop: Shop) -> None:
    name = shop.store("UPDATE orders SET total = total + 1", write=True, confirm=False)
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("INSERT INTO orders VALUES (1, 1, 0)")
    database.close()
    async with Crib(tmp_path) as other, asyncio.timeout(PATIENCE):
        results: list[Any] = await asyncio.gather(*(crib.call(name) for crib in (shop.crib, other) for _ in range(10)))
    assert [result.error for result in results] == [None] * 20
    assert shop.rows("SELECT total FROM orders") == [("20",)]


def test_to_look_at_a_file_releases_no_lock_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"data")
    probe = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"

    def is_free() -> bool:
        words = [sys.executable, "-c", probe, str(path)]
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0

    with path.open("r+") as owner, Jail(tmp_path, is_sensitive=lambda _: False) as jail:
        fcntl.lockf(owner, fcntl.LOCK_EX)
        jail.find("a.sqlite", to_write=True)
        assert not is_free()
    assert is_free()
