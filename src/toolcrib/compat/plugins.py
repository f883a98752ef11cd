"""Plug-ins of installed packages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Plugins


def find_plugins(group: str) -> list[Callable[[], Callable[[Plugins], None]]]:
    """How to load each plug-in that an installed package names under the group.

    Asking importlib.metadata costs more than the rest of the start, so it is asked only if a file mentions the group.
    """
    needle = f"[{group}]".encode()
    folders = (Path(folder) for folder in sys.path if folder)
    files = (file for folder in folders for file in folder.glob("*.dist-info/entry_points.txt"))
    if not any(needle in file.read_bytes() for file in files):
        return []
    from importlib.metadata import entry_points

    return [point.load for point in entry_points(group=group)]
