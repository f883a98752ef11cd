"""One SQLite database of an index, in a file or in memory: who may use which connection."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.ground.files.folders import make_folder
from toolcrib.search.shelf import LAYOUT, make_tables
from toolcrib.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How long one waits for another process; the longest wait is for one that fills a large index.
BUSY_SECONDS = 60.0
IDLE_CONNECTIONS = 4
CACHE_KIB = 32_768
KEPT_LOG_BYTES = 16 * 1024 * 1024


class UnusableError(sqlite3.DatabaseError):
    """The file is not what it should be: of another version of this program, or only a part."""


class Database:
    """A database that is open.

    A file has one connection that writes and as many that read as there are threads at it; what is in memory has one for all.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
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
            _prepare(self._writer)
            self._identity = _identify(path) if path else None
            self._log = _identify_log(path) if path else None
        except BaseException:
            self._writer.close()
            raise

    def has_moved(self) -> bool:
        """Whether the file is not where it was, or another one is there."""
        return self._path is not None and _identify(self._path) != self._identity

    def has_lost_its_log(self) -> bool:
        """Whether what was written last is not beside the file any more, without which it is worth nothing."""
        return self._path is not None and _identify_log(self._path) != self._log

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection to change rows with: everything or, if something fails, nothing."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            with _ended(self._writer):
                yield self._writer

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, on which nothing changes meanwhile."""
        if self._path is None:
            with self._writing:
                yield self._writer
            return
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            with _ended(connection):
                yield connection
        finally:
            self._give_back(connection)

    def learn_words(self, connection: sqlite3.Connection) -> Vocabulary:
        """The words of all rows, with those that were added since one last looked."""
        with self._learning:
            found = connection.execute(
                "SELECT number, word FROM vocabulary WHERE number > ? ORDER BY number", (self._learned,)
            ).fetchall()
            if found:
                self.vocabulary.add(word for _, word in found)
                self._learned = found[-1][0]
        return self.vocabulary

    def close(self) -> None:
        """Let go of every connection; those in use are closed by whoever gives them back."""
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
        """One more connection to this database; what lies at the path may be another one by now, or lack its log."""
        connection = _connect(self._path)
        try:
            # Only whoever reads has opened the log.
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
    """What was written last, and the memory in which connections tell each other of it."""
    return [_identify(path.with_name(path.name + end)) for end in ("-wal", "-shm")]


def _connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        # What is lost when the power fails can be made anew.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables in a new file."""
    connection.execute("PRAGMA journal_mode = WAL")
    if _layout(connection) == LAYOUT:
        return
    connection.execute("BEGIN IMMEDIATE")
    with _ended(connection):
        # Another process may have been quicker.
        if _layout(connection) == LAYOUT:
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise UnusableError("the file has another layout")
        make_tables(connection)


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


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
