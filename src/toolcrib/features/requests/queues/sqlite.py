"""The queue in an SQLite file: every change is one transaction, and on disk when the method returns."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.features.requests.document import request_day
from toolcrib.features.requests.queues import PERMITTED, CommandQueue, cut, is_text, spell_time, utc_now
from toolcrib.features.requests.queues import sqlite_changes as changes
from toolcrib.features.requests.queues.sqlite_changes import Change, known_row, read_experiments, read_filed, read_row
from toolcrib.features.requests.queues.sqlite_database import BUSY_SECONDS, Handle
from toolcrib.model.toolrequest import Event, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from toolcrib.features.requests.queues import Refusal
    from toolcrib.features.requests.queues.sqlite_changes import Clock
    from toolcrib.model.toolrequest import Claim, Experiment, Filed, Made, ToolRequest


MAX_NUMBER = 2**62


class EmbeddedQueue(CommandQueue):
    """Stores requests in one SQLite file, which any number of threads and processes of one machine may share.

    Nothing is opened before it is needed. `now` gives the day of numbers and the stored times, `clock` the time of leases.
    `busy_seconds` is how long a change waits for others.
    """

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], Clock] = changes.read_clock,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._file = Handle(path, busy_seconds)
        self._now = now
        self._clock = clock

    def file(self, request: ToolRequest) -> Filed:
        """Store a request and wake an idle Builder; one without an id gets the next number of today."""
        with self._changing() as change:
            return changes.file_request(change, request)

    def get(self, request_id: str) -> Filed | None:
        """One request."""
        with self._file.reading() as connection:
            row = read_row(connection, request_id)
            return None if row is None else read_filed(row)

    def requests(self, status: Status | None = None, *, limit: int = 1_000) -> list[Filed]:
        """The newest requests, in the order in which they were filed."""
        chosen = "" if status is None else "WHERE status = :status"
        statement = f"SELECT * FROM requests {chosen} ORDER BY number DESC LIMIT :limit"  # noqa: S608 - our own words
        with self._file.reading() as connection:
            rows = connection.execute(statement, {"status": status, "limit": _clamp(limit)}).fetchall()
        return [read_filed(row) for row in reversed(rows)]

    def find_open(self, name: str) -> Filed | None:
        """The oldest request for a tool of that name which is pending or being built, if there is one."""
        if not is_text(name):
            return None
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT * FROM requests WHERE name = ? AND merged_into = '' AND status IN ('pending', 'building')"
                " ORDER BY number LIMIT 1",
                (name,),
            ).fetchone()
        return None if row is None else read_filed(row)

    def history(self, request_id: str, after: int = 0) -> list[Event]:
        """The events of a request after that number."""
        with self._file.reading() as connection:
            row = read_row(connection, request_id)
            if row is None:
                return []
            events = connection.execute(
                "SELECT number, at, step, text FROM events WHERE request = ? AND number > ? ORDER BY number",
                (row["number"], _clamp(after)),
            ).fetchall()
        return [Event(number=number, at=at, step=step, text=text) for number, at, step, text in events]

    def claim(self, owner: str, seconds: float, request_id: str | None = None) -> Claim | None:
        """Claim the next request, or this one, also if it is held; for one that follows, its leader."""
        with self._changing() as change:
            if request_id is None:
                return changes.claim_next(change, self._clock(), owner, seconds)
            return changes.claim_one(change, self._clock(), owner, seconds, request_id)

    def experiments(self) -> list[Experiment]:
        """The experiments that wait or waited for a tool."""
        with self._file.reading() as connection:
            return read_experiments(connection)

    def reconcile(self) -> int:
        """Return requests whose lease expired to the queue; how many."""
        with self._changing() as change:
            return changes.return_expired(change, self._clock())

    def wait(self, seconds: float) -> bool:
        """Wait until anything may have changed since this object last waited, at most so many seconds."""
        return self._file.wait(seconds)

    def remarks(self) -> list[str]:
        """No remarks: what a method has returned is on disk."""
        return []

    def close(self) -> None:
        """Close the file, and wake the threads that wait."""
        self._file.close()

    def _act(self, command: str, claim: Claim, **given: object) -> bool:
        with self._changing() as change:
            row = changes.held_by(change.connection, claim)
            if row is None:
                return False
            if command == "renew":
                changes.lease(change, self._clock(), row, claim.seconds)
            else:
                changes.OF_BUILDERS[command](change, row, **given)
            return True

    def _decide(self, command: str, request_id: str, refusal: Refusal, **given: object) -> Filed:
        with self._changing() as change:
            row = known_row(change.connection, request_id)
            if row["status"] not in PERMITTED[command]:
                raise refusal(request_id, Status(row["status"]))
            changes.DECISIONS[command](change, row, **given)
            return read_filed(known_row(change.connection, request_id))

    def _describe(self, claim: Claim, made: Made) -> dict[str, object]:
        return {"tool": cut(made.address)}

    @contextmanager
    def _changing(self) -> Iterator[Change]:
        with self._file.writing() as connection:
            now = self._now()
            yield Change(connection=connection, at=spell_time(now), day=request_day(now))


def _clamp(number: int) -> int:
    """A number that fits SQLite; a negative limit would mean no limit."""
    return max(0, min(number, MAX_NUMBER))
