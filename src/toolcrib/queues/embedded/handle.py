"""The file of a queue, opened when it is needed: anew in a forked child, and when another file has taken its place."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.queues.embedded.database import Database
from toolcrib.queues.embedded.faults import closed, explained

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

# How often one who waits looks; an idle Builder is to be woken within 100 ms.
LOOK_SECONDS = 0.02
# What a forked child got from its parent and must not close: SQLite would take the parent's for its own.
_of_parents: list[list[Database]] = []


class Handle:
    """What the threads of a process hold instead of the file."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._closed = threading.Event()
        # What one last saw who waited for a change; None until there was anything to see.
        self._seen: tuple[int, int] | None = None
        self._begin()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection to change rows with: everything is on disk at the end or, if something fails, nothing."""
        with explained(self._path), self._open().writing() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, on which nothing changes meanwhile."""
        with explained(self._path), self._open().reading() as connection:
            yield connection

    def wait(self, seconds: float) -> bool:
        """Sleep until anything may have changed since one last waited here; False if nothing did, or it was closed."""
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
            self._closed.wait(min(left, LOOK_SECONDS))
        return False

    def close(self) -> None:
        """Let go of the file for good."""
        self._closed.set()
        self._leave_to_parent()
        with self._opening:
            while self._opened:
                self._opened.pop().close()

    def _look(self) -> tuple[int, int]:
        with explained(self._path):
            return _version(self._open())

    def _begin(self) -> None:
        self._process = os.getpid()
        self._opening = threading.Lock()
        # The last one is in use; those before it lost their file, and may still be in the hands of a thread.
        self._opened: list[Database] = []

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid():
            _of_parents.append(self._opened)
            self._begin()

    def _open(self) -> Database:
        self._leave_to_parent()
        with self._opening:
            if self._closed.is_set():
                raise closed(self._path)
            if not self._opened or self._opened[-1].has_moved():
                self._opened.append(Database(self._path, self._busy_seconds))
            if self._seen is None:
                self._seen = _version(self._opened[-1])
            return self._opened[-1]


def _version(database: Database) -> tuple[int, int]:
    """Figures of two connections say nothing about each other, so that it counts too whose it is."""
    return id(database), database.version()
