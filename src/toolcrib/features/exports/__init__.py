"""Tool definitions in the formats of model providers, chat adapters, and prompts about tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the exports and descriptions of tools, and their commands."""
    plugins.add_resource("exports", "toolcrib.features.exports.facade:Exports")
    plugins.add_resource("descriptions", "toolcrib.features.exports.descriptions:Descriptions")
    plugins.add_command("doc", "toolcrib.features.exports.commands:doc", "Print the whole documentation of a tool.")
    plugins.add_command(
        "prompt", "toolcrib.features.exports.commands:prompt", "Print the description of the tools for a system prompt."
    )
    plugins.add_command(
        "export", "toolcrib.features.exports.commands:export", "Print the tools in the format of a model provider."
    )
