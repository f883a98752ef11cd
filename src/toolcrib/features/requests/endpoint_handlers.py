"""Answer the HTTP requests about missing tools, and stream what happens to a request."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import aclosing, contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast
from urllib.parse import quote

from toolcrib.features.requests.delivery import files_of, written_package
from toolcrib.features.requests.document.extensions import read_allowance
from toolcrib.features.requests.document.writer import readable_id
from toolcrib.features.requests.tracker import MAX_TEXT_BYTES
from toolcrib.infra.files.durable import show
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status, Submitted
from toolcrib.toolkit.http.bodies import read_body, read_yaml, text_of
from toolcrib.toolkit.http.concurrency import Admission
from toolcrib.toolkit.http.messages import Answer, answer_json, to_bytes, until_gone
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.features.requests.tracker import Requests
    from toolcrib.model.toolrequest import Event, Filed
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.messages import Request

    # A request as it was written: its fields, or its text.
    Written = Mapping[str, object] | str | bytes
    # Within the class below, `list` is a method.
    Events = list[Event]


LISTED = 100
MAX_LISTED_BYTES = 8_000_000
FIRST_ASKED = 32
MAX_NUMBER = 2**31 - 1
# A client that waits longer asks again; proxies on the way give up sooner than the server.
MAX_WAIT_SECONDS = 30
# So many are proved at once: each starts processes of its own.
MAX_DELIVERIES = 2
DELIVERY_SECONDS = 10
NUMBER = re.compile("[0-9]{1,9}")

P = ParamSpec("P")
T = TypeVar("T")

# So many of all threads, so that tools can be read and written meanwhile.
READERS = 4
# Reading a document is work for the processor: more at once would not be done sooner, and delay other requests.
WRITERS = 2
QUEUE = 1_000
PATH = "path"

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


class RequestEndpoints:
    """File, list, follow, deliver and cancel requests for missing tools, and list what waits for them.

    `seconds` is how long an answer may take, and `ending` is set when the server ends.
    """

    def __init__(self, requests: Requests, threads: Threads, *, seconds: float, ending: asyncio.Event) -> None:
        self._requests = requests
        self._threads = threads
        self._queue = QueueThreads(threads)
        self._events = EventStreams(requests, self._queue, seconds=seconds, ending=ending)
        self._deliveries = 0

    async def list(self, request: Request) -> Answer:
        """GET /requests: the newest of them, in the order in which they were filed."""
        word, limit = request.query.text("status"), request.query.number("limit") or LISTED
        found = await self._queue.read(self._newest, Status(word) if word else None, limit)
        return answer_json({"requests": [filed.to_json() for filed in found]})

    async def file(self, request: Request) -> Answer:
        """POST /requests: file one, under the id that it has or the next number of the day."""
        strict = request.query.switch("strict")
        written = await self._read_request(request)
        submitted, is_new = await self._queue.write(self._file, written, strict=strict)
        if not is_new:
            return answer_json(submitted.to_json())
        place = f"/requests/{quote(submitted.filed.id, safe='')}"
        return answer_json(submitted.to_json(), status=201, headers=((b"location", place.encode()),))

    async def read(self, request: Request) -> Answer:
        """GET /requests/{requestID}: one of them, with what happened to it."""
        filed, events = await self._queue.read(self._look, request.path_params["requestID"])
        return answer_json({**filed.to_json(), "history": [event.to_json() for event in events]})

    async def history(self, request: Request) -> Answer:
        """GET /requests/{requestID}/history: what happened behind a number; `wait` is how long to wait for more."""
        request_id = request.path_params["requestID"]
        after, seconds = request.query.number("after") or 0, request.query.number("wait") or 0
        # That a client has left is only seen behind all that it sent.
        await request.body()
        filed, events = await self._queue.read(self._look, request_id, after)
        if seconds and not events and not filed.status.is_final:
            await until_gone(request, self._events.until_news(request_id, after, seconds))
            filed, events = await self._queue.read(self._look, request_id, after)
        return answer_json({"status": str(filed.status), "history": [event.to_json() for event in events]})

    async def events(self, request: Request) -> Answer:
        """GET /requests/{requestID}/events: what happens to it, as it happens, until it is over."""
        request_id = request.path_params["requestID"]
        after = _last_number(request)
        await request.body()
        await self._queue.read(self._requests.show, request_id)
        return self._events.stream(request, request_id, after)

    async def deliver(self, request: Request) -> Answer:
        """POST /requests/{requestID}/deliver: have proved and published what was made for it."""
        body = await read_body(request)
        files = await self._threads.read(files_of, body)
        if self._deliveries >= MAX_DELIVERIES:
            message = f"{MAX_DELIVERIES} deliveries are being proved; deliver it again in {DELIVERY_SECONDS} s"
            again = (b"retry-after", b"%d" % DELIVERY_SECONDS)
            raise Refusal(429, Kind.OVERLOADED, message, headers=(again,))
        self._deliveries += 1
        try:
            filed = await until_gone(request, self._deliver(request.path_params["requestID"], files))
        finally:
            self._deliveries -= 1
        return answer_json(filed.to_json())

    async def cancel(self, request: Request) -> Answer:
        """POST /requests/{requestID}/cancel: it is no longer wanted."""
        body = await read_body(request)
        reason = text_of(body, "reason") or ""
        return answer_json(
            (await self._queue.write(self._requests.cancel, request.path_params["requestID"], reason)).to_json()
        )

    async def retry(self, request: Request) -> Answer:
        """POST /requests/{requestID}/retry: have it built again."""
        await read_body(request)
        return answer_json((await self._queue.write(self._requests.retry, request.path_params["requestID"])).to_json())

    async def allow(self, request: Request) -> Answer:
        """PUT /requests/{requestID}/allowance: what the operator adds to it."""
        body = await read_body(request)
        return answer_json((await self._queue.write(self._allow, request.path_params["requestID"], body)).to_json())

    async def experiments(self, request: Request) -> Answer:
        """GET /experiments: everything that waits or waited for a tool."""
        found = await self._queue.read(self._requests.experiments)
        return answer_json({"experiments": [one.to_json() for one in found]})

    async def _read_request(self, request: Request) -> Written:
        """What is asked for: YAML itself, or JSON with the YAML or its fields in it."""
        text = await read_yaml(request)
        if text is not None:
            return text
        found = await read_body(request)
        if len(found) != 1:
            raise ToolError(Kind.VALIDATION, "body: write either yaml, the request as text, or request, its fields")
        [(key, written)] = found.items()
        if isinstance(written, str if key == "yaml" else dict):
            return written
        raise ToolError(Kind.VALIDATION, f"body: {key}: must be {'a text' if key == 'yaml' else 'an object'}")

    def _newest(self, status: Status | None, limit: int) -> Sequence[Filed]:
        """The newest that fit into one answer, asked for little by little: a queue hands them out with all their texts."""
        asked = FIRST_ASKED
        while True:
            found = self._requests.list(status, limit=min(asked, limit))
            fitting = _that_fit(found)
            if len(fitting) < len(found) or len(found) < asked or asked >= limit:
                return fitting
            asked *= 2

    def _allow(self, request_id: str, body: Mapping[str, object]) -> Filed:
        return self._requests.allow(request_id, read_allowance(body, place="body"))

    def _file(self, written: Written, *, strict: bool) -> tuple[Submitted, bool]:
        """File it; whether it is a request that was not there before."""
        was_there = self._is_filed(_id_of(written))
        # Where the operator is strict, no client is less so.
        submitted = self._requests.new(written, strict=strict or None)
        return submitted, not (was_there or submitted.merged)

    def _is_filed(self, request_id: str) -> bool:
        try:
            return bool(request_id) and bool(self._requests.show(request_id))
        except ToolError as problem:
            if problem.kind is not Kind.NOT_FOUND:
                raise
            return False

    def _look(self, request_id: str, after: int = 0) -> tuple[Filed, Events]:
        # In this order: what ended it is in its history by then.
        filed = self._requests.show(request_id)
        return filed, self._requests.history(request_id, after)

    async def _deliver(self, request_id: str, files: Mapping[str, bytes]) -> Filed:
        with without_folders():
            async with written_package(files, self._threads) as folder:
                return await self._requests.deliver(request_id, folder)


def _that_fit(found: Sequence[Filed]) -> Sequence[Filed]:
    """The newest whose texts are no more in all than one answer should hold, and the newest of all."""
    size = 0
    for place, filed in enumerate(reversed(found)):
        size += len(filed.text.encode())
        if size > MAX_LISTED_BYTES and place:
            return found[-place:]
    return found


def _last_number(request: Request) -> int:
    """The number of the last event that a client heard before it lost its connection."""
    if not request.has(b"last-event-id"):
        return 0
    last = request.header(b"last-event-id")
    if not NUMBER.fullmatch(last):
        raise ToolError(Kind.VALIDATION, "the header Last-Event-ID is no number; send the id of the last event heard")
    return int(last)


def _id_of(written: Written) -> str:
    """The id that a request brings along; empty if it has none."""
    if isinstance(written, Mapping):
        return str(written.get("id") or "")
    text = written.decode(errors="replace") if isinstance(written, bytes) else written
    return readable_id(text) if len(text) <= MAX_TEXT_BYTES else ""


class QueueThreads:
    """Lets the queue of requests have some of the threads; a caller that finds them taken waits a while, and is told to come again."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._readers = Admission(READERS, QUEUE)
        self._writers = Admission(WRITERS, QUEUE)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something looked up."""
        async with self._readers:
            with without_folders():
                return await self._threads.read(work, *args, **kwargs)

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something changed."""
        async with self._writers:
            with without_folders():
                return await self._threads.write(work, *args, **kwargs)


@contextmanager
def without_folders() -> Iterator[None]:
    """Tell what is wrong with a file by its name: where it lies is for those on this machine."""
    try:
        yield
    except ToolError as problem:
        path = problem.details.get(PATH)
        if not isinstance(path, str) or not PurePath(path).is_absolute():
            raise
        name = PurePath(path).name
        raise ToolError(
            problem.kind,
            problem.message.replace(show(path), show(name)).replace(path, name),
            retryable=problem.retryable,
            partial_side_effects=problem.partial_side_effects,
            details={**problem.details, PATH: name},
        ) from problem


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
