"""Publish tools, tool folders and bundles to a depot and pull them from one: versioned, hashed, and signed if wanted.

A depot is a folder; any static web server that serves the folder serves the depot.

    index.json                                 all tools, each with its versions, oldest first
    tools/<tool>/<version>/manifest.json       the files of one version, their hashes, and a signature
    tools/<tool>/<version>/files/<path>        the files, by their path in the tree of tools; for a bundle its archive
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_switch, read_words, setting

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


class DepotsSettings(Table, name="depots"):
    """Whose published tools are trusted."""

    keys: tuple[str, ...] = setting(
        default=(), read=read_words, summary="public keys (`ed25519:…`) whose signatures of published tools are trusted"
    )
    signed: bool = setting(
        default=False, read=read_switch, opens=False, summary="whether only tools with a trusted signature are pulled"
    )


def register(plugins: Plugins) -> None:
    """Add publishing and pulling, with their commands and settings."""
    plugins.add_resource("depots", "toolcrib.features.depots.transfer:Depots")
    plugins.add_command(
        "publish",
        "toolcrib.features.depots.commands:publish",
        "Publish a tool, a tool folder, or a bundle (`BUNDLE/*`) to a depot.",
    )
    plugins.add_command(
        "pull", "toolcrib.features.depots.commands:pull", "Pull a tool, a tool folder or a bundle from a depot."
    )
    plugins.add_command(
        "depot", "toolcrib.features.depots.commands:depot", "List the tools of a depot, and make signing keys."
    )
    plugins.add_settings("depots", DepotsSettings)
