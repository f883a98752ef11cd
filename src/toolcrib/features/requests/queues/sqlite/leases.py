"""Who builds what: claims, and leases that end by themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.features.requests.queues.records import Step, cut, read_allowance
from toolcrib.features.requests.queues.sqlite.tables import Change, leader_of, read_row, write_event
from toolcrib.infra.storage.file_store import BOOT_ID
from toolcrib.model.toolrequest import Claim, Status

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True, kw_only=True, slots=True)
class Clock:
    """A reading of the monotonic clock, and the boot of the machine that it counts from.

    A clock that is set has no say in a lease, and after a restart none is alive.
    """

    boot: str
    ticks: float

    def sees_alive(self, row: sqlite3.Row) -> bool:
        """Whether the lease of a request keeps others from it."""
        return bool(row["boot"] == self.boot and row["leased_from"] <= self.ticks < row["leased_until"])


def read_clock() -> Clock:
    """The clock of this machine."""
    return Clock(boot=_boot(), ticks=time.monotonic())


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def claim_next(change: Change, clock: Clock, owner: str, seconds: float) -> Claim | None:
    """Take the most urgent request that nobody builds, of those the oldest."""
    row = change.connection.execute(
        "SELECT * FROM requests INDEXED BY claimable"
        " WHERE merged_into = '' AND held = 0 AND status IN ('pending', 'building')"
        " AND NOT (boot = ? AND leased_from <= ? AND ? < leased_until) ORDER BY rank, number LIMIT 1",
        (clock.boot, clock.ticks, clock.ticks),
    ).fetchone()
    return None if row is None else _take(change, clock, row, owner, seconds)


def claim_one(change: Change, clock: Clock, owner: str, seconds: float, request_id: str) -> Claim | None:
    """Take this very request, or the one that is built in its place; also one that is held."""
    asked = read_row(change.connection, request_id)
    if asked is None or Status(asked["status"]).is_final:
        return None
    row = leader_of(change.connection, asked)
    return None if clock.sees_alive(row) else _take(change, clock, row, owner, seconds)


def renew(change: Change, clock: Clock, claim: Claim) -> bool:
    """Let the lease begin anew, if the claim still counts."""
    row = held_by(change.connection, claim)
    if row is None:
        return False
    _lease(change, clock, row, claim.seconds)
    return True


def held_by(connection: sqlite3.Connection, claim: Claim) -> sqlite3.Row | None:
    """The row of a claim that still counts; None if the request is somebody else's by now, or over."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM requests WHERE id = ? AND fence = ? AND owner = ? AND status = ? AND held = 0",
        (claim.id, claim.fence, cut(claim.owner), Status.BUILDING),
    ).fetchone()
    return row


def let_go(change: Change, row: sqlite3.Row, status: Status, *, held: bool = False) -> None:
    """End a lease; the request and its followers go on as the status says."""
    change.connection.execute(
        "UPDATE requests SET owner = '', held = ?, boot = '', leased_from = 0, leased_until = 0 WHERE number = ?",
        (held, row["number"]),
    )
    set_status(change.connection, row, status)


def set_status(connection: sqlite3.Connection, leader: sqlite3.Row, status: Status) -> None:
    """Move a leader, and whoever follows it and is open."""
    connection.execute("UPDATE requests SET status = ? WHERE number = ?", (status, leader["number"]))
    connection.execute(
        "UPDATE requests SET status = ? WHERE merged_into = ? AND merged_into != '' AND status IN (?, ?)",
        (status, leader["id"], Status.PENDING, Status.BUILDING),
    )


def take_back(change: Change, clock: Clock) -> int:
    """Return what was left by Builders that fell silent; how many requests that were."""
    rows = change.connection.execute(
        "SELECT * FROM requests WHERE status = 'building' AND merged_into = '' AND held = 0"
    ).fetchall()
    left = [row for row in rows if not clock.sees_alive(row)]
    for row in left:
        let_go(change, row, Status.PENDING)
        write_event(change, row["number"], Step.RETURNED, f"{row['owner']} fell silent")
    return len(left)


def _take(change: Change, clock: Clock, row: sqlite3.Row, owner: str, seconds: float) -> Claim:
    connection = change.connection
    connection.execute(
        "UPDATE requests SET fence = fence + 1, attempts = attempts + 1, owner = ?, held = 0 WHERE number = ?",
        (cut(owner), row["number"]),
    )
    set_status(connection, row, Status.BUILDING)
    _lease(change, clock, row, seconds)
    write_event(change, row["number"], Step.BUILDING, owner)
    return Claim(
        id=row["id"],
        fence=row["fence"] + 1,
        owner=owner,
        seconds=seconds,
        attempts=row["attempts"] + 1,
        text=row["text"],
        allowance=read_allowance(row["allowance"]),
    )


def _lease(change: Change, clock: Clock, row: sqlite3.Row, seconds: float) -> None:
    change.connection.execute(
        "UPDATE requests SET boot = ?, leased_from = ?, leased_until = ? WHERE number = ?",
        (clock.boot, clock.ticks, clock.ticks + seconds, row["number"]),
    )
