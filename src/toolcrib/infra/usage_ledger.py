"""Count the use of limits, and of single-use names, across all processes of one machine in one SQLite file.

Limits have sliding windows. Times are those of the kernel's boot clock, which all processes share and which cannot be set;
across a reboot the wall clock gives the elapsed time. A single-use name, such as that of a confirmation, is synced to disk
before the caller continues.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import commit_or_rollback, make_private_file
from toolcrib.infra.files.locks import check_lockable
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError
from toolcrib.model.limits import Shortage, Taken

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

    from toolcrib.model.limits import Claim

# How long to wait for the lock of another process, which holds it for microseconds unless the process is stopped.
BUSY_SECONDS = 0.5
MICRO = 1_000_000
MINUTE = 60
# The uses in a long window are grouped into this many steps, each at the end of its step: few rows, and no use expires early.
STEPS = 120
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# "crl" in ASCII and the version of the schema.
LAYOUT = 0x63726C01
SCHEMA = (
    "CREATE TABLE uses (subject TEXT, at INTEGER, amount INTEGER NOT NULL, PRIMARY KEY (subject, at)) WITHOUT ROWID",
    "CREATE TABLE totals (subject TEXT PRIMARY KEY, used INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE clock (boot TEXT NOT NULL, since_boot INTEGER NOT NULL, wall INTEGER NOT NULL)",
    f"PRAGMA application_id = {LAYOUT}",
)
# Created if it is missing: files with the same schema version may be older than this table.
ONCE = (
    "CREATE TABLE IF NOT EXISTS once (name TEXT PRIMARY KEY, expires INTEGER NOT NULL, wall INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS once_by_expiry ON once (expires)",
)
# Setting the wall clock must not make a used name valid again: a row is deleted only when both clocks are past its expiry.
FORGET_ONCE = "DELETE FROM once WHERE expires < ? AND wall < ?"
EXPIRE = "DELETE FROM uses WHERE subject = ? AND at <= ? RETURNING amount"
GIVE_BACK = "UPDATE uses SET amount = amount - ? WHERE subject = ? AND at = ?"
EXPIRED = "SELECT coalesce(sum(amount), 0) FROM uses WHERE subject = ? AND at <= ?"
USED = "SELECT used FROM totals WHERE subject = ?"
COUNT = "INSERT INTO uses VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount"
SET_TOTAL = (
    "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET used = excluded.used, expires = excluded.expires"
)


def since_boot() -> float:
    """Seconds since the machine booted, including suspended time; the same in every process."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class UsageLedger:
    """The use of limits, shared by threads and processes. Without a path it is kept in memory only.

    If the file is locked, full or damaged, the methods raise ToolError, so that the call is refused.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], float] = since_boot,
        wall: Callable[[], float] = time.time,
        boot: Callable[[], str] | None = None,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._path = path
        self._clock = clock
        self._wall = wall
        self._boot = boot or _boot_id
        self._busy_seconds = busy_seconds
        self._lock = threading.RLock()
        self._is_busy = False
        self._connection: sqlite3.Connection | None = None
        # The process id and the inode of the file that the connection belongs to.
        self._owner: tuple[int, int] = (0, 0)

    def check(self, claims: Sequence[Claim]) -> Shortage | None:
        """The first of the claims that could not be taken now, without taking any; None if all could."""
        with self._reading() as (connection, now):
            for claim in claims:
                used = _used(connection, claim, now)
                if used + (claim.amount or 1) > claim.limit:
                    return _shortage(connection, claim, used, now)
        return None

    def take(self, claims: Sequence[Claim]) -> Taken | Shortage:
        """Take all of the claims or none, atomically across threads and processes."""
        with self._writing() as (connection, now):
            for claim in claims:
                used = _expire(connection, claim, now)
                if used + (claim.amount or 1) > claim.limit:
                    shortage = _shortage(connection, claim, used, now)
                    connection.execute("ROLLBACK")
                    connection.execute("BEGIN")
                    return shortage
                _count(connection, claim, used, now)
            return Taken(at=now)

    def give_back(self, claims: Sequence[Claim], taken: Taken) -> None:
        """Undo `take` for a call that was not made; uses that have left their window since are ignored."""
        with self._writing() as (connection, _):
            for claim in claims:
                row = (claim.amount, claim.subject, _rounded(claim, taken.at))
                if connection.execute(GIVE_BACK, row).rowcount:
                    connection.execute("UPDATE totals SET used = used - ? WHERE subject = ?", row[:2])

    def add(self, claims: Sequence[Claim]) -> None:
        """Count uses even beyond the limit, because some amounts are only known after a call."""
        with self._writing() as (connection, now):
            for claim in claims:
                _count(connection, claim, _expire(connection, claim, now), now)

    def used(self, claims: Sequence[Claim]) -> list[int]:
        """The amount used of each limit now; the amounts of the claims are ignored."""
        with self._reading() as (connection, now):
            return [_used(connection, claim, now) for claim in claims]

    def use_once(self, name: str, expiry: float, now: float) -> bool:
        """Mark a name as used until its `expiry`; returns False if it was used before. Synced to disk.

        `expiry` and `now` are times of the wall clock.
        """
        with self._writing(synced=True) as (connection, since_boot):
            left = max(0, round((expiry - now) * MICRO))
            connection.execute(FORGET_ONCE, (since_boot, round(now * MICRO)))
            row = (name, since_boot + left, round(expiry * MICRO))
            return connection.execute("INSERT OR IGNORE INTO once VALUES (?, ?, ?)", row).rowcount == 1

    def was_used(self, name: str, expiry: float) -> bool:
        """Whether the name is marked as used."""
        with self._reading() as (connection, _):
            return connection.execute("SELECT 1 FROM once WHERE name = ?", (name,)).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._drop()

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        with self._hold(), self._as_tool_errors(), self._open() as connection:
            connection.execute("BEGIN")
            with commit_or_rollback(connection):
                yield connection, self._now()

    @contextmanager
    def _writing(self, *, synced: bool = False) -> Iterator[tuple[sqlite3.Connection, int]]:
        """A write transaction, which is synced to disk only if `synced`."""
        with self._hold(), self._as_tool_errors(), self._open() as connection:
            if synced:
                connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            with commit_or_rollback(connection):
                # The clock is read under the lock, so that times have the order of the uses.
                yield connection, self._now()
            if synced:
                connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _hold(self) -> Iterator[None]:
        """Use the connection alone. Garbage collection may end a call in the middle of a transaction of this thread; it counts nothing."""
        with self._lock:
            if self._is_busy:
                raise ToolError(Kind.TRANSIENT, "this thread is counting another call", retryable=True)
            self._is_busy = True
            try:
                yield
            finally:
                self._is_busy = False

    def _now(self) -> int:
        return round(self._clock() * MICRO)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process to the present file, reopened after a fork or a replacement; a failure closes it."""
        connection = self._connection
        if connection is None or self._owner != (os.getpid(), _inode_of(self._path)):
            self._drop()
            connection = self._connection = self._connect()
            self._owner = (os.getpid(), _inode_of(self._path))
        try:
            yield connection
        except BaseException:
            self._drop()
            raise

    def _connect(self) -> sqlite3.Connection:
        # Imported here, because a process that calls no tool with a limit does not need it.
        import sqlite3

        place: Path | str = ":memory:"
        if self._path is not None:
            place = self._path
            make_private_file(place, synced=True)
            # Locks are useless in a folder that another machine writes to as well.
            check_lockable(place.parent)
        connection = sqlite3.connect(
            place, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=32
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Small pages and few checkpoints: a commit writes little and does not sync. A power loss may lose the last uses of
        # limits, but never damages the file.
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 8000")
        connection.execute("BEGIN IMMEDIATE")
        with commit_or_rollback(connection):
            layout = connection.execute("PRAGMA application_id").fetchone()[0]
            if layout != LAYOUT:
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise self._damaged("it has another layout")
                for statement in SCHEMA:
                    connection.execute(statement)
            for statement in ONCE:
                connection.execute(statement)
            self._set_clock(connection)

    def _set_clock(self, connection: sqlite3.Connection) -> None:
        """Shift the times from before a reboot to the present boot clock, and delete expired rows."""
        boot, now, wall = self._boot(), self._now(), round(self._wall() * MICRO)
        row = connection.execute("SELECT boot, since_boot, wall FROM clock").fetchone()
        if row is not None and row[0] != boot:
            # If the wall clock was set back, no time counts as elapsed, so that nothing expires early.
            shift = now - max(0, wall - row[2]) - row[1]
            # In two steps, so that no row gets the key of a row that is not shifted yet.
            connection.execute("UPDATE uses SET at = -at - 1")
            connection.execute("UPDATE uses SET at = -at - 1 + ?", (shift,))
            connection.execute("UPDATE totals SET expires = expires + ?", (shift,))
            connection.execute("UPDATE once SET expires = expires + ?", (shift,))
        connection.execute("DELETE FROM clock")
        connection.execute("INSERT INTO clock VALUES (?, ?, ?)", (boot, now, wall))
        connection.execute("DELETE FROM uses WHERE subject IN (SELECT subject FROM totals WHERE expires <= ?)", (now,))
        connection.execute("DELETE FROM totals WHERE expires <= ?", (now,))

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        # A forked child must not touch the connection of its parent.
        if connection is not None and self._owner[0] == os.getpid():
            with suppress(Exception):
                connection.close()

    @contextmanager
    def _as_tool_errors(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.Error as problem:
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                message = (
                    f"limits and confirmations could not be looked up: another process holds {self._path}; try again"
                )
                raise ToolError(Kind.TRANSIENT, message, retryable=True, details={RETRY_AFTER: 1}) from problem
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "no such table" in str(problem):
                raise self._damaged(str(problem)) from problem
            message = (
                f"limits and confirmations could not be counted: {self._path}: {problem}; check the file and its disk"
            )
            raise ToolError(Kind.PERMANENT, message) from problem
        except OSError as problem:
            message = f"limits and confirmations could not be counted: {self._path}: {problem.strerror}; check the file and its disk"
            raise ToolError(Kind.PERMANENT, message) from problem

    def _damaged(self, reason: str) -> ToolError:
        message = f"limits and confirmations could not be counted: {self._path} is damaged ({reason}); move it away, and counting starts again"
        return ToolError(Kind.PERMANENT, message)


def _rounded(claim: Claim, at: int) -> int:
    """The time at which a use is stored: its own, or for a long window the end of its step."""
    if claim.window <= MINUTE:
        return at
    step = claim.window * MICRO // STEPS
    return -(-at // step) * step


def _oldest(claim: Claim, now: int) -> int:
    return now - claim.window * MICRO


def _used(connection: sqlite3.Connection, claim: Claim, now: int) -> int:
    row = connection.execute(USED, (claim.subject,)).fetchone()
    if row is None:
        return 0
    return int(row[0] - connection.execute(EXPIRED, (claim.subject, _oldest(claim, now))).fetchone()[0])


def _expire(connection: sqlite3.Connection, claim: Claim, now: int) -> int:
    """Delete uses that are older than the window; returns the amount that is still used."""
    row = connection.execute(USED, (claim.subject,)).fetchone()
    if row is None:
        return 0
    return int(row[0] - sum(amount for (amount,) in connection.execute(EXPIRE, (claim.subject, _oldest(claim, now)))))


def _count(connection: sqlite3.Connection, claim: Claim, used: int, now: int) -> None:
    if not claim.amount:
        return
    at = _rounded(claim, now)
    connection.execute(COUNT, (claim.subject, at, claim.amount))
    connection.execute(SET_TOTAL, (claim.subject, used + claim.amount, at + claim.window * MICRO))


def _shortage(connection: sqlite3.Connection, claim: Claim, used: int, now: int) -> Shortage:
    """The shortage, with the time until enough uses have left the window; None for a claim larger than its limit."""
    if claim.amount > claim.limit:
        return Shortage(claim=claim, used=used, wait=None)
    oldest, left = _oldest(claim, now), used
    rows = connection.execute(
        "SELECT at, amount FROM uses WHERE subject = ? AND at > ? ORDER BY at", (claim.subject, oldest)
    )
    for at, amount in rows:
        left -= amount
        if left + (claim.amount or 1) <= claim.limit:
            return Shortage(claim=claim, used=used, wait=(at - oldest) / MICRO)
    return Shortage(claim=claim, used=used, wait=float(claim.window))


def _inode_of(path: Path | None) -> int:
    """The inode of the file; 0 without a path, -1 if there is no file."""
    try:
        return 0 if path is None else os.stat(path).st_ino  # noqa: PTH116 - every call of a limited tool waits for this
    except FileNotFoundError:
        return -1


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
