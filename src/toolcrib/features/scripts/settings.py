"""The table [scripts] of the settings."""

from __future__ import annotations

from toolcrib.features.scripts import DEFAULT_TREES
from toolcrib.infra.settings import Table, read_words, setting


class ScriptsSettings(Table, name="scripts"):
    """Where script files with metadata lie."""

    folders: tuple[str, ...] = setting(
        default=DEFAULT_TREES,
        read=read_words,
        opens=False,
        summary="trees of script files with metadata, from the project folder; of equal names the earlier tree is meant",
    )
