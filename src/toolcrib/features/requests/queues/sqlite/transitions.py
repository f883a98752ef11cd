"""How requests end, and how they come back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.reader import same_text, spell_id
from toolcrib.features.requests.document.writer import with_id
from toolcrib.features.requests.queues.records import (
    Step,
    cannot_be_retried,
    cut,
    is_over,
    is_text,
    not_text,
    other_text,
    write_allowance,
)
from toolcrib.features.requests.queues.sqlite.leases import held_by, let_go
from toolcrib.features.requests.queues.sqlite.tables import (
    Change,
    add_edge,
    followers,
    known_row,
    leader_of,
    open_leader,
    read_row,
    release,
    to_filed,
    write_event,
)
from toolcrib.model.toolrequest import Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from toolcrib.model.toolrequest import Allowance, Claim, Filed, Made, ToolRequest


# MERGED toolcrib.queues.embedded.filing

# Keeping a request: under its own id or the next number, and as a follower where the same wish is open.


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


OPEN = (Status.PENDING, Status.BUILDING)


def finish(change: Change, claim: Claim, made: Made) -> bool:
    """It is ready, and so is everyone who follows; every experiment that waits for the wish is released."""
    row = held_by(change.connection, claim)
    if row is None:
        return False
    _end(change, row, Status.READY, Step.READY, tool=cut(made.address))
    release(change, row["wish"])
    return True


def fail(change: Change, claim: Claim, error: str) -> bool:
    """It came to nothing, and so did everyone who follows."""
    row = held_by(change.connection, claim)
    if row is None:
        return False
    _end(change, row, Status.FAILED, Step.FAILED, error=cut(error))
    return True


def cancel(change: Change, request_id: str, reason: str) -> None:
    """Nobody wants it any more; a leader hands over to the oldest that follows."""
    connection = change.connection
    row = known_row(connection, request_id)
    if Status(row["status"]).is_final:
        raise is_over(request_id, Status(row["status"]))
    heirs = [] if row["merged_into"] else followers(connection, request_id, *OPEN)
    if row["merged_into"]:
        connection.execute("UPDATE requests SET wishes = wishes - 1 WHERE id = ?", (row["merged_into"],))
    if heirs:
        _hand_over(change, row, heirs)
    _end(change, row, Status.CANCELLED, Step.CANCELLED, error=cut(reason))


def retry(change: Change, request_id: str) -> None:
    """Have it built again, with everything that failed with it; where the same wish is open, that one is followed."""
    connection = change.connection
    row = known_row(connection, request_id)
    if row["status"] not in {Status.FAILED, Status.CANCELLED}:
        raise cannot_be_retried(request_id, Status(row["status"]))
    back = _together(connection, row)
    for each in back:
        write_event(change, each["number"], Step.RETRIED)
    leader = open_leader(connection, row["wish"])
    if leader is None:
        leader, *back = back
        connection.execute(
            "UPDATE requests SET status = ?, error = '', merged_into = '', wishes = 1 WHERE number = ?",
            (Status.PENDING, leader["number"]),
        )
        leader = known_row(connection, leader["id"])
    if back:
        follow(change, back, leader)


def allow(change: Change, request_id: str, allowance: Allowance) -> None:
    """Keep what the operator adds, for everyone who is built with it, or would come back with it."""
    connection = change.connection
    row = known_row(connection, request_id)
    if row["status"] == Status.READY:
        raise is_over(request_id, Status.READY)
    for each in _together(connection, row):
        connection.execute(
            "UPDATE requests SET allowance = ? WHERE number = ?", (write_allowance(allowance), each["number"])
        )
        write_event(change, each["number"], Step.ALLOWED)


def _together(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    """The leader and those that share its lot, open or failed; what is cancelled, or failed otherwise, is alone."""
    leader = leader_of(connection, row)
    for statuses in (OPEN, (Status.FAILED,)):
        if row["status"] in statuses and leader["status"] in statuses:
            return [leader, *followers(connection, leader["id"], *statuses)]
    return [row]


def _hand_over(change: Change, row: sqlite3.Row, heirs: Sequence[sqlite3.Row]) -> None:
    """Have the oldest of those who follow built instead, from the beginning."""
    connection = change.connection
    connection.execute("UPDATE requests SET wishes = wishes - ? WHERE number = ?", (len(heirs), row["number"]))
    heir, *others = heirs
    connection.execute(
        "UPDATE requests SET status = ?, merged_into = '' WHERE number = ?", (Status.PENDING, heir["number"])
    )
    write_event(change, heir["number"], Step.RETURNED, f"{row['id']} was cancelled")
    if others:
        follow(change, others, known_row(connection, heir["id"]))


def _end(change: Change, row: sqlite3.Row, status: Status, step: Step, *, error: str = "", tool: str = "") -> None:
    connection = change.connection
    ended = [row] if row["merged_into"] else [row, *followers(connection, row["id"], *OPEN)]
    let_go(change, row, status)
    for each in ended:
        connection.execute("UPDATE requests SET error = ?, tool = ? WHERE number = ?", (error, tool, each["number"]))
        write_event(change, each["number"], step, error or tool)
