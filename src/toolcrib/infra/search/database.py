"""The SQLite database of an index, in a shared file or in memory, with recovery from a lost or broken file."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from toolcrib.infra.files import commit_or_rollback, make_folder
from toolcrib.infra.search import Vocabulary
from toolcrib.infra.search.tables import LAYOUT, make_tables
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

T = TypeVar("T")

logger = logging.getLogger("toolcrib.search")

# How long to wait for another process; the longest wait is for one that fills a large index.
BUSY_SECONDS = 60.0
IDLE_CONNECTIONS = 4
CACHE_KIB = 32_768
KEPT_LOG_BYTES = 16 * 1024 * 1024
# How often to check that the file still exists.
LOOK_SECONDS = 0.1
# Work that met a broken file is repeated on a new one, and finally on one in memory.
ATTEMPTS = 3

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT}
# A full disk, no permission to write, or a disk that fails.
HOPELESS = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOLFS,
}


class UnusableError(sqlite3.DatabaseError):
    """The file is unusable: from another version of this program, or incomplete."""


class Database:
    """The database at a path, or in memory without one: opened on demand, recreated when it is gone or broken.

    An index is derived data: a lost one is recreated without facts, and filled again. Where no file can be written, it
    is in memory.
    """

    def __init__(self, path: Path | None, *, full_text: bool) -> None:
        self._path = path
        self._full_text = full_text
        self._lock = threading.RLock()
        self._database: OpenDatabase | None = None
        self._looked_at = 0.0
        # How often a database was opened.
        self.opened = 0

    def read(self, work: Callable[[sqlite3.Connection, OpenDatabase], T]) -> T:
        """Run a read-only function."""
        return self._do(OpenDatabase.reading, work)

    def write(self, work: Callable[[sqlite3.Connection, OpenDatabase], T]) -> T:
        """Run a function that changes rows, in one transaction."""
        return self._do(OpenDatabase.writing, work)

    def incarnation(self) -> int:
        """How often the database was opened, once it is open."""
        self._open()
        return self.opened

    def close(self) -> None:
        """Close it; the next read or write opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _do(
        self,
        take: Callable[[OpenDatabase], AbstractContextManager[sqlite3.Connection]],
        work: Callable[[sqlite3.Connection, OpenDatabase], T],
    ) -> T:
        attempt = 1
        while True:
            database = self._open()
            try:
                with take(database) as connection:
                    return work(connection, database)
            except sqlite3.Error as problem:
                if attempt == ATTEMPTS:
                    raise
                self._recover(database, problem)
            attempt += 1

    def _open(self) -> OpenDatabase:
        with self._lock:
            now = time.monotonic()
            if self._database is not None and now - self._looked_at > LOOK_SECONDS:
                self._looked_at = now
                self._look_at_file(self._database)
            if self._database is None:
                self._looked_at = now
                self._database = self._open_or_renew()
                self.opened += 1
            return self._database

    def _look_at_file(self, database: OpenDatabase) -> None:
        """Close a database whose file, or a part of it, was removed."""
        if database.has_moved():
            self.close()
        elif database.has_lost_its_log():
            self.close()
            self._give_way(UnusableError("its log is gone"))

    def _open_or_renew(self) -> OpenDatabase:
        for _ in range(ATTEMPTS):
            try:
                return OpenDatabase(self._path, full_text=self._full_text)
            except (sqlite3.Error, OSError) as problem:
                self._give_way(problem)
        return OpenDatabase(self._path, full_text=self._full_text)

    def _recover(self, database: OpenDatabase, problem: sqlite3.Error) -> None:
        """Recover, so that another attempt may succeed."""
        with self._lock:
            if database is self._database:
                self._look_at_file(database)
            if database is not self._database:
                return  # the file was the problem, or another thread recovered already
            self.close()
            self._give_way(problem)

    def _give_way(self, problem: sqlite3.Error | OSError) -> None:
        """Remove a broken file, or fall back to memory."""
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in BUSY:
            message = f"{self._path}: another process keeps the index busy; try again"
            raise ToolError(Kind.TRANSIENT, message) from problem
        if self._path is not None and _is_broken(problem, code) and _removed(self._path):
            logger.warning("search: %s is made anew: %s", self._path, problem)
        elif self._path is not None and (isinstance(problem, OSError) or code in HOPELESS | BROKEN):
            logger.warning("search: %s cannot be used (%s); the index is kept in memory", self._path, problem)
            self._path = None
        else:
            raise problem


class OpenDatabase:
    """The connections to one database.

    A file has one connection that writes and one that reads per thread; a database in memory has one for all.
    """

    def __init__(self, path: Path | None, *, full_text: bool) -> None:
        self._path = path
        self.full_text = full_text
        self.vocabulary = Vocabulary()
        self._learning = threading.Lock()
        self._learned = 0
        self._closed = False
        self._writing = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        if path is not None:
            make_folder(path.parent)
        self._writer = _connect(path)
        try:
            _prepare(self._writer, full_text=full_text)
            self._identity = _identify(path) if path else None
            self._log = _identify_log(path) if path else None
        except BaseException:
            self._writer.close()
            raise

    def has_moved(self) -> bool:
        """Whether the file was moved or replaced."""
        return self._path is not None and _identify(self._path) != self._identity

    def has_lost_its_log(self) -> bool:
        """Whether the write-ahead log of the file is gone, without which the file is worthless."""
        return self._path is not None and _identify_log(self._path) != self._log

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection for one write transaction."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            with commit_or_rollback(self._writer):
                yield self._writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for one read transaction."""
        if self._path is None:
            with self._writing:
                yield self._writer
            return
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            with commit_or_rollback(connection):
                yield connection
        finally:
            self._give_back(connection)

    def learn_words(self, connection: sqlite3.Connection) -> Vocabulary:
        """The vocabulary of all rows, updated with the words added since the last call."""
        with self._learning:
            found = connection.execute(
                "SELECT number, word FROM vocabulary WHERE number > ? ORDER BY number", (self._learned,)
            ).fetchall()
            if found:
                self.vocabulary.add(word for _, word in found)
                self._learned = found[-1][0]
        return self.vocabulary

    def close(self) -> None:
        """Close every connection; those in use are closed when they are returned."""
        self._closed = True
        with self._writing:
            self._writer.close()
        while self._idle:
            self._idle.pop().close()

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect_to_same()

    def _connect_to_same(self) -> sqlite3.Connection:
        """Another connection to this database; the file at the path may be another one by now, or lack its log."""
        connection = _connect(self._path)
        try:
            # SQLite opens the log with the first read.
            connection.execute("SELECT 1 FROM facts").fetchone()
            if self.has_moved() or self.has_lost_its_log():
                raise UnusableError("the file was taken away")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed or len(self._idle) >= IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _identify_log(path: Path) -> list[tuple[int, int] | None]:
    """The identity of the write-ahead log and its shared memory."""
    return [_identify(path.with_name(path.name + end)) for end in ("-wal", "-shm")]


def _connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        # What a power loss destroys can be recreated.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, *, full_text: bool) -> None:
    """Create the tables in a new file."""
    connection.execute("PRAGMA journal_mode = WAL")
    if _layout(connection) == LAYOUT:
        return
    connection.execute("BEGIN IMMEDIATE")
    with commit_or_rollback(connection):
        # Another process may have been faster.
        if _layout(connection) == LAYOUT:
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise UnusableError("the file has another layout")
        make_tables(connection, full_text=full_text)


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_broken(problem: Exception, code: int) -> bool:
    return isinstance(problem, UnusableError) or code in BROKEN or "no such table" in str(problem)


def _removed(path: Path) -> bool:
    """Remove a broken file; the file itself last, so that no process opens it without its log."""
    try:
        for end in ("-wal", "-shm", ""):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError:
        return False
    return True
