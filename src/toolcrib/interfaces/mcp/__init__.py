"""The Model Context Protocol interface: serves the tools over stdio and HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add `crib mcp`, `/mcp` of the HTTP server, and the screen of what it publishes beside tools."""
    plugins.add_command("mcp", "toolcrib.interfaces.mcp.commands:mcp", "Serve the tools to an MCP client over stdio.")
    plugins.add_endpoints("toolcrib.interfaces.mcp.endpoints:endpoints")
    plugins.add_screen("publications")
    plugins.add_settings("mcp", "toolcrib.interfaces.mcp.settings:McpSettings")
