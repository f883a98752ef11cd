"""What a tool yields is progress for a client of MCP, and the result is its value alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.interfaces.mcp.conftest import meta

from toolcrib import Context


async def letters(word: str) -> AsyncIterator[str]:
    """The letters of a word."""
    for letter in word:
        yield letter


async def mixed(context: Context) -> AsyncIterator[object]:
    """Yield, say how far it is, and yield again."""
    yield {"row": 1}
    context.progress(1, 3)
    context.progress(2, 3)
    yield {"row": 2}


def figures(messages: list[dict]) -> list[tuple]:
    told = [message["params"] for message in messages if message.get("method") == "notifications/progress"]
    return [(one["progress"], one.get("total"), one.get("message")) for one in told]


@pytest.mark.spec("S1-92")
async def test_a_client_that_gives_a_token_hears_chunks_as_progress_with_figures_that_grow(client_of):
    client = client_of(letters)
    params = {"name": "letters", "arguments": {"word": "a\u202eb"}, "_meta": meta(progressToken="t")}
    reply = await client.ask("tools/call", params)
    # Characters that cannot be seen are written out.
    assert figures(reply.messages) == [(1, None, "a"), (2, None, "\\u202e"), (3, None, "b")]
    assert reply.result["structuredContent"] == ["a", "\\u202e", "b"]


async def test_without_a_token_nothing_but_the_result_is_told(client_of):
    reply = await client_of(letters).ask(
        "tools/call", {"name": "letters", "arguments": {"word": "ab"}, "_meta": meta()}
    )
    assert figures(reply.messages) == []


async def test_figures_of_the_tool_itself_take_the_place_of_chunks_and_still_grow(client_of):
    reply = await client_of(mixed).ask("tools/call", {"name": "mixed", "_meta": meta(progressToken="t")})
    assert figures(reply.messages) == [(1, None, '{"row": 1}'), (2, 3, None)]
