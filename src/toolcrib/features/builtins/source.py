"""The built-in tools of one Crib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.builtins.fetch import fetch_tool
from toolcrib.features.builtins.workspace_tools import file_tools, shell_tool

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Tool


def builtin_tools(resources: Resources) -> list[Tool]:
    """The tools for files, shell and web, in the workspace of the settings."""
    seconds = resources.settings.shell_timeout_ms / 1000
    return [
        *file_tools(resources.get("confirmed_jail")),
        shell_tool(resources.get("sandbox"), premises=resources.get("premises"), timeout_seconds=seconds),
        fetch_tool(resources.get("egress")),
    ]
