"""Folders for the eyes of their owner."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.ground.files.disk import DISK, Disk
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PRIVATE_FOLDER = 0o700
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Make a folder and those on the way to it, each to stay when the power fails."""
    if folder.is_dir():
        return
    # One by one: mkdir with `parents` would open the folders on the way to everybody.
    make_folder(folder.parent)
    folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    descriptor = os.open(folder.parent, OPEN_FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def way_to(root: Path, names: Sequence[str], *, make: bool = False, disk: Disk = DISK) -> Iterator[tuple[int, ...]]:
    """The open root, the open folders below it, and last the one they lead to; none of the names may be a link.

    With `make`, folders that are not there are made, to stay when the power fails.
    """
    if make:
        make_folder(root)
    step = _make_and_enter if make else enter
    way = [disk.open(root, OPEN_FOLDER)]
    try:
        for name in names:
            way.append(step(way[-1], name, disk))
        yield tuple(way)
    finally:
        for descriptor in reversed(way):
            os.close(descriptor)


def enter(folder: int, name: str, disk: Disk = DISK) -> int:
    """Open a folder in an open folder; its name may not be a link."""
    try:
        return disk.open(name, OPEN_FOLDER | os.O_NOFOLLOW, folder=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            message = f"{name!r} is a link where a folder of our own should be; put the folder itself there"
            raise ToolError(Kind.BLOCKED, message) from None
        raise


def _make_and_enter(folder: int, name: str, disk: Disk) -> int:
    while True:
        try:
            return enter(folder, name, disk)
        except FileNotFoundError:
            # Somebody else may make it, or discard it, at the same time.
            with suppress(FileExistsError):
                disk.make_folder(name, PRIVATE_FOLDER, folder=folder)
            disk.sync(folder)
