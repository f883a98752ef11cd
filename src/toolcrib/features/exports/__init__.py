"""Tools in the words of model providers, and chat adapters for their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the exports."""
    plugins.add_resource("exports", "toolcrib.features.exports.facade:Exports")
    plugins.add_resource("descriptions", "toolcrib.features.exports.descriptions:Descriptions")
    plugins.add_command("doc", "toolcrib.features.exports.commands:doc", "Print the whole documentation of a tool.")
    plugins.add_command(
        "prompt", "toolcrib.features.exports.commands:prompt", "Print what a system prompt says of the tools of a mode."
    )
    plugins.add_command(
        "export", "toolcrib.features.exports.commands:export", "Print the tools as a model provider takes them."
    )
