"""The calls by which files are written, gathered in one place so that a disk that fails can be put below them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Disk:
    """Each call as the operating system has it; names are those of files in the open folder."""

    def open(self, path: str | Path, flags: int, mode: int = 0o600, *, folder: int | None = None) -> int:
        """Open, and perhaps make, a file or open a folder."""
        return os.open(path, flags, mode, dir_fd=folder)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write some of the data where the file stands; how much it was."""
        return os.write(descriptor, data)

    def overwrite(self, descriptor: int, data: bytes) -> int:
        """Write some of the data at the beginning of the file; how much it was."""
        return os.pwrite(descriptor, data, 0)

    def sync(self, descriptor: int) -> None:
        """Wait until a file or a folder is on the disk."""
        os.fsync(descriptor)

    def touch(self, descriptor: int) -> None:
        """Say that it was changed now; file systems themselves only look at the clock every few milliseconds."""
        now = time.time_ns()
        os.utime(descriptor, ns=(now, now))

    def link(self, name: str, new: str, *, folder: int) -> None:
        """Give a file a second name."""
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def rename(self, name: str, new: str, *, folder: int) -> None:
        """Give a file or a folder another name, in place of what has it."""
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, name: str, *, folder: int) -> None:
        """Take a file its name."""
        os.unlink(name, dir_fd=folder)

    def make_folder(self, name: str, mode: int, *, folder: int) -> None:
        """Make a folder in a folder."""
        os.mkdir(name, mode, dir_fd=folder)


DISK = Disk()
