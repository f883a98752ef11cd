"""Requests as rows: read, found, followed by others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Filed, Priority, Status
from toolcrib.queues.documents import HISTORY_EVENTS, cut, is_text, read_allowance
from toolcrib.queues.refusals import unknown

if TYPE_CHECKING:
    import sqlite3

PRIORITIES = tuple(Priority)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A transaction that changes rows, and the time that it writes on them."""

    connection: sqlite3.Connection
    at: str


def read_row(connection: sqlite3.Connection, request_id: str) -> sqlite3.Row | None:
    """The row of a request."""
    if not is_text(request_id):
        return None
    row: sqlite3.Row | None = connection.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone()
    return row


def known_row(connection: sqlite3.Connection, request_id: str) -> sqlite3.Row:
    """The row of a request that has to be there."""
    row = read_row(connection, request_id)
    if row is None:
        raise unknown(request_id)
    return row


def leader_of(connection: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row:
    """The row of the request that is built in its place, which may be itself."""
    return known_row(connection, row["merged_into"]) if row["merged_into"] else row


def open_leader(connection: sqlite3.Connection, wish: str) -> sqlite3.Row | None:
    """The request that fulfils a wish, if one is about to."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM requests WHERE wish = ? AND merged_into = '' AND status IN ('pending', 'building')", (wish,)
    ).fetchone()
    return row


def followers(connection: sqlite3.Connection, leader_id: str, *statuses: Status) -> list[sqlite3.Row]:
    """Those that follow a leader and have one of the statuses, the oldest first."""
    rows = connection.execute(
        "SELECT * FROM requests WHERE merged_into = ? AND merged_into != '' ORDER BY number", (leader_id,)
    ).fetchall()
    return [row for row in rows if row["status"] in statuses]


def write_event(change: Change, number: int, step: str, text: str = "") -> None:
    """Add an event to the history of a request, and forget the one that is too old by now."""
    connection = change.connection
    connection.execute("UPDATE requests SET events = events + 1, updated_at = ? WHERE number = ?", (change.at, number))
    (last,) = connection.execute("SELECT events FROM requests WHERE number = ?", (number,)).fetchone()
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (number, last, change.at, cut(step), cut(text)))
    connection.execute("DELETE FROM events WHERE request = ? AND number <= ?", (number, last - HISTORY_EVENTS))


def to_filed(row: sqlite3.Row) -> Filed:
    """A row as everyone else knows it."""
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
