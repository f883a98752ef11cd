"""The folders that hold tool folders: those of the settings, and the bundles below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.sources import folder_rank
from toolcrib.infra.files import is_tool_folder, list_files
from toolcrib.lib.names import bundle_below
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.core.resources import Resources

# A bundle below a folder comes after everything that lies directly in it.
BELOW = 0.0005


class RegistryFolder(NamedTuple):
    """A folder with a registry of its own, and its bundle; with a `problem` it cannot be one."""

    path: Path
    bundle: str
    rank: float
    problem: str = ""


def registry_folders(resources: Resources) -> Iterator[RegistryFolder]:
    """The tool folders of the settings, each followed by the folders below it that hold tool folders."""
    for position, top in enumerate(resources.tool_folders()):
        rank = folder_rank(position)
        yield RegistryFolder(top, top.name, rank)
        packages = (name.rpartition("/") for name in list_files(top, resources.package_marks).packages)
        below = {folder for folder, _, name in packages if folder and is_tool_folder(top / folder / name)}
        for folder in sorted(below):
            try:
                yield RegistryFolder(top / folder, bundle_below(top.name, folder), rank + BELOW)
            except ToolError as problem:
                yield RegistryFolder(top / folder, "", rank, f"{top / folder}: {problem.message}")
