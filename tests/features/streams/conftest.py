"""What tests of streams share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from toolcrib import Chunk, Crib, Progress, Result
from toolcrib.model.events import StreamEvent

SECONDS = 20.0


async def events_of(stream: AsyncIterator[StreamEvent]) -> list[StreamEvent]:
    """Every event of a stream, which ends in time."""
    async with asyncio.timeout(SECONDS):
        return [event async for event in stream]


def split(events: list[StreamEvent]) -> tuple[list[object], Result]:
    """The values of the chunks, and the result; it is the last event, and there is no other."""
    *told, last = events
    assert isinstance(last, Result)
    assert all(isinstance(event, Chunk | Progress) for event in told)
    chunks = [event for event in told if isinstance(event, Chunk)]
    assert [chunk.number for chunk in chunks] == [*range(1, len(chunks) + 1)]
    return [chunk.value for chunk in chunks], last


async def streamed(crib: Crib, name: str, /, **arguments: object) -> tuple[list[object], Result]:
    """The chunks and the result of a call."""
    return split(await events_of(crib.stream(name, arguments)))
