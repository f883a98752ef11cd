"""Activity: calls over time, how long they took, what failed and what it cost, from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the screen and what it reads."""
    plugins.add_screen("activity")
    plugins.add_endpoints("toolcrib.features.activity.endpoints:endpoints")
