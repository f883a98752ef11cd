"""The table [mcp] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_words, setting


class McpSettings(Table, name="mcp"):
    """What clients of the Model Context Protocol are shown, and how long they wait."""

    list_limit: int = setting(
        default=100, read=read_positive, opens=False, summary="how many tools a client is shown; of more it searches"
    )
    always: tuple[str, ...] = setting(
        default=(), read=read_words, opens=False, summary="tools that a client is shown in any case, by name"
    )
