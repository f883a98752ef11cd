"""The table [mcp] of the settings."""

from __future__ import annotations

from toolcrib.features.access.settings import mode_of_calls, visible_bundles, visible_tags, visible_tools
from toolcrib.infra.settings import Table, read_positive, read_words, setting


def _read_bound(name: str, value: object) -> int:
    return 0 if value == 0 and value is not False else read_positive(name, value)


class McpSettings(Table, name="mcp"):
    """What clients of the Model Context Protocol are shown, and how long they wait."""

    list_limit: int = setting(
        default=100,
        read=read_positive,
        opens=False,
        summary="how many tools are listed to a client; with more it searches",
    )
    always: tuple[str, ...] = setting(
        default=(), read=read_words, opens=False, summary="tools that are always listed to a client, by name"
    )
    tools: frozenset[str] = visible_tools("an MCP client")
    bundles: frozenset[str] = visible_bundles("an MCP client")
    tags: frozenset[str] = visible_tags("an MCP client")
    mode: str = mode_of_calls("an MCP client")
    streams: int = setting(
        default=64,
        read=read_positive,
        opens=False,
        summary="how many streams of changes one caller may open; all callers may open 1,000, and one session 4",
    )
    questions: int = setting(
        default=32,
        read=read_positive,
        opens=False,
        summary="how many questions to one caller may wait for an answer, and how many of its calls for a person",
    )
    max_calls: int = setting(
        default=0,
        read=_read_bound,
        opens=False,
        summary="how many calls a client may make in one conversation, which ends after an hour without any; 0 for any number",
    )
