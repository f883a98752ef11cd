"""Hear a tool while it runs: every word that it yields, and then the checked result."""

import asyncio
from collections.abc import AsyncIterator

from toolcrib import Chunk, Context, Crib, Result, tool


@tool(output_schema={"type": "string", "maxLength": 100})
async def tell(topic: str, context: Context) -> AsyncIterator[str]:
    """Tell something about a topic, word by word."""
    words = ["Every", " crib", " has", f" {topic}."]
    for number, word in enumerate(words, 1):
        context.progress(number, len(words))
        yield word


async def main() -> None:
    async with Crib(tools=[tell]) as crib:
        async for event in crib.stream("tell", topic="tools"):
            if isinstance(event, Chunk):
                print("chunk", event.number, repr(event.value))
            elif isinstance(event, Result):
                print("result", event.value)


asyncio.run(main())
