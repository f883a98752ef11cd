"""Limits: what an exact count for all processes adds to a call, beside a bare transaction of SQLite."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from run import compare, show
from toolcrib import Crib, tool

# A limited call asks once whether there is room and counts once, in one transaction; both together.
TRANSACTIONS = 6.0


@tool
def free(number: int) -> int:
    """Give back the number."""
    return number


@tool(calls_per_minute=1_000_000)
def limited(number: int) -> int:
    """Give back the number."""
    return number


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "toolcrib.toml").touch()
        connection = sqlite3.connect(Path(folder) / "bare.sqlite3", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE uses (at INTEGER)")

        async def write() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO uses VALUES (1)")
            connection.execute("COMMIT")

        async with Crib(folder, tools=[free, limited]) as crib:
            times = await compare(
                {
                    "free": lambda: crib.call("free", number=1),
                    "limited": lambda: crib.call("limited", number=1),
                    "write": write,
                },
                rounds=5,
                calls={"free": 2_000, "limited": 400, "write": 400},
            )
        connection.close()
    added = times["limited"] - times["free"]
    return show(
        "A rate that holds for all processes",
        [
            ("a call without a limit", times["free"], None, None),
            ("a transaction of SQLite with one insert", times["write"], 1.0, None),
            ("what a limit adds to a call", added, added / times["write"], TRANSACTIONS),
        ],
    )
