"""The key that signs what the crib hands out, and nothing else ever sees."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolcrib.ground.files import durable
from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

KEY_BYTES = 32
REMOVE = "remove the file and a new one is made"

# Neither a link nor a pipe may stand where the key belongs, or somebody else decides what the key is.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def new_key() -> bytes:
    """A key for a crib that keeps nothing on disk."""
    return os.urandom(KEY_BYTES)


def load_key(path: Path, cure: str = REMOVE) -> bytes:
    """The key of a project; made at first use, for this user's eyes only, by exactly one of many processes.

    `cure` is what to do about a file that is no good as a key.
    """
    if not os.path.lexists(path):
        durable.create(path, new_key())
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as problem:
        raise SettingsError(f"{path}: the key cannot be read: {problem.strerror}; {cure}") from problem
    try:
        _check(path, os.fstat(descriptor), cure)
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: the key must be {KEY_BYTES} bytes; {cure}")
    return key


def _check(path: Path, status: os.stat_result, cure: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SettingsError(f"{path}: the key must be a plain file; {cure}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise SettingsError(f"{path}: others can read the key; {cure}, or run chmod 600 if nobody has seen it")
