"""Telling from a file's times, size and number whether it is still as it was."""

from __future__ import annotations

import os
import time

# File systems tell times apart only by their tick: a file this young may be changed again without a new time.
RACY_NANOSECONDS = 50_000_000

Stamp = tuple[int, ...]
ABSENT: Stamp = ()


def stamp_of(status: os.stat_result) -> Stamp:
    """What changes when the file or folder does."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode, status.st_dev


def settled_stamp(status: os.stat_result) -> Stamp | None:
    """The stamp, unless a change at this very moment would leave it as it is."""
    # The time of the last change of any kind: unlike the time of writing, nobody can set it back.
    return stamp_of(status) if time.time_ns() - status.st_ctime_ns > RACY_NANOSECONDS else None


def is_as_it_was(path: str, stamp: Stamp | None) -> bool:
    """Whether the file or folder still has this stamp; without one nobody knows."""
    if stamp is None:
        return False
    try:
        return stamp_of(os.stat(path)) == stamp  # noqa: PTH116 - every call waits for this, a Path takes twice as long
    except OSError:
        return stamp == ABSENT
