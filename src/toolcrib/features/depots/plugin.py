"""Register depots: places to publish tools to and to pull them from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add what publishes and pulls."""
    plugins.add_resource("depots", "toolcrib.features.depots.facade:Depots")
