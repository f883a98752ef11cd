"""Register bundles: tools that are kept as documents, under one switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the tools of bundles, and the switches of all other tools."""
    plugins.add_resource("bundle_source", "toolcrib.features.bundles.source:BundleSource")
    plugins.add_command("bundle", "toolcrib.features.bundles.commands:bundle", "Keep tools in bundles.")
    plugins.add_command("search", "toolcrib.features.bundles.commands:search", "Find tools by what is typed.")
    plugins.add_command("enable", "toolcrib.features.bundles.commands:enable", "Switch a tool or a bundle on.")
    plugins.add_command("disable", "toolcrib.features.bundles.commands:disable", "Switch a tool or a bundle off.")
