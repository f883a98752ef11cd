"""Stream what happens to a request as server-sent events, until it is over."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, cast

from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.messages import Answer, to_bytes
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.features.requests.queue_threads import QueueThreads
    from toolcrib.features.requests.tracker import Requests
    from toolcrib.model.toolrequest import Event
    from toolcrib.toolkit.http.messages import Request

logger = logging.getLogger("toolcrib.http")

EVENT_STREAM = b"text/event-stream; charset=utf-8"
# Proxies that buffer answers are asked not to.
UNBUFFERED = (b"x-accel-buffering", b"no")
MAX_LISTENERS = 256
COME_AGAIN_SECONDS = 5
QUIET_SECONDS = 15.0
# A stream ends by itself before the server would cut it off; the client comes again and misses nothing.
SHARE_OF_TIME = 0.9
BEGINNING = b"retry: 1000\n\n"
STILL_HERE = b": still here\n\n"


class EventStreams:
    """Streams of events, so many at once, and none longer than an answer may take."""

    def __init__(self, requests: Requests, queue: QueueThreads, *, seconds: float, ending: asyncio.Event) -> None:
        self._requests = requests
        self._queue = queue
        self._ending = ending
        self._seconds = seconds * SHARE_OF_TIME
        self._listeners = 0

    def stream(self, request: Request, request_id: str, after: int) -> Answer:
        """An answer that goes on until the request is over, the client is gone, its time is, or the server ends."""
        self._refuse_too_many()
        return Answer(content_type=EVENT_STREAM, headers=(UNBUFFERED,), stream=self._stream(request, request_id, after))

    async def until_news(self, request_id: str, after: int, seconds: float) -> None:
        """Wait until there is something to tell, or long enough, or until the server ends."""
        self._refuse_too_many()
        with self._place():
            async with _Subscription(self._events(request_id, after), self._ending.wait()) as subscription:
                await subscription.next(min(seconds, self._seconds))

    async def _stream(self, request: Request, request_id: str, after: int) -> AsyncGenerator[bytes, None]:
        with self._place():
            yield BEGINNING
            try:
                events, stops = self._events(request_id, after), (self._ending.wait(), request.gone())
                async with (
                    _Subscription(events, *stops) as subscription,
                    aclosing(self._pieces(subscription)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece
                if subscription.is_over:
                    filed = await self._queue.read(self._requests.show, request_id)
                    yield _encode("end", filed.to_json())
            except ToolError as problem:
                logger.warning("the events of %s broke off: %s", request_id, problem.message)

    async def _pieces(self, events: _Subscription) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        while (left := end - loop.time()) > 0:
            event = await events.next(min(left, QUIET_SECONDS))
            if event is not None:
                yield _encode("step", event.to_json(), event.number)
            elif events.is_shut:
                return
            else:
                yield STILL_HERE

    def _events(self, request_id: str, after: int) -> AsyncGenerator[Event, None]:
        # It is a generator, and has to be closed where it is left before its end.
        return cast("AsyncGenerator[Event, None]", self._requests.watch(request_id, after))

    def _refuse_too_many(self) -> None:
        if self._listeners >= MAX_LISTENERS:
            message = f"{MAX_LISTENERS} listen already; ask for the history, without wait"
            again = (b"retry-after", b"%d" % COME_AGAIN_SECONDS)
            raise Refusal(429, Kind.OVERLOADED, message, headers=(again,))

    @contextmanager
    def _place(self) -> Iterator[None]:
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1


class _Subscription:
    """One listener, until the events end or one of the stops has come; `is_over` says that it was the events."""

    def __init__(self, events: AsyncGenerator[Event, None], *stops: Coroutine[object, object, object]) -> None:
        self._events = events
        self._stops: list[asyncio.Future[object]] = [asyncio.ensure_future(stop) for stop in stops]
        self._coming: asyncio.Future[Event | None] | None = None
        self.is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        waiting: list[asyncio.Future[Any]] = [*self._stops, *([] if self._coming is None else [self._coming])]
        for one in waiting:
            one.cancel()
        # An event that came in the last moment comes again to the next listener.
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._events.aclose()

    @property
    def is_shut(self) -> bool:
        """Whether nothing more is to be heard."""
        return self.is_over or any(stop.done() for stop in self._stops)

    async def next(self, seconds: float) -> Event | None:
        """The next event; None if none came in that time, or there is nothing more to hear."""
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


async def _next(events: AsyncGenerator[Event, None]) -> Event | None:
    return await anext(events, None)


def _encode(name: str, document: object, number: int | None = None) -> bytes:
    """One event; JSON has no line ends of its own, so one line of data holds it."""
    mark = b"" if number is None else b"id: %d\n" % number
    return b"event: " + name.encode() + b"\n" + mark + b"data: " + to_bytes(document) + b"\n\n"
