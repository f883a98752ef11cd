"""Every change of a request in the file: filed, claimed, leased, ended, cancelled, brought back.

Each function is one step of a transaction that the queue has begun.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.reader import same_text, spell_id
from toolcrib.features.requests.document.writer import with_id
from toolcrib.features.requests.queues.records import Step, check_text, cut, other_text, read_allowance
from toolcrib.features.requests.queues.sqlite.tables import (
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
from toolcrib.infra.storage.file_store import BOOT_ID
from toolcrib.model.toolrequest import Claim, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from toolcrib.features.requests.queues.sqlite.tables import Change
    from toolcrib.model.toolrequest import Filed, ToolRequest

OPEN = (Status.PENDING, Status.BUILDING)


def file_request(change: Change, request: ToolRequest) -> Filed:
    """Store a request under its own id or the next number, as a follower if the same thing is being built."""
    check_text(request)
    connection = change.connection
    there = read_row(connection, request.id) if request.id else None
    if there is not None and not same_text(there["text"], request.text):
        raise other_text(request.id)
    if there is not None:
        return to_filed(there)
    leader = open_leader(connection, request.wish)
    if leader is not None and not request.id:
        _merge(change, leader, request)
        return to_filed(known_row(connection, leader["id"]))
    if not request.id:
        request = _numbered(change, request)
    row = _insert(change, request)
    add_edge(connection, request.experiment, row["number"])
    if leader is not None:
        _follow(change, [row], leader)
    return to_filed(known_row(connection, request.id))


@dataclass(frozen=True, kw_only=True, slots=True)
class Clock:
    """A reading of the monotonic clock, and the boot of the machine that it counts from.

    Setting the wall clock does not affect leases, and after a reboot none is alive.
    """

    boot: str
    ticks: float

    def sees_alive(self, row: sqlite3.Row) -> bool:
        """Whether the request has a lease that has not expired."""
        return bool(row["boot"] == self.boot and row["leased_from"] <= self.ticks < row["leased_until"])


def read_clock() -> Clock:
    """The clock of this machine."""
    return Clock(boot=_boot(), ticks=time.monotonic())


def claim_next(change: Change, clock: Clock, owner: str, seconds: float) -> Claim | None:
    """Claim the oldest of the most urgent requests without a live lease."""
    row = change.connection.execute(
        "SELECT * FROM requests INDEXED BY claimable"
        " WHERE merged_into = '' AND held = 0 AND status IN ('pending', 'building')"
        " AND NOT (boot = ? AND leased_from <= ? AND ? < leased_until) ORDER BY rank, number LIMIT 1",
        (clock.boot, clock.ticks, clock.ticks),
    ).fetchone()
    return None if row is None else _take(change, clock, row, owner, seconds)


def claim_one(change: Change, clock: Clock, owner: str, seconds: float, request_id: str) -> Claim | None:
    """Claim this request, or its leader; also one that is held."""
    asked = read_row(change.connection, request_id)
    if asked is None or Status(asked["status"]).is_final:
        return None
    row = leader_of(change.connection, asked)
    return None if clock.sees_alive(row) else _take(change, clock, row, owner, seconds)


def held_by(connection: sqlite3.Connection, claim: Claim) -> sqlite3.Row | None:
    """The row of a claim; None if the claim is lost: another Builder has it, or the request is over."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM requests WHERE id = ? AND fence = ? AND owner = ? AND status = ? AND held = 0",
        (claim.id, claim.fence, cut(claim.owner), Status.BUILDING),
    ).fetchone()
    return row


def lease(change: Change, clock: Clock, row: sqlite3.Row, seconds: float) -> None:
    """Start the lease of a request now."""
    change.connection.execute(
        "UPDATE requests SET boot = ?, leased_from = ?, leased_until = ? WHERE number = ?",
        (clock.boot, clock.ticks, clock.ticks + seconds, row["number"]),
    )


def take_back(change: Change, clock: Clock) -> int:
    """Return requests whose lease expired to the queue; how many."""
    rows = change.connection.execute(
        "SELECT * FROM requests WHERE status = 'building' AND merged_into = '' AND held = 0"
    ).fetchall()
    left = [row for row in rows if not clock.sees_alive(row)]
    for row in left:
        give_back(change, row, f"the lease of {row['owner']} expired")
    return len(left)


def note(change: Change, row: sqlite3.Row, step: str, text: str) -> None:
    """Write an event into the history."""
    write_event(change, row["number"], step, text)


def hold(change: Change, row: sqlite3.Row, text: str) -> None:
    """Leave it to a person: it stays `building`, without a lease."""
    _let_go(change, row, Status.BUILDING, held=True)
    write_event(change, row["number"], Step.HELD, text)


def give_back(change: Change, row: sqlite3.Row, text: str) -> None:
    """Let another Builder claim it."""
    _let_go(change, row, Status.PENDING)
    write_event(change, row["number"], Step.RETURNED, text)


def finish(change: Change, row: sqlite3.Row, tool: str) -> None:
    """Mark it and its followers as ready, and release every experiment that waits for it."""
    _end(change, row, Status.READY, Step.READY, tool=tool)
    release(change, row["wish"])


def fail(change: Change, row: sqlite3.Row, error: str) -> None:
    """Mark it and its followers as failed, with the reason."""
    _end(change, row, Status.FAILED, Step.FAILED, error=error)


def cancel(change: Change, row: sqlite3.Row, reason: str) -> None:
    """Cancel it; a leader hands over to its oldest follower."""
    connection = change.connection
    successors = [] if row["merged_into"] else followers(connection, row["id"], *OPEN)
    if row["merged_into"]:
        connection.execute("UPDATE requests SET wishes = wishes - 1 WHERE id = ?", (row["merged_into"],))
    if successors:
        _hand_over(change, row, successors)
    _end(change, row, Status.CANCELLED, Step.CANCELLED, error=reason)


def retry(change: Change, row: sqlite3.Row) -> None:
    """Have it built again, with everything that failed with it, as followers if the same thing is being built."""
    connection = change.connection
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
        _follow(change, back, leader)


def allow(change: Change, row: sqlite3.Row, allowance: str) -> None:
    """Store what the operator adds, for every request that is built or would be retried with it."""
    for each in _together(change.connection, row):
        change.connection.execute("UPDATE requests SET allowance = ? WHERE number = ?", (allowance, each["number"]))
        write_event(change, each["number"], Step.ALLOWED)


# The commands of a claim's holder except renewing, and the decisions with the statuses that permit them.
OF_BUILDERS: Mapping[str, Callable[..., None]] = {
    "note": note,
    "hold": hold,
    "give_back": give_back,
    "finish": finish,
    "fail": fail,
}
DECISIONS: Mapping[str, tuple[Callable[..., None], frozenset[Status]]] = {
    "cancel": (cancel, frozenset(OPEN)),
    "retry": (retry, frozenset({Status.FAILED, Status.CANCELLED})),
    "allow": (allow, frozenset(Status) - {Status.READY}),
}


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def _merge(change: Change, leader: sqlite3.Row, request: ToolRequest) -> None:
    connection = change.connection
    connection.execute("UPDATE requests SET wishes = wishes + 1 WHERE number = ?", (leader["number"],))
    write_event(change, leader["number"], Step.MERGED)
    _raise_to(connection, leader, min(leader["rank"], request.priority.rank))
    add_edge(connection, request.experiment, leader["number"])


def _follow(change: Change, rows: Sequence[sqlite3.Row], leader: sqlite3.Row) -> None:
    """Make these follow the leader: they take its status and allowance, and all of them the highest priority."""
    connection = change.connection
    for row in rows:
        connection.execute(
            "UPDATE requests SET status = ?, error = '', merged_into = ?, wishes = 1, allowance = ? WHERE number = ?",
            (leader["status"], leader["id"], leader["allowance"], row["number"]),
        )
        write_event(change, row["number"], Step.MERGED, leader["id"])
    connection.execute("UPDATE requests SET wishes = wishes + ? WHERE number = ?", (len(rows), leader["number"]))
    _raise_to(connection, leader, min(row["rank"] for row in (leader, *rows)))


def _raise_to(connection: sqlite3.Connection, leader: sqlite3.Row, rank: int) -> None:
    connection.execute("UPDATE requests SET rank = ? WHERE number = ? AND rank > ?", (rank, leader["number"], rank))
    connection.execute(
        "UPDATE requests SET rank = ? WHERE merged_into = ? AND merged_into != '' AND rank > ?",
        (rank, leader["id"], rank),
    )


def _numbered(change: Change, request: ToolRequest) -> ToolRequest:
    """The request under the next free number of the day."""
    connection, day = change.connection, change.day
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


def _take(change: Change, clock: Clock, row: sqlite3.Row, owner: str, seconds: float) -> Claim:
    connection = change.connection
    connection.execute(
        "UPDATE requests SET fence = fence + 1, attempts = attempts + 1, owner = ?, held = 0 WHERE number = ?",
        (cut(owner), row["number"]),
    )
    _set_status(connection, row, Status.BUILDING)
    lease(change, clock, row, seconds)
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


def _let_go(change: Change, row: sqlite3.Row, status: Status, *, held: bool = False) -> None:
    """End a lease, and set the status of the request and its followers."""
    change.connection.execute(
        "UPDATE requests SET owner = '', held = ?, boot = '', leased_from = 0, leased_until = 0 WHERE number = ?",
        (held, row["number"]),
    )
    _set_status(change.connection, row, status)


def _set_status(connection: sqlite3.Connection, leader: sqlite3.Row, status: Status) -> None:
    """Set the status of a leader and of its open followers."""
    connection.execute("UPDATE requests SET status = ? WHERE number = ?", (status, leader["number"]))
    connection.execute(
        "UPDATE requests SET status = ? WHERE merged_into = ? AND merged_into != '' AND status IN (?, ?)",
        (status, leader["id"], *OPEN),
    )


def _end(change: Change, row: sqlite3.Row, status: Status, step: Step, *, error: str = "", tool: str = "") -> None:
    connection = change.connection
    ended = [row] if row["merged_into"] else [row, *followers(connection, row["id"], *OPEN)]
    _let_go(change, row, status)
    for each in ended:
        connection.execute("UPDATE requests SET error = ?, tool = ? WHERE number = ?", (error, tool, each["number"]))
        write_event(change, each["number"], step, error or tool)


def _hand_over(change: Change, row: sqlite3.Row, successors: Sequence[sqlite3.Row]) -> None:
    """Make the oldest follower the leader; it is built from the beginning."""
    connection = change.connection
    connection.execute("UPDATE requests SET wishes = wishes - ? WHERE number = ?", (len(successors), row["number"]))
    successor, *others = successors
    connection.execute(
        "UPDATE requests SET status = ?, merged_into = '' WHERE number = ?", (Status.PENDING, successor["number"])
    )
    write_event(change, successor["number"], Step.RETURNED, f"{row['id']} was cancelled")
    if others:
        _follow(change, others, known_row(connection, successor["id"]))


def _together(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    """The leader and its followers if they are all open or all failed; otherwise the request alone."""
    leader = leader_of(connection, row)
    for statuses in (OPEN, (Status.FAILED,)):
        if row["status"] in statuses and leader["status"] in statuses:
            return [leader, *followers(connection, leader["id"], *statuses)]
    return [row]
