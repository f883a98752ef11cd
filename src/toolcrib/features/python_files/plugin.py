"""Register plain Python files as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the format of plain files; trees of scripts have a format of their own."""
    plugins.add_format("toolcrib.features.python_files.format:PlainFile", suffixes=(".py",), in_trees=False)
