"""Folders for the eyes of their owner."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
