"""Stored tools and their bundles: documents, switches, soft delete, listing and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_positive, read_switch, read_words, setting
from toolcrib.lib.names import SYSTEM_BUNDLE

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Entry


class BundlesSettings(Table, name="bundles"):
    """Bundles of stored tools."""

    models: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        opens=False,
        summary="the models that are available to tools that name one; unset means all models",
    )
    max_tools: int = setting(
        default=100_000, read=read_positive, opens=False, summary="how many tools the bundles may hold together"
    )
    archive_bytes: int = setting(
        default=16_000_000, read=read_positive, opens=False, summary="how large an archive sent to the server may be"
    )


class SearchSettings(Table, name="search"):
    """The search index."""

    index: bool = setting(
        default=True,
        read=read_switch,
        opens=False,
        summary="whether the search index is kept on disk; if not, each process makes its own in memory",
    )


def register(plugins: Plugins) -> None:
    """Add the tools of bundles, and the state (enabled or disabled) of all other tools."""
    plugins.add_resource("bundles", "toolcrib.features.bundles.facade:Bundles", given=_for_bundles)
    plugins.add_resource("search_index", "toolcrib.infra.search.index:Index", given=_for_index)
    plugins.add_resource("bundle_source", "toolcrib.features.bundles.source:BundleSource")
    plugins.add_format(
        "toolcrib.features.bundles.file_document:FileDocument",
        suffixes=(".json", ".yaml", ".yml"),
        in_trees=False,
        mentions=(b"argSchema",),
    )
    plugins.add_source("bundles", lambda resources: [resources.get("bundle_source")])
    plugins.add_endpoints("toolcrib.features.bundles.endpoints:endpoints")
    plugins.add_command("bundle", "toolcrib.features.bundles.commands:bundle", "Store tools in bundles.")
    plugins.add_command("search", "toolcrib.features.bundles.commands:search", "Search tools.")
    plugins.add_command("enable", "toolcrib.features.bundles.commands:enable", "Enable a tool or a bundle.")
    plugins.add_command("disable", "toolcrib.features.bundles.commands:disable", "Disable a tool or a bundle.")
    plugins.add_screen("tools")
    plugins.add_screen("bundles")
    plugins.add_settings("bundles", BundlesSettings)
    plugins.add_settings("search", SearchSettings)


def _for_bundles(resources: Resources) -> dict[str, object]:
    settings, data = resources.settings, resources.data
    bundles, added = settings["bundles"], resources.get("added_hosts")
    return {
        "store": data.store,
        "record": resources.record,
        # `Bundles` closes it.
        "index": resources.make("search_index"),
        "entries": lambda: _entries_of_other_sources(resources),
        "builtins": lambda: resources.get("builtins"),
        "functions": resources.functions,
        "key": lambda: data.key,
        "secrets": data.secrets.names,
        "holds_secret": data.secrets.masking.is_in,
        "metrics": data.metrics.read,
        "models": frozenset(bundles.models) if "bundles.models" in settings.places else None,
        "max_tools": bundles.max_tools,
        "hosts": lambda: (*settings["http_tools"].hosts, *map(str, added())),
        "on_switch": resources.get("forget_tools"),
        "root": settings.root,
    }


def _for_index(resources: Resources) -> dict[str, object]:
    settings, data = resources.settings, resources.data
    if settings.root is not None:
        data.folder()
    return {"path": data.file("index.sqlite3") if settings["search"].index else None}


def _entries_of_other_sources(resources: Resources) -> list[Entry]:
    return [entry for entry in resources.get("own_entries")() if entry.tool.bundle != SYSTEM_BUNDLE]
