"""Register depots: places to publish tools to and to pull them from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add what publishes and pulls."""
    plugins.add_resource("depots", "toolcrib.features.depots.transfer:Depots")
    plugins.add_command("publish", "toolcrib.features.depots.commands:publish", "Publish a tool to a depot.")
    plugins.add_command("pull", "toolcrib.features.depots.commands:pull", "Pull a tool from a depot.")
    plugins.add_command(
        "depot", "toolcrib.features.depots.commands:depot", "Look into a depot, and make keys to sign with."
    )
    plugins.add_settings("depots", "toolcrib.features.depots.settings:DepotsSettings")
