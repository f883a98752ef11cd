"""The built-in tools: list_files, read_file, write_file, shell, fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.sources import Rank, ToolList

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the built-in tools; they are made when a lookup first comes to them."""
    plugins.add_resource("builtins", "toolcrib.features.builtins.tools:builtin_tools")
    plugins.add_source("builtins", _sources)
    plugins.add_settings("builtins", "toolcrib.features.builtins.settings:BuiltinsSettings")


def _sources(resources: Resources) -> list[ToolList]:
    return [ToolList(Rank.BUILTINS, resources.get("builtins"))]
