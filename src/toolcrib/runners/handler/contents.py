"""The files of a handler as they were checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.runners import contents

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.model.tool import Handler, Tool


def checked_files(run: Handler) -> dict[Path, bytes]:
    """What a process finds in each of its files."""
    root = run.root.absolute()
    return {root / path: content for path, content in run.contents.items()}


def refuse_changed(tool: Tool, run: Handler, layers: Iterable[str]) -> None:
    """Refuse a folder that is not what was loaded, if that is what would run."""
    root = run.root.absolute()

    def changed(path: Path) -> ToolError:
        message = f"{path.relative_to(root).as_posix()} changed since it was loaded; run crib build and start again"
        return ToolError(Kind.CONFLICT, message)

    contents.refuse_changed(tool, checked_files(run), run.folders, layers, changed)
