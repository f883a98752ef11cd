"""Measure files that a program keeps open after it removed their names: they fill the disk, and no folder shows them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESSES = "/proc"


def measure_unlinked(folder: str) -> int:
    """The bytes on disk of the files that once lay in the folder and that some process still holds open.

    Processes that may not be looked at count nothing; those of a maker are ours. A file that is only mapped is not found.
    """
    found: dict[tuple[int, int], int] = {}
    for descriptor in _open_files(f"{folder.rstrip('/')}/"):
        with suppress(OSError):  # closed meanwhile
            facts = descriptor.stat()
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


def _open_files(beginning: str) -> Iterator[os.DirEntry[str]]:
    """The descriptors of all processes for what has, or had, a name that begins so."""
    for process in _entries(PROCESSES):
        if process.name.isdecimal():
            yield from (one for one in _entries(f"{process.path}/fd") if _target(one.path).startswith(beginning))


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - there are thousands of them, and a Path for each takes longer
    except OSError:
        return ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing if it is somebody else's or gone."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
