"""Register what models are shown of tools: the offered ones, prompts, and the definitions of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the exports."""
    plugins.add_resource("exports", "toolcrib.features.exports.facade:Exports")
