"""Find the files beside a tool that it may not import: those of disabled tools, and those of another origin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_small, stamp_on_disk
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, read_json
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcrib.model.tool import Entry, Tool

# The record of what was pulled, in a folder of tools: it stays with the files when they are copied.
PULLED = ".pulled.json"


class Origins:
    """Where files come from. A tool that was built is one origin, and so is one that was pulled; all else is the project's.

    `find` gives the tools near a path, and a value that stays equal as long as they do. `folders` may have a record of what
    was pulled into them.
    """

    def __init__(self, find: Callable[[Path], tuple[object, Iterable[Entry]]], folders: Sequence[Path]) -> None:
        self._find = find
        self._folders = folders
        self._known: dict[Path, tuple[object, tuple[Path, ...]]] = {}

    def hidden_from(self, tool: Tool) -> tuple[Path, ...]:
        """The files and folders that the tool may not import."""
        own = _code_of(tool) or Path("" if tool.origin is None else tool.origin.place)
        changes, entries = self._find(own)
        state = changes, [stamp_on_disk(str(folder / PULLED)) for folder in self._folders]
        if own not in self._known or self._known[own][0] != state:
            self._known[own] = state, self._look(own, entries)
        return self._known[own][1]

    def _look(self, own: Path, entries: Iterable[Entry]) -> tuple[Path, ...]:
        usable: dict[Path, bool] = {}
        records = [(folder, files) for folder in self._folders for files in read_pulled(folder).values()]
        origins = [{folder / name for name in files} for folder, files in records]
        for entry in entries:
            if (path := _code_of(entry.tool)) is not None:
                usable[path] = usable.get(path, False) or entry.enabled
                # A package is a folder.
                origins += [] if path.suffix else [{path}]
        # A file may have come with several tools.
        shared = {path for origin in origins if own in origin for path in origin}
        foreign = {path for origin in origins for path in origin - shared}
        disabled = {path for path, is_usable in usable.items() if not is_usable and path != own}
        return tuple(sorted(foreign | disabled))


def _code_of(tool: Tool) -> Path | None:
    """The file with the code of a tool, or the folder of a package."""
    script = tool.script
    return None if script is None else script.path.parent if script.files else script.path


def read_pulled(folder: Path) -> dict[str, list[str]]:
    """The paths of the files from the folder, by the tool that they came with."""
    path = folder / PULLED
    data = read_small(path, MAX_DEFINITION_BYTES)
    found = {} if data is None else read_json(data, place=str(path))
    if not isinstance(found, dict) or not all(isinstance(files, list) for files in found.values()):
        raise ToolError(Kind.VALIDATION, f"{path}: write an object with the files of each tool that was pulled")
    return {name: list(map(str, files)) for name, files in found.items()}
