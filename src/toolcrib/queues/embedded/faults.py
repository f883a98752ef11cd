"""What SQLite says about a queue file, told with the file and the cure."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.ground.files.faults import show
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PRIMARY = 0xFF  # an extended code has the plain one in its lowest byte
_MOVE_AWAY = "put a copy of it back, or move it away with its -wal and -shm files to begin a new one"
_MEANINGS: dict[int, tuple[Kind, str]] = {
    sqlite3.SQLITE_BUSY: (Kind.TRANSIENT, "is kept busy by another process; nothing was stored, try again"),
    sqlite3.SQLITE_LOCKED: (Kind.TRANSIENT, "is kept busy by another thread; nothing was stored, try again"),
    sqlite3.SQLITE_FULL: (Kind.PERMANENT, "has no room: the disk is full; nothing was stored, free some space"),
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
    sqlite3.SQLITE_NOTADB: (Kind.PERMANENT, f"is no queue of Toolcrib; nothing was stored, {_MOVE_AWAY}"),
    # Whether the last of it reached the disk cannot be known.
    sqlite3.SQLITE_IOERR: (
        Kind.PERMANENT,
        "cannot be reached: the disk reports an error; check it, then look what was stored",
    ),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says about the file into a ToolError."""
    try:
        yield
    except sqlite3.Error as problem:
        if isinstance(problem, sqlite3.ProgrammingError) and "closed database" in str(problem):
            raise closed(path) from problem
        code = getattr(problem, "sqlite_errorcode", 0) & _PRIMARY
        unknown = (Kind.INTERNAL, f"fails with: {problem}; nothing was stored")
        kind, meaning = _MEANINGS.get(code, unknown)
        raise ToolError(
            kind,
            f"the queue {show(str(path))} {meaning}",
            retryable=kind is Kind.TRANSIENT,
            partial_side_effects=code == sqlite3.SQLITE_IOERR,
            details={"path": str(path)},
        ) from problem


def other_layout(path: Path, found: int, known: int) -> ToolError:
    """The file was written by another version of Toolcrib."""
    message = (
        f"the queue {show(str(path))} was written by a newer Toolcrib (layout {found}, known is {known}); "
        "nothing was stored, update Toolcrib, or move the file away to begin a new one"
    )
    return ToolError(Kind.PERMANENT, message, details={"path": str(path), "layout": found})


def foreign(path: Path) -> ToolError:
    """The file is a database of somebody else."""
    message = f"{show(str(path))} is a database, but no queue of Toolcrib; nothing was stored, {_MOVE_AWAY}"
    return ToolError(Kind.PERMANENT, message, details={"path": str(path)})


def gone(path: Path) -> ToolError:
    """The file was taken away, but not what was written to it last."""
    message = (
        f"{show(str(path))} is gone, but its log is still there; put the file back, or, when nobody uses it any more, "
        "move its -wal and -shm files away too to begin a new one"
    )
    return ToolError(Kind.PERMANENT, message, details={"path": str(path)})


def closed(path: Path) -> ToolError:
    """Whoever held the queue let go of it."""
    return ToolError(Kind.PERMANENT, f"the queue {show(str(path))} was closed; nothing was stored, open it again")
