"""Keeping a request: under its own id or the next number, and as a follower where the same wish is open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Status
from toolcrib.pure.requests import same_text, spell_id, with_id
from toolcrib.queues.documents import Step, is_text
from toolcrib.queues.embedded.experiments import add_edge
from toolcrib.queues.embedded.rows import Change, known_row, open_leader, read_row, to_filed, write_event
from toolcrib.queues.refusals import not_text, other_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from toolcrib.model.toolrequest import Filed, ToolRequest


def file_request(change: Change, request: ToolRequest, day: str) -> Filed:
    """Keep a request, and what is known of it from then on."""
    for what in ("id", "name", "text", "wish", "experiment"):
        if not is_text(getattr(request, what)):
            raise not_text(f"the {what} of the request")
    connection = change.connection
    there = read_row(connection, request.id) if request.id else None
    if there is not None and not same_text(there["text"], request.text):
        raise other_text(request.id)
    if there is not None:
        return to_filed(there)
    leader = open_leader(connection, request.wish)
    if leader is not None and not request.id:
        _become_part(change, leader, request)
        return to_filed(known_row(connection, leader["id"]))
    if not request.id:
        request = _numbered(change, request, day)
    row = _insert(change, request)
    add_edge(connection, request.experiment, row["number"])
    if leader is not None:
        follow(change, [row], leader)
    return to_filed(known_row(connection, request.id))


def follow(change: Change, rows: Sequence[sqlite3.Row], leader: sqlite3.Row) -> None:
    """Have the leader built in place of these: they share its status and its allowance, and all the highest priority."""
    connection = change.connection
    for row in rows:
        connection.execute(
            "UPDATE requests SET status = ?, error = '', merged_into = ?, wishes = 1, allowance = ? WHERE number = ?",
            (leader["status"], leader["id"], leader["allowance"], row["number"]),
        )
        write_event(change, row["number"], Step.MERGED, leader["id"])
    connection.execute("UPDATE requests SET wishes = wishes + ? WHERE number = ?", (len(rows), leader["number"]))
    _raise_to(connection, leader, min(row["rank"] for row in (leader, *rows)))


def _become_part(change: Change, leader: sqlite3.Row, request: ToolRequest) -> None:
    connection = change.connection
    connection.execute("UPDATE requests SET wishes = wishes + 1 WHERE number = ?", (leader["number"],))
    write_event(change, leader["number"], Step.MERGED)
    _raise_to(connection, leader, min(leader["rank"], request.priority.rank))
    add_edge(connection, request.experiment, leader["number"])


def _raise_to(connection: sqlite3.Connection, leader: sqlite3.Row, rank: int) -> None:
    connection.execute("UPDATE requests SET rank = ? WHERE number = ? AND rank > ?", (rank, leader["number"], rank))
    connection.execute(
        "UPDATE requests SET rank = ? WHERE merged_into = ? AND merged_into != '' AND rank > ?",
        (rank, leader["id"], rank),
    )


def _numbered(change: Change, request: ToolRequest, day: str) -> ToolRequest:
    """The request under the next number of the day that nobody took by himself."""
    connection = change.connection
    found = connection.execute("SELECT last FROM days WHERE day = ?", (day,)).fetchone()
    number = found["last"] + 1 if found else 1
    while read_row(connection, spell_id(day, number)) is not None:
        number += 1
    connection.execute("INSERT OR REPLACE INTO days VALUES (?, ?)", (day, number))
    request_id = spell_id(day, number)
    return replace(request, id=request_id, text=with_id(request.text, request_id))


def _insert(change: Change, request: ToolRequest) -> sqlite3.Row:
    change.connection.execute(
        "INSERT INTO requests (id, name, status, rank, text, wish, experiment, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request.id,
            request.name,
            Status.PENDING,
            request.priority.rank,
            request.text,
            request.wish,
            request.experiment,
            change.at,
            change.at,
        ),
    )
    row = known_row(change.connection, request.id)
    write_event(change, row["number"], Step.FILED)
    return row
