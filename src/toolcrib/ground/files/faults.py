"""What the operating system says about files, told with the path and the cure."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_PATH = 200

_MEANINGS: dict[int, tuple[Kind, str]] = {
    errno.ENOENT: (Kind.NOT_FOUND, "does not exist; list the folder to see what does"),
    errno.ENOTDIR: (Kind.VALIDATION, "goes through something that is not a folder; list the folders on the way"),
    errno.EISDIR: (Kind.VALIDATION, "is a folder; name a file in it"),
    errno.ENXIO: (Kind.VALIDATION, "is not a regular file; name a regular file"),
    errno.ENAMETOOLONG: (Kind.VALIDATION, "is too long or too deep; use shorter names"),
    errno.EXDEV: (Kind.BLOCKED, "leads out of the workspace; use a path inside it, and only relative links"),
    errno.ELOOP: (Kind.BLOCKED, "goes through too many links; name the file itself"),
    errno.EAGAIN: (Kind.TRANSIENT, "changed while it was opened; try again"),
    errno.EACCES: (Kind.PERMANENT, "is not permitted; change the permissions of the file or its folder"),
    errno.EPERM: (Kind.PERMANENT, "is not permitted; change the permissions of the file or its folder"),
    errno.EROFS: (Kind.PERMANENT, "lies on a read-only file system; use another folder"),
    errno.ENOSPC: (Kind.PERMANENT, "has no room: the disk is full; free some space"),
    errno.EDQUOT: (Kind.PERMANENT, "has no room: the quota is used up; free some space"),
    errno.EMFILE: (Kind.PERMANENT, "cannot be opened: too many open files; raise the limit of open files"),
    errno.ENFILE: (Kind.PERMANENT, "cannot be opened: too many open files; raise the limit of open files"),
    errno.EIO: (Kind.PERMANENT, "cannot be reached: the disk reports an error; check the disk"),
}


class UnsyncedError(OSError):
    """The new content is in place, but whether it survives a power loss is not known."""


def fault(number: int) -> OSError:
    """The error that the operating system would raise."""
    return OSError(number, os.strerror(number))


def show(path: str) -> str:
    """The path as a message quotes it."""
    return repr(path if len(path) <= SHOWN_PATH else f"{path[:SHOWN_PATH]}…")


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn what the operating system says about the path into a ToolError."""
    try:
        yield
    except OSError as error:
        raise _explain(path, error) from error


def _explain(path: str, error: OSError) -> ToolError:
    unknown = (Kind.PERMANENT, f"fails with: {error.strerror}; check the file and its disk")
    kind, meaning = _MEANINGS.get(error.errno or 0, unknown)
    return ToolError(
        kind,
        f"{show(path)} {meaning}",
        retryable=kind is Kind.TRANSIENT,
        partial_side_effects=isinstance(error, UnsyncedError),
        details={"path": path[:SHOWN_PATH]},
    )
