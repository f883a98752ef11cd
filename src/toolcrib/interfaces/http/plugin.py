"""Register the command that starts the HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add `crib serve`."""
    plugins.add_command("serve", "toolcrib.interfaces.http.commands:serve", "Serve the tools over HTTP.")
