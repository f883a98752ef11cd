"""Stored tools and their bundles: documents, switches, soft delete, listing and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.sources import SYSTEM_BUNDLE

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Entry


def register(plugins: Plugins) -> None:
    """Add the tools of bundles, and the state (enabled or disabled) of all other tools."""
    plugins.add_resource("bundles", "toolcrib.features.bundles.facade:Bundles", given=_for_bundles)
    plugins.add_resource("search_index", "toolcrib.infra.search.index:Index", given=_for_index)
    plugins.add_resource("bundle_source", "toolcrib.features.bundles.source:BundleSource")
    plugins.add_source("bundles", lambda resources: [resources.get("bundle_source")])
    plugins.add_endpoints("toolcrib.features.bundles.endpoints:endpoints")
    plugins.add_command("bundle", "toolcrib.features.bundles.commands:bundle", "Store tools in bundles.")
    plugins.add_command("search", "toolcrib.features.bundles.commands:search", "Search tools.")
    plugins.add_command("enable", "toolcrib.features.bundles.commands:enable", "Enable a tool or a bundle.")
    plugins.add_command("disable", "toolcrib.features.bundles.commands:disable", "Disable a tool or a bundle.")
    plugins.add_screen("tools")
    plugins.add_screen("bundles")
    plugins.add_settings("bundles", "toolcrib.features.bundles.settings:BundlesSettings")
    plugins.add_settings("search", "toolcrib.features.bundles.settings:SearchSettings")


def _for_bundles(resources: Resources) -> dict[str, object]:
    settings, data = resources.settings, resources.data
    bundles = settings["bundles"]
    return {
        "store": data.store,
        # `Bundles` closes it.
        "index": resources.make("search_index"),
        "entries": lambda: _entries_of_other_sources(resources),
        "functions": resources.functions,
        "key": lambda: data.key,
        "secrets": data.secrets.names,
        "metrics": data.metrics.read,
        "models": frozenset(bundles.models) if "bundles.models" in settings.places else None,
        "max_tools": bundles.max_tools,
        "hosts": settings["http_tools"].hosts,
    }


def _for_index(resources: Resources) -> dict[str, object]:
    settings, data = resources.settings, resources.data
    if settings.root is not None:
        data.folder()
    return {"path": data.file("index.sqlite3") if settings["search"].index else None}


def _entries_of_other_sources(resources: Resources) -> list[Entry]:
    return [entry for entry in resources.get("own_entries")() if entry.tool.bundle != SYSTEM_BUNDLE]
