"""Statements end: at their limit, when their caller leaves, when their file is locked, and with the crib."""

import asyncio
import fcntl
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sql_shop import Shop

from toolcrib import Crib, Kind, ToolError
from toolcrib.infra.files.jail import Jail, JailedFile, locked

ENDLESS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers"
PATIENCE = 20


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("toolcrib-sql")]


async def until(reached: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(0.01)


async def test_a_statement_that_takes_too_long_is_interrupted(shop: Shop) -> None:
    result = await asyncio.wait_for(shop.run(ENDLESS, timeoutMs=100), PATIENCE)
    assert result.error.kind is Kind.TIMEOUT
    assert result.error.message == "the statement was stopped after 0.1 s; ask for less, or allow it more time"
    assert not result.error.partial_side_effects
    # The thread is free again.
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
    name = shop.store(ENDLESS, timeoutMs=600_000)
    call = asyncio.ensure_future(shop.call(name))
    await until(threads)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, PATIENCE)
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*(shop.call(shop.store("SELECT 1")) for _ in range(12)))
    assert all(results)


async def test_many_statements_that_are_cancelled_leave_every_thread_free(shop: Shop) -> None:
    name = shop.store(ENDLESS, timeoutMs=600_000)
    calls = [asyncio.ensure_future(shop.call(name)) for _ in range(30)]
    await until(lambda: len(threads()) >= 8)
    for call in calls:
        call.cancel()
    async with asyncio.timeout(PATIENCE):
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        assert (await shop.run("SELECT 1", returns="value")).value == 1
    assert len(threads()) <= 8


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
    name = shop.store(ENDLESS, timeoutMs=600_000)
    before = threads()
    async with Crib(tmp_path) as crib:
        call = asyncio.ensure_future(crib.call(name))
        await until(lambda: len(threads()) > len(before))
    result = await asyncio.wait_for(call, PATIENCE)
    assert result.error.kind is Kind.CANCELLED
    assert threads() == before


async def test_writers_of_two_cribs_change_each_row_once(tmp_path: Path, shop: Shop) -> None:
    name = shop.store("UPDATE orders SET total = total + 1", write=True, confirm=False)
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("INSERT INTO orders VALUES (1, 1, 0)")
    database.close()
    async with Crib(tmp_path) as other, asyncio.timeout(PATIENCE):
        results: list[Any] = await asyncio.gather(*(crib.call(name) for crib in (shop.crib, other) for _ in range(10)))
    assert [result.error for result in results] == [None] * 20
    assert shop.rows("SELECT total FROM orders") == [("20",)]


def test_a_jail_opens_no_file_that_a_database_of_this_process_has_locked(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(b"data")
    with Jail(tmp_path, is_sensitive=lambda _: False) as jail:
        file = jail.find("a.sqlite")
        assert file == JailedFile(str(tmp_path / "a.sqlite"), file.identity)
        with locked(file), locked(file):
            for act in (lambda: jail.read("a.sqlite", 10), lambda: jail.append("a.sqlite", b"x")):
                with pytest.raises(ToolError, match="is a database that a tool uses right now"):
                    act()
            jail.write("b.txt", b"x")
            assert jail.read("b.txt", 10) == b"x"
        assert jail.read("a.sqlite", 10) == b"data"


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
