"""Durable writing of the crib's own data: what was acknowledged survives, and what failed left nothing behind.

Folders that are made on the way are open to their owner alone, and so are the files.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import create_in, read_at_most, replace_in, sweep_in
from toolcrib.ground.files.faults import explained, show
from toolcrib.ground.files.folders import OPEN_FOLDER, make_folder
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE_FILE = 0o600

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def create(path: Path, data: bytes) -> bool:
    """Write a new file; False, and nothing changes, if there is one. Of many creators one wins."""
    with explained(str(path)), _folder_of(path) as folder:
        return create_in(folder, path.name, data, mode=PRIVATE_FILE)


def replace(path: Path, data: bytes) -> None:
    """Write a file in place of the one that may be there; a reader sees the old one or the new one, whole."""
    with explained(str(path)), _folder_of(path) as folder:
        replace_in(folder, path.name, data, mode=PRIVATE_FILE)


def read(path: Path, limit: int) -> bytes | None:
    """The bytes of a file of at most `limit`, or None if there is none."""
    with explained(str(path)):
        try:
            descriptor = os.open(path, _FILE)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolError(Kind.VALIDATION, f"{show(str(path))} is not a regular file; move it away")
            data = read_at_most(descriptor, limit + 1)
        finally:
            os.close(descriptor)
    if len(data) > limit:
        message = f"{show(str(path))} has more than {limit} bytes; move it away or make it smaller"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit})
    return data


def sweep(folder: Path) -> int:
    """Remove what killed writers left in the folder; the number of files removed."""
    with explained(str(folder)):
        try:
            descriptor = os.open(folder, OPEN_FOLDER)
        except FileNotFoundError:
            return 0
        try:
            return sweep_in(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    make_folder(path.parent)
    descriptor = os.open(path.parent, OPEN_FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
