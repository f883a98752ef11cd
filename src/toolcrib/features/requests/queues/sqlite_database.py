"""The SQLite file of the queue: its tables, transactions, locks and errors."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from toolcrib.infra.files import commit_or_rollback
from toolcrib.infra.files.durable import create, show_path
from toolcrib.infra.files.locks import Locks, check_lockable
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


LAYOUT = 2
APPLICATION = 0x54635175  # the application id in the file header

# The bytes of the file header that say its write and read version; 2 means a write-ahead log.
_MODES = slice(18, 20)
_WITH_LOG = b"\x02\x02"

_TABLES = (
    """
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        rank INTEGER NOT NULL,
        text TEXT NOT NULL,
        digest TEXT NOT NULL,
        experiment TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        tool TEXT NOT NULL DEFAULT '',
        merged_into TEXT NOT NULL DEFAULT '',
        owner TEXT NOT NULL DEFAULT '',
        held INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        requesters INTEGER NOT NULL DEFAULT 1,
        allowance TEXT NOT NULL DEFAULT '',
        fence INTEGER NOT NULL DEFAULT 0,
        boot TEXT NOT NULL DEFAULT '',
        leased_from REAL NOT NULL DEFAULT 0,
        leased_until REAL NOT NULL DEFAULT 0,
        events INTEGER NOT NULL DEFAULT 0
    )
    """,
    # The query of a claim repeats this condition: SQLite uses a partial index only then.
    """
    CREATE INDEX claimable ON requests (rank, number)
    WHERE merged_into = '' AND held = 0 AND status IN ('pending', 'building')
    """,
    "CREATE INDEX followers ON requests (merged_into, number) WHERE merged_into != ''",
    "CREATE INDEX digests ON requests (digest, number)",
    "CREATE INDEX names ON requests (name, number)",
    "CREATE INDEX statuses ON requests (status, number)",
    """
    CREATE TABLE events (
        request INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at TEXT NOT NULL,
        step TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (request, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE edges (
        experiment TEXT NOT NULL,
        request INTEGER NOT NULL,
        released_at TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (experiment, request)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX waiting ON edges (request) WHERE released_at = ''",
    "CREATE TABLE days (day TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
)


# How long a change waits for other processes; each holds the file for a few milliseconds.
BUSY_SECONDS = 10.0
LOCK_FOLDER = "locks"
KEPT_LOG_BYTES = 4 * 1024 * 1024
# The polling interval of a waiter; an idle Builder has to wake within 100 ms.
POLL_SECONDS = 0.02
# Connections that a forked child inherited and must not close: that would release the locks of the parent.
_of_parents: list[list[Database]] = []

_PRIMARY = 0xFF  # an extended code has the plain one in its lowest byte
_MOVE_AWAY = "put a copy of it back, or move it away with its -wal and -shm files to begin a new one"
_MEANINGS: dict[int, tuple[Kind, str]] = {
    sqlite3.SQLITE_BUSY: (Kind.TRANSIENT, "is locked by another process; nothing was stored, try again"),
    sqlite3.SQLITE_LOCKED: (Kind.TRANSIENT, "is locked by another thread; nothing was stored, try again"),
    sqlite3.SQLITE_FULL: (Kind.PERMANENT, "cannot grow: the disk is full; nothing was stored, free some space"),
    sqlite3.SQLITE_READONLY: (
        Kind.PERMANENT,
        "cannot be written; nothing was stored, let this user write to the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        Kind.PERMANENT,
        "cannot be opened; nothing was stored, let this user write to the file and its folder",
    ),
    sqlite3.SQLITE_PERM: (Kind.PERMANENT, "is not permitted; nothing was stored, change the permissions of the file"),
    sqlite3.SQLITE_CORRUPT: (Kind.PERMANENT, f"is damaged; nothing was stored, {_MOVE_AWAY}"),
    sqlite3.SQLITE_NOTADB: (Kind.PERMANENT, f"is not a queue of Toolcrib; nothing was stored, {_MOVE_AWAY}"),
    # The last change may or may not have reached the disk.
    sqlite3.SQLITE_IOERR: (
        Kind.PERMANENT,
        "cannot be reached: the disk reports an error; check it, then look what was stored",
    ),
}


def new_file() -> bytes:
    """The bytes of a queue file without requests.

    The file is created complete: of many processes that created tables in an empty file, some would fail.
    """
    connection = sqlite3.connect(":memory:")
    try:
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.commit()
        data = bytearray(connection.serialize())
    finally:
        connection.close()
    data[_MODES] = _WITH_LOG
    return bytes(data)


class Handle:
    """The file, for the threads of a process: opened on demand, and again in a forked child or when the file was replaced."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._closed = threading.Event()
        # The version that the last waiter saw; None before the file was first opened.
        self._seen: tuple[int, int] | None = None
        self._begin()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: at its end all of it is on disk or, after an error, none of it."""
        with _explained(self._path), self._open().writing() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction, which sees one state of the file."""
        with _explained(self._path), self._open().reading() as connection:
            yield connection

    def wait(self, seconds: float) -> bool:
        """Wait until anything may have changed since the last wait; False if nothing did, or the queue was closed."""
        deadline = time.monotonic() + seconds
        seen = self._seen
        while not self._closed.is_set():
            try:
                version = self._look()
            except ToolError:
                if self._closed.is_set():
                    return False
                raise
            if version != (seen or self._seen):
                self._seen = version
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._closed.wait(min(left, POLL_SECONDS))
        return False

    def close(self) -> None:
        """Close the file for good."""
        self._closed.set()
        self._leave_to_parent()
        with self._opening:
            while self._opened:
                self._opened.pop().close()

    def _look(self) -> tuple[int, int]:
        with _explained(self._path):
            return _version(self._open())

    def _begin(self) -> None:
        self._process = os.getpid()
        self._opening = threading.Lock()
        # The last one is in use; the file of the earlier ones was replaced, and a thread may still use them.
        self._opened: list[Database] = []

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid():
            _of_parents.append(self._opened)
            self._begin()

    def _open(self) -> Database:
        self._leave_to_parent()
        with self._opening:
            if self._closed.is_set():
                raise _closed(self._path)
            if not self._opened or self._opened[-1].has_moved():
                self._opened.append(Database(self._path, self._busy_seconds))
            if self._seen is None:
                self._seen = _version(self._opened[-1])
            return self._opened[-1]


class Database:
    """One connection that writes and one that reads, each for one thread at a time.

    Writers queue on a lock file first: those that wait for SQLite itself poll, and some of them starve.
    """

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._line = Locks(path.parent / LOCK_FOLDER)
        with _nothing_stored():
            _make_file(path)
        self._identity = _identify(path)
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._writer = _connect(path, busy_seconds)
        try:
            _check_layout(self._writer, path)
            self._reader = _connect(path, busy_seconds)
        except BaseException:
            self._writer.close()
            raise

    def has_moved(self) -> bool:
        """Whether the file is not where it was, or another one is there."""
        return _identify(self._path) != self._identity

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: at its end all of it is on disk or, after an error, none of it."""
        with ExitStack() as stack:
            with _nothing_stored():
                stack.enter_context(self._line.hold(self._path.stem, self._busy_seconds))
            stack.enter_context(self._writing)
            self._writer.execute("BEGIN IMMEDIATE")
            stack.enter_context(commit_or_rollback(self._writer))
            yield self._writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction, which sees one state of the file."""
        with self._reading:
            self._reader.execute("BEGIN")
            with commit_or_rollback(self._reader):
                yield self._reader

    def version(self) -> int:
        """A number that changes with every change: the connection that reads never makes one itself."""
        with self._reading:
            return int(self._reader.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close both connections, each after the thread that uses it has finished."""
        with self._reading:
            self._reader.close()
        with self._writing:
            self._writer.close()


@contextmanager
def _nothing_stored() -> Iterator[None]:
    """Add to an error that nothing was stored."""
    try:
        yield
    except ToolError as problem:
        reason = f"the queue cannot be used, and nothing was stored: {problem.reason}"
        raise problem.replace(reason=reason) from problem


def _make_file(path: Path) -> None:
    """Make a new file if there is none.

    It is never opened but by SQLite: closing another descriptor would drop the locks that this process holds on it.
    """
    if _identify(path) is None:
        _refuse_log_alone(path)
        create(path, new_file())
    check_lockable(path.parent)


def _refuse_log_alone(path: Path) -> None:
    """Refuse to create a file beside the log of one that is gone: SQLite would apply the log to the new one."""
    log = path.with_name(f"{path.name}-wal")
    # Another process may have just created the file with its log.
    if _identify(log) is not None and _identify(path) is None:
        message = (
            f"{show_path(str(path))} is gone, but its log is still there; put the file back, or, when no process uses it, "
            "move its -wal and -shm files away too to begin a new one"
        )
        raise ToolError(Kind.PERMANENT, message, details={"path": str(path)})


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of another program, or of a newer version."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        message = f"{show_path(str(path))} is a database, but not a queue of Toolcrib; nothing was stored, {_MOVE_AWAY}"
        raise ToolError(Kind.PERMANENT, message, details={"path": str(path)})
    if layout != LAYOUT:
        message = (
            f"the queue {show_path(str(path))} was written by another version of Toolcrib (layout {layout}, this one knows {LAYOUT}); "
            "nothing was stored, use that version, or move the file away to begin a new one"
        )
        raise ToolError(Kind.PERMANENT, message, details={"path": str(path), "layout": layout})


def _version(database: Database) -> tuple[int, int]:
    """Versions of two connections cannot be compared, so the connection is part of it."""
    return id(database), database.version()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into a ToolError that names the file and the cure."""
    try:
        yield
    except sqlite3.Error as problem:
        if isinstance(problem, sqlite3.ProgrammingError) and "closed database" in str(problem):
            raise _closed(path) from problem
        code = getattr(problem, "sqlite_errorcode", 0) & _PRIMARY
        unknown = (Kind.INTERNAL, f"fails with: {problem}; nothing was stored")
        kind, meaning = _MEANINGS.get(code, unknown)
        raise ToolError(
            kind,
            f"the queue {show_path(str(path))} {meaning}",
            retryable=kind is Kind.TRANSIENT,
            partial_side_effects=code == sqlite3.SQLITE_IOERR,
            details={"path": str(path)},
        ) from problem


def _closed(path: Path) -> ToolError:
    """The error for a queue that was closed."""
    return ToolError(Kind.PERMANENT, f"the queue {show_path(str(path))} was closed; nothing was stored, open it again")
