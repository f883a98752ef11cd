"""A queue file that is open: who may use which connection."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from toolcrib.ground.files.durable import create
from toolcrib.ground.files.locks import Locks
from toolcrib.ground.files.mounts import check_lockable
from toolcrib.model.errors import ToolError
from toolcrib.queues.embedded.faults import foreign, gone, other_layout
from toolcrib.queues.embedded.schema import APPLICATION, LAYOUT, new_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How long one waits for another process; each keeps the file for a few milliseconds.
BUSY_SECONDS = 10.0
LOCK_FOLDER = "locks"
KEPT_LOG_BYTES = 4 * 1024 * 1024


class Database:
    """One connection that writes and one that reads, each for one thread at a time.

    Whoever writes stands in a line before: SQLite itself lets those who wait ask again and again, and some of them starve.
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
        """A connection to change rows with: everything is on disk at the end or, if something fails, nothing."""
        with ExitStack() as stack:
            with _nothing_stored():
                stack.enter_context(self._line.hold(self._path.stem, self._busy_seconds))
            stack.enter_context(self._writing)
            self._writer.execute("BEGIN IMMEDIATE")
            stack.enter_context(_ended(self._writer))
            yield self._writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, on which nothing changes meanwhile."""
        with self._reading:
            self._reader.execute("BEGIN")
            with _ended(self._reader):
                yield self._reader

    def version(self) -> int:
        """What changes with every change, whoever made it: the connection that reads never made one itself."""
        with self._reading:
            return int(self._reader.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Let go of the file, as soon as whoever is at it has finished."""
        with self._reading:
            self._reader.close()
        with self._writing:
            self._writer.close()


@contextmanager
def _nothing_stored() -> Iterator[None]:
    """What fails here fails before anything was stored, and says so."""
    try:
        yield
    except ToolError as problem:
        message = f"the queue cannot be used, and nothing was stored: {problem.message}"
        raise ToolError(problem.kind, message, retryable=problem.retryable, details=problem.details) from problem


def _make_file(path: Path) -> None:
    """Make a new file if there is none.

    It is never opened but by SQLite: to close it again would drop the locks of whoever in this process has it open.
    """
    if _identify(path) is None:
        _refuse_log_alone(path)
        create(path, new_file())
    check_lockable(path.parent)


def _refuse_log_alone(path: Path) -> None:
    """Refuse to begin anew beside the log of a file that is gone: SQLite would write the log into the new one."""
    log = path.with_name(f"{path.name}-wal")
    # The file may have been made a moment ago, with its log.
    if _identify(log) is not None and _identify(path) is None:
        raise gone(path)


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
    """Refuse a file that is not ours, or that a newer version wrote."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise foreign(path)
    if layout != LAYOUT:
        raise other_layout(path, layout, LAYOUT)


@contextmanager
def _ended(connection: sqlite3.Connection) -> Iterator[None]:
    """End the transaction: with all its changes, or, if something fails, with none."""
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
