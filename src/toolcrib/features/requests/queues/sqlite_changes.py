"""Every change of a request in the file: filed, claimed, leased, ended, cancelled, retried; and its rows.

Each function is one step of a transaction that the queue has begun.

`number` is the order of filing. A request whose `merged_into` is empty leads; `rank` is its priority. `fence` counts
claims and `events` counts events; neither ever decreases. `digest` is the fingerprint of what is asked for, and `requesters` counts
the requests that ask for it. A lease is alive on the boot of the machine that it was given on, between
two readings of its monotonic clock. For each request that an experiment waits for there is an edge, which is released once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.features.requests.document import same_text, spell_id
from toolcrib.features.requests.document.writer import with_id
from toolcrib.features.requests.queues import (
    HISTORY_EVENTS,
    OPEN,
    HistoryStep,
    check_text,
    cut,
    is_text,
    other_text,
    read_allowance,
    to_filed,
    unknown,
)
from toolcrib.infra.storage.file_store import BOOT_ID
from toolcrib.model.toolrequest import Claim, Experiment, Filed, Priority, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from toolcrib.model.toolrequest import ToolRequest


PRIORITIES = tuple(Priority)


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


def open_leader(connection: sqlite3.Connection, digest: str) -> sqlite3.Row | None:
    """The open leader of the requests with this fingerprint, if there is one."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM requests WHERE digest = ? AND merged_into = '' AND status IN ('pending', 'building')", (digest,)
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


def read_filed(row: sqlite3.Row) -> Filed:
    """The `Filed` of a row."""
    return to_filed(dict(row), PRIORITIES[row["rank"]])


def add_edge(connection: sqlite3.Connection, experiment: str, number: int) -> None:
    """Make an experiment, if one is named, wait for a request."""
    if experiment:
        connection.execute("INSERT OR IGNORE INTO edges (experiment, request) VALUES (?, ?)", (experiment, number))


def release(change: Change, digest: str) -> None:
    """Release every experiment that waits for a request with this fingerprint."""
    connection = change.connection
    edges = connection.execute(
        "SELECT edges.experiment, request FROM edges JOIN requests ON edges.request = requests.number"
        " WHERE digest = ? AND released_at = '' ORDER BY request, edges.experiment",
        (digest,),
    ).fetchall()
    for experiment, number in edges:
        connection.execute(
            "UPDATE edges SET released_at = ? WHERE experiment = ? AND request = ?", (change.at, experiment, number)
        )
        write_event(change, number, HistoryStep.RELEASED, experiment)


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


def file_request(change: Change, request: ToolRequest) -> Filed:
    """Store a request under its own id or the next number, as a follower if the same thing is being built."""
    check_text(request)
    connection = change.connection
    there = read_row(connection, request.id) if request.id else None
    if there is not None and not same_text(there["text"], request.text):
        raise other_text(request.id)
    if there is not None:
        return read_filed(there)
    leader = open_leader(connection, request.digest)
    if leader is not None and not request.id:
        _merge(change, leader, request)
        return read_filed(known_row(connection, leader["id"]))
    if not request.id:
        request = _numbered(change, request)
    row = _insert(change, request)
    add_edge(connection, request.experiment, row["number"])
    if leader is not None:
        _follow(change, [row], leader)
    return read_filed(known_row(connection, request.id))


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


def return_expired(change: Change, clock: Clock) -> int:
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
    write_event(change, row["number"], HistoryStep.HELD, text)


def give_back(change: Change, row: sqlite3.Row, text: str) -> None:
    """Let another Builder claim it."""
    _let_go(change, row, Status.PENDING)
    write_event(change, row["number"], HistoryStep.RETURNED, text)


def finish(change: Change, row: sqlite3.Row, tool: str) -> None:
    """Mark it and its followers as ready, and release every experiment that waits for it."""
    _end(change, row, Status.READY, HistoryStep.READY, tool=tool)
    release(change, row["digest"])


def fail(change: Change, row: sqlite3.Row, error: str) -> None:
    """Mark it and its followers as failed, with the reason."""
    _end(change, row, Status.FAILED, HistoryStep.FAILED, error=error)


def cancel(change: Change, row: sqlite3.Row, reason: str) -> None:
    """Cancel it; a leader hands over to its oldest follower."""
    connection = change.connection
    successors = [] if row["merged_into"] else followers(connection, row["id"], *OPEN)
    if row["merged_into"]:
        connection.execute("UPDATE requests SET requesters = requesters - 1 WHERE id = ?", (row["merged_into"],))
    if successors:
        _hand_over(change, row, successors)
    _end(change, row, Status.CANCELLED, HistoryStep.CANCELLED, error=reason)


def retry(change: Change, row: sqlite3.Row) -> None:
    """Have it built again, with everything that failed with it, as followers if the same thing is being built."""
    connection = change.connection
    back = _together(connection, row)
    for each in back:
        write_event(change, each["number"], HistoryStep.RETRIED)
    leader = open_leader(connection, row["digest"])
    if leader is None:
        leader, *back = back
        connection.execute(
            "UPDATE requests SET status = ?, error = '', merged_into = '', requesters = 1 WHERE number = ?",
            (Status.PENDING, leader["number"]),
        )
        leader = known_row(connection, leader["id"])
    if back:
        _follow(change, back, leader)


def allow(change: Change, row: sqlite3.Row, allowance: str) -> None:
    """Store what the operator adds, for every request that is built or would be retried with it."""
    for each in _together(change.connection, row):
        change.connection.execute("UPDATE requests SET allowance = ? WHERE number = ?", (allowance, each["number"]))
        write_event(change, each["number"], HistoryStep.ALLOWED)


# The commands of a claim's holder except renewing, and the decisions.
OF_BUILDERS: Mapping[str, Callable[..., None]] = {
    "note": note,
    "hold": hold,
    "give_back": give_back,
    "finish": finish,
    "fail": fail,
}
DECISIONS: Mapping[str, Callable[..., None]] = {"cancel": cancel, "retry": retry, "allow": allow}


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def _merge(change: Change, leader: sqlite3.Row, request: ToolRequest) -> None:
    connection = change.connection
    connection.execute("UPDATE requests SET requesters = requesters + 1 WHERE number = ?", (leader["number"],))
    write_event(change, leader["number"], HistoryStep.MERGED)
    _raise_to(connection, leader, min(leader["rank"], request.priority.rank))
    add_edge(connection, request.experiment, leader["number"])


def _follow(change: Change, rows: Sequence[sqlite3.Row], leader: sqlite3.Row) -> None:
    """Make these follow the leader: they take its status and allowance, and all of them the highest priority."""
    connection = change.connection
    for row in rows:
        connection.execute(
            "UPDATE requests SET status = ?, error = '', merged_into = ?, requesters = 1, allowance = ? WHERE number = ?",
            (leader["status"], leader["id"], leader["allowance"], row["number"]),
        )
        write_event(change, row["number"], HistoryStep.MERGED, leader["id"])
    connection.execute(
        "UPDATE requests SET requesters = requesters + ? WHERE number = ?", (len(rows), leader["number"])
    )
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
        "INSERT INTO requests (id, name, status, rank, text, digest, experiment, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request.id,
            request.name,
            Status.PENDING,
            request.priority.rank,
            request.text,
            request.digest,
            request.experiment,
            change.at,
            change.at,
        ),
    )
    row = known_row(change.connection, request.id)
    write_event(change, row["number"], HistoryStep.FILED)
    return row


def _take(change: Change, clock: Clock, row: sqlite3.Row, owner: str, seconds: float) -> Claim:
    connection = change.connection
    connection.execute(
        "UPDATE requests SET fence = fence + 1, attempts = attempts + 1, owner = ?, held = 0 WHERE number = ?",
        (cut(owner), row["number"]),
    )
    _set_status(connection, row, Status.BUILDING)
    lease(change, clock, row, seconds)
    write_event(change, row["number"], HistoryStep.BUILDING, owner)
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


def _end(
    change: Change, row: sqlite3.Row, status: Status, step: HistoryStep, *, error: str = "", tool: str = ""
) -> None:
    connection = change.connection
    ended = [row] if row["merged_into"] else [row, *followers(connection, row["id"], *OPEN)]
    _let_go(change, row, status)
    for each in ended:
        connection.execute("UPDATE requests SET error = ?, tool = ? WHERE number = ?", (error, tool, each["number"]))
        write_event(change, each["number"], step, error or tool)


def _hand_over(change: Change, row: sqlite3.Row, successors: Sequence[sqlite3.Row]) -> None:
    """Make the oldest follower the leader; it is built from the beginning."""
    connection = change.connection
    connection.execute(
        "UPDATE requests SET requesters = requesters - ? WHERE number = ?", (len(successors), row["number"])
    )
    successor, *others = successors
    connection.execute(
        "UPDATE requests SET status = ?, merged_into = '' WHERE number = ?", (Status.PENDING, successor["number"])
    )
    write_event(change, successor["number"], HistoryStep.RETURNED, f"{row['id']} was cancelled")
    if others:
        _follow(change, others, known_row(connection, successor["id"]))


def _together(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    """The leader and its followers if they are all open or all failed; otherwise the request alone."""
    leader = leader_of(connection, row)
    for statuses in (OPEN, (Status.FAILED,)):
        if row["status"] in statuses and leader["status"] in statuses:
            return [leader, *followers(connection, leader["id"], *statuses)]
    return [row]
