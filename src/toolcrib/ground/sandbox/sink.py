"""A sink in the worker: an object that events are written to, one after the other, until the channel says that it is over."""

from __future__ import annotations

import json
import os

from toolcrib.ground.channel import MAX_LINE_BYTES, to_line

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Iterator
    from typing import Any

_MAX_ERROR_CHARACTERS = 2_000


def serve(sink: Any, channel: int) -> None:
    """Write to the sink what comes over the channel, answer each event, and close it at the end, whatever happens."""
    import asyncio

    asyncio.run(_serve(sink, channel))


async def _serve(sink: Any, channel: int) -> None:
    import asyncio
    import socket

    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=channel), limit=MAX_LINE_BYTES)
    try:
        await _write_events(sink, reader, writer)
    finally:
        problem = await _close(sink)
        await _answer(writer, problem)
    if problem is not None:
        raise problem


async def _write_events(sink: Any, reader: StreamReader, writer: StreamWriter) -> None:
    while True:
        message = json.loads(await reader.readline() or b'{"close": true}')
        if "event" not in message:
            return
        try:
            await _settle(sink.write(message["event"]))
        except Exception as problem:  # noqa: BLE001 - a border to foreign code: whatever it raises is the answer
            await _answer(writer, problem)
        else:
            await _answer(writer, None)


async def _answer(writer: StreamWriter, problem: Exception | None) -> None:
    answer: dict[str, object] = {"ok": problem is None}
    if problem is not None:
        answer["error"] = f"{type(problem).__qualname__}: {problem}"[:_MAX_ERROR_CHARACTERS]
    writer.write(to_line(answer))
    try:
        await writer.drain()
    except ConnectionError:  # the host has gone; the sink is closed all the same
        return


async def _close(sink: Any) -> Exception | None:
    """Close it by its own way, or close what files it holds; what went wrong with that."""
    try:
        if callable(getattr(sink, "close", None)):
            await _settle(sink.close())
        else:
            for file in _files_in(sink):
                file.flush()
                os.fsync(file.fileno())
                file.close()
    except Exception as problem:  # noqa: BLE001 - a border to foreign code: the host hears of it
        return problem
    return None


async def _settle(value: Any) -> None:
    if hasattr(value, "__await__"):
        await value


def _files_in(sink: Any) -> Iterator[Any]:
    """The open files among what the object holds, itself or in a list, a set or a mapping."""
    names = [*getattr(sink, "__dict__", ()), *(name for kind in type(sink).__mro__ for name in _slots_of(kind))]
    for value in [getattr(sink, name, None) for name in names]:
        several = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list | set | tuple) else [value]
        )
        for one in list(several):
            if all(callable(getattr(one, name, None)) for name in ("write", "flush", "fileno", "close")):
                yield from () if one.closed else (one,)


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
