"""Count how often each tool was called, and when last, in one SQLite table that the processes of a project share.

Calls are counted after they are answered, and added to the table as deltas, so that processes never overwrite each other's
counts. A connection is opened for each operation, so that a process never writes to a file that was replaced meanwhile.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolcrib.infra.files import commit_or_rollback, make_private_file
from toolcrib.lib.names import stable_id
from toolcrib.model.call import CALL
from toolcrib.model.errors import ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Line

logger = logging.getLogger("toolcrib.journal")

# Maximal age of the counts of other processes.
LOOK_SECONDS = 0.1
# How long to wait for the lock of another process. Counts that were not written are retried with the next ones, so only the
# last write waits longer.
BUSY_SECONDS = 1.0
LAST_BUSY_SECONDS = 10.0

# "cri" in ASCII and the version of the schema.
LAYOUT = 0x63726901
SCHEMA = (
    "CREATE TABLE counts (tool TEXT PRIMARY KEY, calls INTEGER NOT NULL, last TEXT NOT NULL, change INTEGER NOT NULL) WITHOUT ROWID",
    # Readers select only the rows that changed since they last read.
    "CREATE INDEX counts_by_change ON counts (change)",
    f"PRAGMA application_id = {LAYOUT}",
)
ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT (tool) DO UPDATE SET
calls = calls + excluded.calls, last = max(last, excluded.last), change = excluded.change
"""


@record(kw_only=False)
class Count:
    """How often a tool was called, and when last: RFC 3339 in UTC with milliseconds."""

    calls: int
    last_called_at: str


Counts = dict[str, Count]


class Metrics:
    """Counts the calls in lines of a journal. Without a path the counts are kept in memory only.

    `gather` makes the journal pass its pending lines to `note`. `history` reads the whole journal, from which the counts are
    rebuilt if the file is damaged. A failed write or a locked file fails no call and loses no count: the counts stay in
    memory until they can be written.
    """

    def __init__(
        self,
        path: Path | None,
        clock: Callable[[], float] = time.time,
        *,
        gather: Callable[[], None] | None = None,
        history: Callable[[], Iterable[Mapping[str, object]]] | None = None,
    ) -> None:
        self._clock = clock
        self._gather = gather
        self._table = None if path is None else _Table(path)
        self._history = history
        self._unwritten: Counts = {}
        self._totals: Counts = {}
        self._changed = True
        self._look_at = 0.0
        self._logged: dict[str, str] = {}
        self._counting = threading.Lock()

    def note(self, lines: Sequence[Line]) -> None:
        """Count the calls among the lines, except calls that were refused before they ran."""
        # There are many lines and few tools, so the work for each line is done in comprehensions.
        ran = [line for line in lines if line[0] == CALL and (line[7] is None or line[7].get("refused") is not True)]
        if not ran:
            return
        keys = [line[8] or line[3] for line in ran]
        last = dict(zip(keys, ran, strict=True))
        ahead = self._clock() - time.monotonic()
        counted = {key: Count(calls, _spell(last[key][1] + ahead)) for key, calls in Counter(keys).items()}
        with self._counting:
            _add(self._unwritten, counted)
            self._changed = True
            self._write(BUSY_SECONDS)

    def read(self) -> Mapping[str, Count]:
        """The counts by the id of the tool: exact for this process, at most LOOK_SECONDS behind for others."""
        if self._gather is not None:
            self._gather()
        with self._counting:
            self._look()
            return MappingProxyType(self._totals)

    def close(self) -> None:
        """Write the counts that are still in memory."""
        with self._counting:
            self._write(LAST_BUSY_SECONDS)
            if self._unwritten and self._table is not None:
                calls = sum(count.calls for count in self._unwritten.values())
                logger.warning("metrics: %d calls were not counted", calls)

    def _write(self, busy_seconds: float) -> None:
        table = self._table
        if table is None or not self._unwritten:
            return
        if self._try("write counts", lambda: table.add(self._unwritten, busy_seconds)):
            self._unwritten = {}

    def _look(self) -> None:
        """Update the totals from the file, at most every LOOK_SECONDS."""
        now, table = time.monotonic(), self._table
        if table is not None and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._try("read counts", table.look)
            self._changed = self._changed or table.has_news
        if self._changed:
            # A new dictionary: a caller may be iterating over the one that was returned before.
            totals = {} if table is None else table.totals()
            _add(totals, self._unwritten)
            self._totals, self._changed = _by_id(totals), False

    def _try(self, aim: str, work: Callable[[], None]) -> bool:
        """Run the work, and return whether it succeeded; a repeated problem is logged only once."""
        try:
            try:
                work()
            except _DamagedError as damage:
                self._rebuild(damage)
                work()
        except (OSError, ToolError) as problem:
            if self._logged.get(aim) != str(problem):
                logger.warning("metrics: cannot %s: %s", aim, problem)
            self._logged[aim] = str(problem)
            return False
        self._logged.pop(aim, None)
        return True

    def _rebuild(self, damage: _DamagedError) -> None:
        """Replace a damaged file with counts from the journal."""
        if self._table is None:
            return
        logger.warning("metrics: %s; counting again from the journal", damage)
        counts = Counts() if self._history is None else _count_lines(self._history())
        for tool in counts.keys() & self._unwritten.keys():
            # The journal already contains the calls that will be written next.
            counts[tool] = replace(counts[tool], calls=max(0, counts[tool].calls - self._unwritten[tool].calls))
        self._table.replace(counts)


class _DamagedError(Exception):
    """The file is damaged or has another schema."""


class _Table:
    """The counts in a file; not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: Counts = {}
        self._seen = 0
        self._incarnation = 0
        self.has_news = False

    def add(self, counts: Mapping[str, Count], busy_seconds: float = BUSY_SECONDS) -> None:
        """Add counts in one transaction."""
        with self._open(busy_seconds) as connection, _transaction(connection):
            _add_rows(connection, counts)
        _add(self._known, counts)

    def look(self) -> None:
        """Read the rows that changed since the last time."""
        self.has_news = False
        if not self._path.exists():
            return
        with self._open(BUSY_SECONDS) as connection, _transaction(connection, "BEGIN"):
            incarnation = _pragma(connection, "user_version")
            seen = self._seen if incarnation == self._incarnation else 0
            statement = "SELECT tool, calls, last, change FROM counts WHERE change > ?"
            rows = connection.execute(statement, (seen,)).fetchall()
        self.has_news = bool(rows) or incarnation != self._incarnation
        if incarnation != self._incarnation:
            self._incarnation, self._seen, self._known = incarnation, 0, {}
        for tool, calls, last, change in rows:
            self._known[tool] = Count(calls, last)
            self._seen = max(self._seen, change)

    def totals(self) -> Counts:
        """The counts of this process, and those of others when the file was last read."""
        return dict(self._known)

    def replace(self, counts: Mapping[str, Count]) -> None:
        """Rename the damaged file, and create a new one with these counts."""
        # The rollback journal first: SQLite would apply it to the new file.
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self._path.rename(self._path.with_name(f"{self._path.name}.damaged"))
        self._known = {}
        self.add(counts)

    @contextmanager
    def _open(self, busy_seconds: float) -> Iterator[sqlite3.Connection]:
        """A connection for one operation; creates the file and its table if they are missing."""
        # Imported here, because a process that neither counts nor reads does not need it.
        import sqlite3

        if not self._path.exists():
            make_private_file(self._path)
        try:
            with closing(sqlite3.connect(self._path, timeout=busy_seconds, isolation_level=None)) as connection:
                # After a power failure the counts are rebuilt from the journal.
                connection.execute("PRAGMA synchronous = OFF")
                if _pragma(connection, "application_id") != LAYOUT and not _make_table(connection):
                    raise _DamagedError(f"{self._path} has another layout")
                yield connection
        except sqlite3.Error as problem:
            if _is_damage(problem):
                raise _DamagedError(f"{self._path} is damaged ({problem})") from problem
            raise OSError(f"{self._path}: {problem}") from problem


def _make_table(connection: sqlite3.Connection) -> bool:
    """Create the table in an empty file; returns whether the file has the table now."""
    with _transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            # Another process may have created it first.
            return _pragma(connection, "application_id") == LAYOUT
        for statement in SCHEMA:
            connection.execute(statement)
        # By this readers notice that the file was replaced.
        connection.execute(f"PRAGMA user_version = {int.from_bytes(os.urandom(3), 'big') + 1}")
    return True


def _add_rows(connection: sqlite3.Connection, counts: Mapping[str, Count]) -> None:
    change = connection.execute("SELECT coalesce(max(change), 0) + 1 FROM counts").fetchone()[0]
    connection.executemany(ADD, ((tool, count.calls, count.last_called_at, change) for tool, count in counts.items()))


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    connection.execute(begin)
    with commit_or_rollback(connection):
        yield


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _is_damage(problem: sqlite3.Error) -> bool:
    import sqlite3

    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "no such table" in str(problem)


def _count_lines(lines: Iterable[Mapping[str, object]]) -> Counts:
    """Count the calls in lines of the journal."""
    counts: Counts = {}
    for line in lines:
        moment, key = line.get("time"), line.get("toolId") or line.get("tool")
        ran = line.get("event") == CALL and line.get("refused") is not True
        if ran and isinstance(key, str) and isinstance(moment, int | float):
            _add(counts, {key: Count(1, _spell(moment))})
    return counts


def _add(total: Counts, more: Mapping[str, Count]) -> None:
    for tool, count in more.items():
        known = total.get(tool)
        if known is None:
            total[tool] = count
        else:
            total[tool] = Count(known.calls + count.calls, max(known.last_called_at, count.last_called_at))


def _by_id(counts: Counts) -> Counts:
    """The counts by id: those that were counted by address are moved to the id that is derived from the address."""
    for address in [key for key in counts if "/" in key]:
        _add(counts, {_id_of(address): counts.pop(address)})
    return counts


@lru_cache(maxsize=10_000)
def _id_of(address: str) -> str:
    return stable_id("tool", address)


def _spell(moment: float) -> str:
    milliseconds = int(moment * 1000)
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{day}.{milliseconds % 1000:03d}Z"
