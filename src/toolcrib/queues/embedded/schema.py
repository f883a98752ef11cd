"""The tables of a queue file.

`number` is the order of filing. A request whose `merged_into` is empty leads; `rank` is its priority. `fence` counts claims for
ever, and `events` the events that were ever written. A lease is alive on the boot of the machine that it was given on, between
two readings of its monotonic clock.
"""

from __future__ import annotations

import sqlite3

LAYOUT = 1
APPLICATION = 0x54635175  # how SQLite files tell each other apart

# Where the head of a file says how it is written and read, and what stands there if that is with a write-ahead log.
_MODES = slice(18, 20)
_WITH_LOG = b"\x02\x02"

_TABLES = (
    """
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        rank INTEGER NOT NULL,
        text TEXT NOT NULL,
        wish TEXT NOT NULL,
        experiment TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        tool TEXT NOT NULL DEFAULT '',
        merged_into TEXT NOT NULL DEFAULT '',
        owner TEXT NOT NULL DEFAULT '',
        held INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        wishes INTEGER NOT NULL DEFAULT 1,
        allowance TEXT NOT NULL DEFAULT '',
        fence INTEGER NOT NULL DEFAULT 0,
        boot TEXT NOT NULL DEFAULT '',
        leased_from REAL NOT NULL DEFAULT 0,
        leased_until REAL NOT NULL DEFAULT 0,
        events INTEGER NOT NULL DEFAULT 0
    )
    """,
    # The query that claims repeats these words: only then SQLite may use the index for it.
    """
    CREATE INDEX claimable ON requests (rank, number)
    WHERE merged_into = '' AND held = 0 AND status IN ('pending', 'building')
    """,
    "CREATE INDEX followers ON requests (merged_into, number) WHERE merged_into != ''",
    "CREATE INDEX wishes ON requests (wish, number)",
    "CREATE INDEX names ON requests (name, number)",
    "CREATE INDEX statuses ON requests (status, number)",
    """
    CREATE TABLE events (
        request INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at TEXT NOT NULL,
        step TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (request, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE edges (
        experiment TEXT NOT NULL,
        request INTEGER NOT NULL,
        released_at TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (experiment, request)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX waiting ON edges (request) WHERE released_at = ''",
    "CREATE TABLE days (day TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
)


def new_file() -> bytes:
    """A queue file without requests.

    Whole from the first moment on: of many processes that made tables in an empty file, some would be refused.
    """
    connection = sqlite3.connect(":memory:")
    try:
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.commit()
        data = bytearray(connection.serialize())
    finally:
        connection.close()
    data[_MODES] = _WITH_LOG
    return bytes(data)
