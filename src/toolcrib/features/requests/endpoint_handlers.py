"""Answer the HTTP requests about missing tools, and stream what happens to a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast
from urllib.parse import quote

from toolcrib.features.requests.delivery import files_of, written_package
from toolcrib.features.requests.document.extensions import read_allowance
from toolcrib.features.requests.document.writer import readable_id
from toolcrib.features.requests.tracker import MAX_TEXT_BYTES
from toolcrib.infra.files.durable import show_path
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError
from toolcrib.model.toolrequest import Status, Submitted
from toolcrib.toolkit.http import answer_json, read_body, read_yaml, text_of, until_gone
from toolcrib.toolkit.http.concurrency import Admission
from toolcrib.toolkit.http.event_stream import EventStreams, encode_event
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from toolcrib.features.requests.tracker import Requests
    from toolcrib.model.toolrequest import Event, Filed
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads

    # A request as it was written: its fields, or its text.
    Written = Mapping[str, object] | str | bytes
    # Within the class below, `list` is a method.
    Events = list[Event]


LISTED = 100
MAX_LISTED_BYTES = 8_000_000
FIRST_ASKED = 32
MAX_NUMBER = 2**31 - 1
# A client that waits longer asks again; proxies have shorter timeouts than the server.
MAX_WAIT_SECONDS = 30
# The number of deliveries proved at once: each starts processes of its own.
MAX_DELIVERIES = 2
DELIVERY_SECONDS = 10
NUMBER = re.compile("[0-9]{1,9}")

P = ParamSpec("P")
T = TypeVar("T")

# A share of all threads, so that tools can be read and written at the same time.
READERS = 4
# Reading a document is work for the processor: more at once would not be done sooner, and delay other requests.
WRITERS = 2
QUEUE = 1_000
PATH = "path"


class RequestEndpoints:
    """File, list, follow, deliver and cancel requests for missing tools, and list what waits for them.

    `seconds` is how long an answer may take, and `ending` is set when the server ends.
    """

    def __init__(self, requests: Requests, threads: Threads, *, seconds: float, ending: asyncio.Event) -> None:
        self._requests = requests
        self._threads = threads
        self._queue = QueueThreads(threads)
        self._streams = EventStreams(seconds=seconds, ending=ending)
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
        """GET /requests/{requestID}/history: the events after a number; `wait` is how long to wait for more."""
        request_id = request.path_params["requestID"]
        after, seconds = request.query.number("after") or 0, request.query.number("wait") or 0
        # A disconnect is only seen after the whole body was read.
        await request.body()
        filed, events = await self._queue.read(self._look, request_id, after)
        if seconds and not events and not filed.status.is_final:
            await until_gone(request, self._streams.until_event(self._events(request_id, after), seconds))
            filed, events = await self._queue.read(self._look, request_id, after)
        return answer_json({"status": str(filed.status), "history": [event.to_json() for event in events]})

    async def events(self, request: Request) -> Answer:
        """GET /requests/{requestID}/events: what happens to it, as it happens, until it is over."""
        request_id = request.path_params["requestID"]
        after = _last_number(request)
        await request.body()
        await self._queue.read(self._requests.show, request_id)

        async def last() -> bytes:
            filed = await self._queue.read(self._requests.show, request_id)
            return encode_event("end", filed.to_json())

        return self._streams.stream(request, self._events(request_id, after), _encode, last)

    async def deliver(self, request: Request) -> Answer:
        """POST /requests/{requestID}/deliver: prove and publish the package that was made for it."""
        body = await read_body(request)
        files = await self._threads.read(files_of, body)
        if self._deliveries >= MAX_DELIVERIES:
            message = f"{MAX_DELIVERIES} deliveries are being proved; deliver it again in {DELIVERY_SECONDS} s"
            raise Refusal(429, Kind.OVERLOADED, message, details={RETRY_AFTER: DELIVERY_SECONDS})
        self._deliveries += 1
        try:
            filed = await until_gone(request, self._deliver(request.path_params["requestID"], files))
        finally:
            self._deliveries -= 1
        return answer_json(filed.to_json())

    async def cancel(self, request: Request) -> Answer:
        """POST /requests/{requestID}/cancel: cancel it."""
        body = await read_body(request)
        return await self._change(request, self._requests.cancel, text_of(body, "reason") or "")

    async def retry(self, request: Request) -> Answer:
        """POST /requests/{requestID}/retry: have it built again."""
        await read_body(request)
        return await self._change(request, self._requests.retry)

    async def allow(self, request: Request) -> Answer:
        """PUT /requests/{requestID}/allowance: what the operator adds to it."""
        body = await read_body(request)
        return await self._change(request, self._allow, body)

    async def experiments(self, request: Request) -> Answer:
        """GET /experiments: everything that waits or waited for a tool."""
        found = await self._queue.read(self._requests.experiments)
        return answer_json({"experiments": [one.to_json() for one in found]})

    def _events(self, request_id: str, after: int) -> AsyncGenerator[Event, None]:
        # It is a generator, and has to be closed where it is left before its end.
        return cast("AsyncGenerator[Event, None]", self._requests.watch(request_id, after))

    async def _change(self, request: Request, work: Callable[..., Filed], *given: object) -> Answer:
        """Carry out a decision about the request of the path."""
        filed = await self._queue.write(work, request.path_params["requestID"], *given)
        return answer_json(filed.to_json())

    async def _read_request(self, request: Request) -> Written:
        """The request: YAML itself, or JSON that holds the YAML or its fields."""
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
        """The newest that fit into one answer, read in growing portions: each comes with its whole text."""
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
        """File it; whether it is a new request."""
        was_there = self._is_filed(_id_of(written))
        # A client can be stricter than the settings, never more lenient.
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
        # In this order: the history of a request that is over is then complete.
        filed = self._requests.show(request_id)
        return filed, self._requests.history(request_id, after)

    async def _deliver(self, request_id: str, files: Mapping[str, bytes]) -> Filed:
        with without_folders():
            async with written_package(files, self._threads) as folder:
                return await self._requests.deliver(request_id, folder)


def _that_fit(found: Sequence[Filed]) -> Sequence[Filed]:
    """The newest whose texts fit into one answer, and always the newest of all."""
    size = 0
    for place, filed in enumerate(reversed(found)):
        size += len(filed.text.encode())
        if size > MAX_LISTED_BYTES and place:
            return found[-place:]
    return found


def _encode(event: Event) -> bytes:
    return encode_event("step", event.to_json(), event.number)


def _last_number(request: Request) -> int:
    """The number of the last event that a client received before it lost its connection."""
    if not request.has(b"last-event-id"):
        return 0
    last = request.header(b"last-event-id")
    if not NUMBER.fullmatch(last):
        raise ToolError(
            Kind.VALIDATION, "the header Last-Event-ID is not a number; send the id of the last event received"
        )
    return int(last)


def _id_of(written: Written) -> str:
    """The id in a request; empty if it has none."""
    if isinstance(written, Mapping):
        return str(written.get("id") or "")
    text = written.decode(errors="replace") if isinstance(written, bytes) else written
    return readable_id(text) if len(text) <= MAX_TEXT_BYTES else ""


class QueueThreads:
    """Limits how many threads the queue of requests may use; other callers wait, and after a while get a retry-after."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._readers = Admission(READERS, QUEUE)
        self._writers = Admission(WRITERS, QUEUE)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a lookup in a thread."""
        async with self._readers:
            with without_folders():
                return await self._threads.read(work, *args, **kwargs)

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a change in a thread."""
        async with self._writers:
            with without_folders():
                return await self._threads.write(work, *args, **kwargs)


@contextmanager
def without_folders() -> Iterator[None]:
    """Replace absolute paths in errors with file names: clients must not see the folders of the server."""
    try:
        yield
    except ToolError as problem:
        path = problem.details.get(PATH)
        if not isinstance(path, str) or not PurePath(path).is_absolute():
            raise
        name = PurePath(path).name
        reason = problem.reason.replace(show_path(path), show_path(name)).replace(path, name)
        raise problem.replace(reason=reason, details={**problem.details, PATH: name}) from problem
