"""Measure deleted files that a process still holds open: they use disk space but no folder shows them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESSES = "/proc"


def measure_unlinked(folder: str) -> int:
    """The bytes on disk of deleted files of the folder that a process still holds open.

    Processes that cannot be inspected count nothing; those of a maker are our own. A file that is only mapped is not
    found.
    """
    found: dict[tuple[int, int], int] = {}
    for descriptor in _open_files(f"{folder.rstrip('/')}/"):
        with suppress(OSError):  # closed meanwhile
            facts = descriptor.stat()
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


def _open_files(beginning: str) -> Iterator[os.DirEntry[str]]:
    """The open descriptors of all processes whose path starts like this."""
    for process in _entries(PROCESSES):
        if process.name.isdecimal():
            yield from (one for one in _entries(f"{process.path}/fd") if _target(one.path).startswith(beginning))


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of paths: a Path for each would be slow
    except OSError:
        return ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder; empty if it is unreadable or gone."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
