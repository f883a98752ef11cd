"""How requests end, and how they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Status
from toolcrib.queues.documents import Step, cut, write_allowance
from toolcrib.queues.embedded.experiments import release
from toolcrib.queues.embedded.filing import follow
from toolcrib.queues.embedded.leases import held_by, let_go
from toolcrib.queues.embedded.rows import Change, followers, known_row, leader_of, open_leader, write_event
from toolcrib.queues.refusals import cannot_be_retried, is_over

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from toolcrib.model.toolrequest import Allowance, Claim, Made

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
