"""Access tokens of the server, sign-in to the web page, and the commands for tokens and secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the tokens of a project, which are stored in its store, with their commands, endpoints and screen."""
    plugins.add_resource(
        "tokens",
        "toolcrib.features.access.tokens:Tokens",
        given=lambda resources: {"store": resources.data.store, "record": resources.record},
    )
    plugins.add_command("secret", "toolcrib.features.access.commands:secret", "Store secrets for HTTP tools.")
    plugins.add_screen("access")
    plugins.add_endpoints("toolcrib.features.access.endpoints:endpoints")
    plugins.add_command("token", "toolcrib.features.access.commands:token", "Manage access tokens of the server.")
    plugins.add_settings("access", "toolcrib.features.access.settings:AccessSettings")
