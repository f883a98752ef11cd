"""Where script files are found, and the tools that execute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.file_source import Folder
from toolcrib.features.scripts.format import ScriptFile

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources


def script_sources(resources: Resources) -> list[Folder]:
    """The trees of scripts; formats of installed packages are asked before our own."""
    formats = resources.formats(in_trees=True)
    trees = resources.get("script_trees").items()
    return [Folder(path, bundle, [*formats, ScriptFile(path)], deep=True) for bundle, path in trees]
