"""Small files of others, of whom nothing is known: a pipe does not hold the reader up, nor does an endless file fill it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import read_at_most

if TYPE_CHECKING:
    from pathlib import Path

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_small(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file, links followed; None if there is none, or none to read, or it has more than `limit`."""
    data = read_beginning(path, limit + 1)
    return None if data is None or len(data) > limit else data


def read_beginning(path: Path, limit: int) -> bytes | None:
    """The first bytes of a regular file, links followed; None if there is none, or none to read."""
    try:
        # Asked before it is opened: some devices act upon being opened.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - the same call as the next ones
            return None
        descriptor = os.open(path, _OPEN)
    except (OSError, ValueError):
        return None
    try:
        return read_at_most(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
