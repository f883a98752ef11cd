"""Respond with server-sent events, limited in number and time, until the events, the client or the server end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from toolcrib.lib.documents import write_json
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError
from toolcrib.toolkit.http import Answer
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.toolkit.http import Request

E = TypeVar("E")

logger = logging.getLogger("toolcrib.http")

EVENT_STREAM = b"text/event-stream; charset=utf-8"
# Asks proxies not to buffer the response.
UNBUFFERED = (b"x-accel-buffering", b"no")
MAX_LISTENERS = 256
RETRY_AFTER_SECONDS = 5
KEEP_ALIVE_SECONDS = 15.0
# A stream ends itself before the server's timeout would cut it off; the client reconnects without loss.
SHARE_OF_TIME = 0.9
FIRST_LINE = b"retry: 1000\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


class EventStreams:
    """The event streams of a server: at most `MAX_LISTENERS` at once, each shorter than the timeout of a request."""

    def __init__(self, *, seconds: float, ending: asyncio.Event) -> None:
        self._ending = ending
        self._seconds = seconds * SHARE_OF_TIME
        self._listeners = 0

    def stream(
        self,
        request: Request,
        events: AsyncGenerator[E, None],
        encode: Callable[[E], bytes],
        last: Callable[[], Awaitable[bytes]] | None = None,
    ) -> Answer:
        """A response that streams until the events end, the client disconnects, its time is up, or the server shuts down.

        `last` makes the final piece, which is sent if the events themselves have ended.
        """
        self._refuse_too_many()
        pieces = self._stream(request, events, encode, last)
        return Answer(content_type=EVENT_STREAM, headers=(UNBUFFERED,), stream=pieces)

    async def until_event(self, events: AsyncGenerator[Any, None], seconds: float) -> None:
        """Wait for one event, at most `seconds`, or until the server shuts down."""
        self._refuse_too_many()
        with self._place():
            async with Subscription(events, self._ending.wait()) as subscription:
                await subscription.next(min(seconds, self._seconds))

    async def _stream(
        self,
        request: Request,
        events: AsyncGenerator[E, None],
        encode: Callable[[E], bytes],
        last: Callable[[], Awaitable[bytes]] | None,
    ) -> AsyncGenerator[bytes, None]:
        with self._place():
            yield FIRST_LINE
            try:
                async with (
                    Subscription(events, self._ending.wait(), request.gone()) as subscription,
                    aclosing(self._pieces(subscription, encode)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece
                if subscription.is_over and last is not None:
                    yield await last()
            except ToolError as problem:
                logger.warning("request %s: the stream of events broke off: %s", request.id, problem.message)

    async def _pieces(self, events: Subscription[E], encode: Callable[[E], bytes]) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        while (left := end - loop.time()) > 0:
            event = await events.next(min(left, KEEP_ALIVE_SECONDS))
            if event is not None:
                yield encode(event)
            elif events.is_shut:
                return
            else:
                yield KEEP_ALIVE

    def _refuse_too_many(self) -> None:
        if self._listeners >= MAX_LISTENERS:
            message = f"{MAX_LISTENERS} clients listen already; ask again later, or without waiting"
            raise Refusal(429, Kind.OVERLOADED, message, details={RETRY_AFTER: RETRY_AFTER_SECONDS})

    @contextmanager
    def _place(self) -> Iterator[None]:
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1


class Subscription(Generic[E]):
    """Reads events until they end or one of `stops` is done; `is_over` says that the events ended."""

    def __init__(self, events: AsyncGenerator[E, None], *stops: Coroutine[object, object, object]) -> None:
        self._events = events
        self._stops: list[asyncio.Future[object]] = [asyncio.ensure_future(stop) for stop in stops]
        self._coming: asyncio.Future[E | None] | None = None
        self.is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        waiting: list[asyncio.Future[Any]] = [*self._stops, *([] if self._coming is None else [self._coming])]
        for one in waiting:
            one.cancel()
        # An event that arrives now is not lost: the next listener gets it again.
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._events.aclose()

    @property
    def is_shut(self) -> bool:
        """Whether no further event will come."""
        return self.is_over or any(stop.done() for stop in self._stops)

    async def next(self, seconds: float) -> E | None:
        """The next event; None if none came within `seconds`, or if there will be no more."""
        if self.is_shut:
            return None
        if self._coming is None:
            self._coming = asyncio.ensure_future(_next(self._events))
        awaited: set[asyncio.Future[Any]] = {self._coming, *self._stops}
        await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not self._coming.done():
            return None
        event = self._coming.result()
        self._coming = None
        self.is_over = event is None
        return event


async def _next(events: AsyncGenerator[E, None]) -> E | None:
    return await anext(events, None)


def encode_event(name: str, document: object, number: int | None = None) -> bytes:
    """Serialise one event; compact JSON has no line breaks, so it fits into one `data` line."""
    mark = b"" if number is None else b"id: %d\n" % number
    return b"event: " + name.encode() + b"\n" + mark + b"data: " + write_json(document) + b"\n\n"
