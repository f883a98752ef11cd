"""The files of a handler as they were checked: its process reads these bytes of its folders, and no other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.files.regular import read_beginning
from toolcrib.ground.sandbox.walls import READ
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.tool import Handler, Tool

MOUNTS = "mounts"


def checked_files(run: Handler) -> dict[Path, bytes]:
    """What a process finds in each of its files."""
    root = run.root.absolute()
    return {root / path: content for path, content in run.contents.items()}


def refuse_changed(tool: Tool, run: Handler, layers: Iterable[str]) -> None:
    """Refuse a folder that is not what was loaded, if that is what would run.

    A process with mounts of its own has its files covered with the bytes that were loaded, as long as they are there and are
    files. Where it may read the workspace, it could read, and run, whatever was put beside them.
    """
    covered = MOUNTS in layers
    for path, content in run.contents.items():
        now = None if (run.root / path).is_symlink() else read_beginning(run.root / path, len(content) + 1)
        if now != content and (now is None or not covered):
            raise _changed(path)
    if READ in tool.requires:
        for folder in run.folders:
            _refuse_added(run, folder)


def _refuse_added(run: Handler, folder: Path) -> None:
    root = run.root.absolute()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_foreign(name)]
        for name in names:
            path = Path(place, name).relative_to(root).as_posix()
            if not is_foreign(name) and path not in run.contents:
                raise _changed(path)


def _changed(path: str) -> ToolError:
    return ToolError(Kind.CONFLICT, f"{path} changed since it was loaded; run crib build and start again")
