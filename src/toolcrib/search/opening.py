"""The file of an index: opened when it is needed, made anew when it is gone or broken, done without where none can be.

Nothing in an index is kept nowhere else, so it may be thrown away at any time: whoever keeps it finds it without facts, and fills
it again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from toolcrib.model.errors import Kind, ToolError
from toolcrib.search.database import Database, UnusableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

T = TypeVar("T")

logger = logging.getLogger("toolcrib.search")

# How often one looks whether the file is still there.
LOOK_SECONDS = 0.1
# Work that met a broken file is done on a new one, and if need be on one in memory.
ATTEMPTS = 3

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT}
# No room, no right to write, no disk that works.
HOPELESS = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOLFS,
}


class Opening:
    """The database at a path, or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._looked_at = 0.0
        # How often a database was opened.
        self.opened = 0

    def read(self, work: Callable[[sqlite3.Connection, Database], T]) -> T:
        """Do what only reads."""
        return self._do(Database.reading, work)

    def write(self, work: Callable[[sqlite3.Connection, Database], T]) -> T:
        """Do what changes rows: everything or, if something fails, nothing."""
        return self._do(Database.writing, work)

    def incarnation(self) -> int:
        """How often the database was opened, once it is open."""
        self._open()
        return self.opened

    def close(self) -> None:
        """Let go of what is open; whoever goes on opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _do(
        self,
        take: Callable[[Database], AbstractContextManager[sqlite3.Connection]],
        work: Callable[[sqlite3.Connection, Database], T],
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

    def _open(self) -> Database:
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

    def _look_at_file(self, database: Database) -> None:
        """Let go of a database whose file was taken away, or of which a part was."""
        if database.has_moved():
            self.close()
        elif database.has_lost_its_log():
            self.close()
            self._give_way(UnusableError("its log is gone"))

    def _open_or_renew(self) -> Database:
        for _ in range(ATTEMPTS):
            try:
                return Database(self._path)
            except (sqlite3.Error, OSError) as problem:
                self._give_way(problem)
        return Database(self._path)

    def _recover(self, database: Database, problem: sqlite3.Error) -> None:
        """See to it that another attempt may succeed."""
        with self._lock:
            if database is self._database:
                self._look_at_file(database)
            if database is not self._database:
                return  # the file was the problem, or another thread saw to it
            self.close()
            self._give_way(problem)

    def _give_way(self, problem: sqlite3.Error | OSError) -> None:
        """Make room for a new file, or do without one."""
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


def _is_broken(problem: Exception, code: int) -> bool:
    return isinstance(problem, UnusableError) or code in BROKEN or "no such table" in str(problem)


def _removed(path: Path) -> bool:
    """Take a broken file away; the file itself last, so that nobody opens it without its log."""
    try:
        for end in ("-wal", "-shm", ""):
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError:
        return False
    return True
