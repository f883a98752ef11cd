"""The tables [bundles] and [search] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_switch, read_words, setting


class BundlesSettings(Table, name="bundles"):
    """Bundles of stored tools."""

    models: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        opens=False,
        summary="the models that are there, for tools that name one; unset, every model is",
    )
    max_tools: int = setting(
        default=100_000, read=read_positive, opens=False, summary="how many tools the bundles may hold together"
    )


class SearchSettings(Table, name="search"):
    """The search index."""

    index: bool = setting(
        default=True,
        read=read_switch,
        opens=False,
        summary="whether the search index is kept on disk; if not, each process makes its own in memory",
    )
