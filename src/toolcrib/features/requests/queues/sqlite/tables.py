"""The tables of a queue file, and reading and writing their rows.

`number` is the order of filing. A request whose `merged_into` is empty leads; `rank` is its priority. `fence` counts
claims and `events` counts events; neither ever decreases. `wish` is the fingerprint of what is asked for, and `wishes` counts
the requests that ask for it. A lease is alive on the boot of the machine that it was given on, between
two readings of its monotonic clock. For each request that an experiment waits for there is an edge, which is released once.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.requests.queues.records import HISTORY_EVENTS, Step, cut, is_text, read_allowance, unknown
from toolcrib.model.toolrequest import Experiment, Filed, Priority, Status

if TYPE_CHECKING:
    from collections.abc import Sequence


LAYOUT = 1
PRIORITIES = tuple(Priority)
APPLICATION = 0x54635175  # how SQLite files tell each other apart

# The bytes of the file header that say its write and read version; 2 means a write-ahead log.
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
    # The query of a claim repeats this condition: SQLite uses a partial index only then.
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
    """The bytes of a queue file without requests.

    The file is created complete: of many processes that created tables in an empty file, some would fail.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A write transaction, its time, and the day whose numbers it assigns."""

    connection: sqlite3.Connection
    at: str
    day: str


def read_row(connection: sqlite3.Connection, request_id: str) -> sqlite3.Row | None:
    """The row of a request."""
    if not is_text(request_id):
        return None
    row: sqlite3.Row | None = connection.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone()
    return row


def known_row(connection: sqlite3.Connection, request_id: str) -> sqlite3.Row:
    """The row of a request; raises NOT_FOUND if there is none."""
    row = read_row(connection, request_id)
    if row is None:
        raise unknown(request_id)
    return row


def leader_of(connection: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row:
    """The row of the leader, which may be itself."""
    return known_row(connection, row["merged_into"]) if row["merged_into"] else row


def open_leader(connection: sqlite3.Connection, wish: str) -> sqlite3.Row | None:
    """The open leader of the requests with this fingerprint, if there is one."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM requests WHERE wish = ? AND merged_into = '' AND status IN ('pending', 'building')", (wish,)
    ).fetchone()
    return row


def followers(connection: sqlite3.Connection, leader_id: str, *statuses: Status) -> list[sqlite3.Row]:
    """The followers of a leader that have one of the statuses, the oldest first."""
    rows = connection.execute(
        "SELECT * FROM requests WHERE merged_into = ? AND merged_into != '' ORDER BY number", (leader_id,)
    ).fetchall()
    return [row for row in rows if row["status"] in statuses]


def write_event(change: Change, number: int, step: str, text: str = "") -> None:
    """Add an event to the history of a request, and drop the oldest one over the limit."""
    connection = change.connection
    connection.execute("UPDATE requests SET events = events + 1, updated_at = ? WHERE number = ?", (change.at, number))
    (last,) = connection.execute("SELECT events FROM requests WHERE number = ?", (number,)).fetchone()
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (number, last, change.at, cut(step), cut(text)))
    connection.execute("DELETE FROM events WHERE request = ? AND number <= ?", (number, last - HISTORY_EVENTS))


def to_filed(row: sqlite3.Row) -> Filed:
    """The `Filed` of a row."""
    return Filed(
        id=row["id"],
        name=row["name"],
        status=Status(row["status"]),
        priority=PRIORITIES[row["rank"]],
        text=row["text"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        experiment=row["experiment"],
        error=row["error"],
        tool=row["tool"],
        merged_into=row["merged_into"],
        owner=row["owner"],
        held=bool(row["held"]),
        attempts=row["attempts"],
        wishes=row["wishes"],
        allowance=read_allowance(row["allowance"]),
    )


def add_edge(connection: sqlite3.Connection, experiment: str, number: int) -> None:
    """Make an experiment, if one is named, wait for a request."""
    if experiment:
        connection.execute("INSERT OR IGNORE INTO edges (experiment, request) VALUES (?, ?)", (experiment, number))


def release(change: Change, wish: str) -> None:
    """Release every experiment that waits for a request with this fingerprint."""
    connection = change.connection
    edges = connection.execute(
        "SELECT edges.experiment, request FROM edges JOIN requests ON edges.request = requests.number"
        " WHERE wish = ? AND released_at = '' ORDER BY request, edges.experiment",
        (wish,),
    ).fetchall()
    for experiment, number in edges:
        connection.execute(
            "UPDATE edges SET released_at = ? WHERE experiment = ? AND request = ?", (change.at, experiment, number)
        )
        write_event(change, number, Step.RELEASED, experiment)


def read_experiments(connection: sqlite3.Connection) -> list[Experiment]:
    """Every experiment that waits or waited, in the order in which they were first named."""
    rows = connection.execute(
        "SELECT edges.experiment, released_at, id, name FROM edges JOIN requests ON edges.request = requests.number"
        " ORDER BY requests.number"
    ).fetchall()
    edges: dict[str, list[sqlite3.Row]] = {}
    for row in rows:
        edges.setdefault(row["experiment"], []).append(row)
    return [_to_experiment(name, found) for name, found in edges.items()]


def _to_experiment(name: str, edges: Sequence[sqlite3.Row]) -> Experiment:
    missing = tuple(dict.fromkeys(edge["name"] for edge in edges if not edge["released_at"]))
    return Experiment(
        id=name,
        ready=not missing,
        waits_for=missing,
        requests=tuple(edge["id"] for edge in edges),
        released_at="" if missing else max(edge["released_at"] for edge in edges),
    )
