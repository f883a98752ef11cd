"""Make a call on a server and read its stream of events."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.client import shapes
from toolcrib.client.call_request import write_call
from toolcrib.client.connection import MAX_ANSWER_BYTES, MAX_DEPTH, Answer
from toolcrib.lib.documents import read_json
from toolcrib.lib.server_sent_events import EventReader
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from toolcrib.client.connection import Connection
    from toolcrib.lib.server_sent_events import ServerEvent
    from toolcrib.model.call import Call
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.result import Result

EVENTS = "text/event-stream"
ACCEPT = f"{EVENTS}, application/json;q=0.5"
RESULT = "result"


async def read_call(
    connection: Connection, call: Call, read_result: Callable[[Answer], Result], deadline: float
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a call, its Result last; raises ToolError for a response that is not that of a Toolcrib server.

    A server without streams, and one that refuses the call, responds with only the result. `deadline` is in the time of
    `time.monotonic`.
    """
    request = write_call(call, ACCEPT)
    seconds = max(0.0, deadline - time.monotonic())
    async with connection.stream("POST", request.target, request.headers, request.body, seconds) as (head, pieces):
        if head.headers.get("content-type", "").partition(";")[0] != EVENTS:
            yield read_result(connection.read_answer(replace(head, body=await _whole(pieces, deadline))))
            return
        reader = EventReader(MAX_ANSWER_BYTES)
        while (piece := await _next(pieces, deadline)) is not None:
            for told in _feed(reader, piece, connection.url):
                if told.name == RESULT:
                    document = _document(told, connection.url)
                    yield read_result(Answer(document=document, size=len(told.data), is_refusal=False, is_new=False))
                    return
                if told.name in shapes.STREAM_EVENTS:
                    yield _event(told, connection.url)
    message = f"{connection.url} broke off before the result of the call"
    raise ToolError(Kind.TRANSIENT, message, partial_side_effects=True)


async def _next(pieces: AsyncIterator[bytes], deadline: float) -> bytes | None:
    try:
        # A timeout for each piece, because the waiting task may differ from piece to piece.
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await anext(pieces, None)
    except TimeoutError:
        message = "the server did not finish the call in time"
        raise ToolError(Kind.TIMEOUT, message, partial_side_effects=True) from None


async def _whole(pieces: AsyncIterator[bytes], deadline: float) -> bytes:
    body = bytearray()
    while (piece := await _next(pieces, deadline)) is not None:
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer has more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _feed(reader: EventReader, piece: bytes, url: str) -> list[ServerEvent]:
    try:
        return reader.feed(piece)
    except ValueError as problem:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{url} sends {problem}") from None


def _document(told: ServerEvent, url: str) -> dict[str, object]:
    data = told.data.encode("utf-8", "replace")
    try:
        document = read_json(data, place=url, max_bytes=MAX_ANSWER_BYTES, max_depth=MAX_DEPTH)
    except ToolError as problem:
        message = f"{url} sends events that no server of Toolcrib sends; is this the URL of its server?"
        raise ToolError(Kind.PERMANENT, message, partial_side_effects=True) from problem
    return document if isinstance(document, dict) else {}


def _event(told: ServerEvent, url: str) -> StreamEvent:
    document = _document(told, url)
    shapes.STREAM_EVENTS[told.name].check(document, url)
    return shapes.read_stream_event(told.name, document)
