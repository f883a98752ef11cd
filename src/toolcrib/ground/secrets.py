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


def new_key() -> bytes:
    """A key for a crib that keeps nothing on disk."""
    return os.urandom(KEY_BYTES)


def load_key(path: Path) -> bytes:
    """The key of a project; made at first use, for this user's eyes only, by exactly one of many processes."""
    if not path.exists():
        durable.create(path, new_key())
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o077:
        raise SettingsError(f"{path}: the key must be a plain file that only its owner can read; run chmod 600 on it")
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: the key must be {KEY_BYTES} bytes; remove the file and a new one is made")
    return key
