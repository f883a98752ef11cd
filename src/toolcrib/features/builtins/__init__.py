"""The built-in tools: list_files, read_file, write_file, shell, fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.sources import Rank, ToolList
from toolcrib.infra.settings import Table, read_positive, read_switch, setting

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


class BuiltinsSettings(Table, name="builtins"):
    """The tools for files, shell and web that come with Toolcrib."""

    enabled: bool = setting(default=True, read=read_switch, opens=False, summary="whether these tools are available")
    shell_timeout_ms: int = setting(
        default=30_000, read=read_positive, opens=False, summary="how long a shell command may take"
    )


def register(plugins: Plugins) -> None:
    """Add the built-in tools; they are created by the first lookup that reaches them."""
    plugins.add_resource("builtins", "toolcrib.features.builtins.tools:builtin_tools")
    plugins.add_source("builtins", _sources)
    plugins.add_settings("builtins", BuiltinsSettings)


def _sources(resources: Resources) -> list[ToolList]:
    return [ToolList(Rank.BUILTINS, resources.get("builtins"))]
