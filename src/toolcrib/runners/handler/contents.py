"""The files of a handler as they were checked: its process reads these bytes of its folders, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.files.regular import read_beginning
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.model.tool import Handler

MOUNTS = "mounts"


def checked_files(run: Handler) -> dict[Path, bytes]:
    """What a process finds in each of its files."""
    root = run.root.absolute()
    return {root / path: content for path, content in run.contents.items()}


def refuse_changed(run: Handler, layers: Iterable[str]) -> None:
    """Refuse a folder that is not what was loaded, if that is what would run.

    A process with mounts of its own has its files covered with the bytes that were loaded, as long as they are there.
    """
    covered = MOUNTS in layers
    for path, content in run.contents.items():
        now = read_beginning(run.root / path, len(content) + 1)
        if now != content and (now is None or not covered):
            message = f"{path} changed since it was loaded; run crib build and start again"
            raise ToolError(Kind.CONFLICT, message)
