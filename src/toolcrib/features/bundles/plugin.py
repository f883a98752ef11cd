"""Register bundles: tools that are kept as documents, under one switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.catalog import Rank

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the tools of bundles, and the switches of all other tools."""
    plugins.add_resource("bundle_source", "toolcrib.features.bundles.source:BundleSource")
    plugins.add_source("bundles", lambda resources: [resources.get("bundle_source")], rank=Rank.BUNDLES)
