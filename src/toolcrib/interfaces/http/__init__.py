"""The HTTP server and its API."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add `crib serve`, and the endpoints of calls, sessions, the overview and the pages."""
    plugins.add_command("serve", "toolcrib.interfaces.http.commands:serve", "Serve the tools over HTTP.")
    plugins.add_screen("health")
    plugins.add_endpoints("toolcrib.interfaces.http.call_endpoints:endpoints")
    plugins.add_endpoints("toolcrib.interfaces.http.session_endpoints:endpoints")
    plugins.add_endpoints("toolcrib.interfaces.http.overview_endpoints:endpoints")
    plugins.add_endpoints("toolcrib.interfaces.http.page_endpoints:endpoints")
    plugins.add_settings("server", "toolcrib.interfaces.http.settings:ServerSettings")
