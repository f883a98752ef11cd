"""Requests for tools that do not exist yet: file them, follow them, deliver what was made for them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from toolcrib.core.sources import current_view
from toolcrib.features.requests.delivery import deliver
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import set_field, write_request
from toolcrib.features.requests.queues import unknown
from toolcrib.features.requests.workspace import find_package
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Submitted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from toolcrib.features.requests.claim import ProofSetup
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Status, ToolRequest

    # Within the class below, `list` is what it does.
    Filings = list[Filed]
    Events = list[Event]
    Experiments = list[Experiment]
    Remarks = list[str]

PLACE = "request"
MAX_TEXT_BYTES = 256_000
MAX_ID = 200
MAX_REASON = 1_000
MAX_LISTED = 1_000


T = TypeVar("T")
logger = logging.getLogger("toolcrib.requests")
# How long the thread stays when there are no waiters.
WAIT_SECONDS = 0.25
ASKERS = 4
# Another waiter on the same queue may have consumed a wake-up, so everything is polled that often anyway.
POLL_SECONDS = 1.0
RETRY_SECONDS = 0.25
LONGEST_RETRY_SECONDS = 5.0


class Requests:
    """What a crib does with requests; methods that are not async block for as long as the queue takes.

    `queue`, `setup` and `builds`, the folder where makers work, are made on first use. `exists` is the
    address of a registered tool of a name, or empty. `owner` is the name that deliveries are claimed by. `strict` refuses
    what is only readable with warnings.
    """

    def __init__(
        self,
        *,
        queue: Callable[[], Queue],
        setup: Callable[[], ProofSetup],
        exists: Callable[[str], str],
        builds: Callable[[], Path],
        owner: str = "",
        record: Recorder = unrecorded,
        strict: bool = False,
        lease_seconds: float = 30.0,
        seconds: float = 900.0,
    ) -> None:
        self._queue = queue
        self._setup = setup
        self._exists = exists
        self._builds = builds
        self._owner = owner or f"delivery-{os.urandom(6).hex()}"
        self._record = record
        self._strict = strict
        self._lease_seconds = lease_seconds
        self._seconds = seconds

    @cached_property
    def waiters(self) -> Waiters:
        """The waiters for requests."""
        return Waiters(self._queue)

    def submit(self, text: str | bytes, *, strict: bool | None = None, place: str = PLACE) -> Submitted:
        """File a request under its own id; the same text again is a no-op. Errors name the `place`."""
        return self._file(self._read(text, strict=strict, numbered=True, place=place))

    def new(
        self, request: Mapping[str, object] | str | bytes, *, strict: bool | None = None, place: str = PLACE
    ) -> Submitted:
        """File a request, given as its fields or as text; without an id it gets the next number of the day."""
        text = write_request(request) if isinstance(request, Mapping) else request
        return self._file(self._read(text, strict=strict, numbered=False, place=place))

    def list(self, status: Status | None = None, *, limit: int = MAX_LISTED) -> Filings:
        """The requests in the order in which they were filed; of many the newest. A caller with limits sees none."""
        if current_view() is not None:
            return []
        return self._queue().requests(status, limit=max(1, min(limit, MAX_LISTED)))

    def show(self, request_id: str) -> Filed:
        """One request; raises NOT_FOUND."""
        is_shown = current_view() is None and 0 < len(request_id) <= MAX_ID
        filed = self._queue().get(request_id) if is_shown else None
        if filed is None:
            raise unknown(request_id)
        return filed

    def find_open(self, name: str) -> Filed | None:
        """The request for a tool of that name which is pending or being built."""
        return self._queue().find_open(name)

    def join(self, filed: Filed, experiment: str) -> Filed:
        """Have an experiment wait for an open request."""
        text = set_field(filed.text, "experiment_blocked", experiment)
        # Without an id it becomes part of the open request, or of a new one if that has ended meanwhile.
        return self._queue().file(replace(read_request(text), id=""))

    def history(self, request_id: str, after: int = 0) -> Events:
        """The events of a request after that number."""
        return self._queue().history(self.show(request_id).id, max(0, after))

    def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """What happens to a request, until it is over; a queue that cannot be reached for a while is asked again."""
        return self.waiters.watch(request_id, after)

    async def until_over(self, request_id: str) -> Filed:
        """Wait until a request is over."""
        return await self.waiters.until_over(request_id)

    def package(self, request_id: str) -> Path | None:
        """The package folder of its latest workspace; None if there is none."""
        return find_package(self._builds(), self._leading(request_id).id)

    async def deliver(self, request_id: str, path: Path, say: Callable[[str], None] | None = None) -> Filed:
        """Prove and publish what a person made for a request: a folder, or a file of Python.

        What the gate refuses raises VALIDATION with its complaints in the details, and the request waits as before.
        """
        filed = await asyncio.to_thread(self._leading, request_id)
        await deliver(
            self._queue(),
            self._setup(),
            filed,
            path,
            say or (lambda _: None),
            owner=self._owner,
            lease_seconds=self._lease_seconds,
            seconds=self._seconds,
        )
        return await asyncio.to_thread(self.show, request_id)

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel it; a Builder that works on it stops."""
        return self._queue().cancel(self.show(request_id).id, reason[:MAX_REASON] or "cancelled")

    def retry(self, request_id: str) -> Filed:
        """Have a failed or cancelled request built again."""
        return self._queue().retry(self.show(request_id).id)

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request that is not ready; one that is over has to be retried for it."""
        filed = self.show(request_id)
        with self._record("request.allowed", filed.id, facts=allowance.to_json()):
            return self._queue().allow(filed.id, allowance)

    def experiments(self) -> Experiments:
        """Everything that waits or waited for a tool."""
        if current_view() is not None:
            return []
        return self._queue().experiments()

    def remarks(self) -> Remarks:
        """What the operator should know about the queue."""
        return self._queue().remarks()

    def close(self) -> None:
        """Wake all waiters."""
        if "waiters" in self.__dict__:
            self.waiters.close()

    def _read(self, text: str | bytes, *, strict: bool | None, numbered: bool, place: str) -> ToolRequest:
        size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            message = f"a request has at most {MAX_TEXT_BYTES} bytes, this one has {size}; ask for less at once"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        is_strict = self._strict if strict is None else strict
        return read_request(text, place=place, strict=is_strict, numbered=numbered)

    def _file(self, request: ToolRequest) -> Submitted:
        if current_view() is not None:
            # The tool may exist where this caller cannot see it, and the answer would reveal that.
            raise ToolError(Kind.BLOCKED, "a caller that is limited to some tools may not request others")
        queue = self._queue()
        # A request that is filed already may be the one that the tool was built for.
        if not request.id or queue.get(request.id) is None:
            self._refuse_existing(request.name)
        filed = queue.file(request)
        merged = bool(filed.merged_into) or (not request.id and filed.requesters > 1)
        return Submitted(filed=filed, warnings=request.warnings, merged=merged)

    def _refuse_existing(self, name: str) -> None:
        if address := self._exists(name):
            message = f"{address} exists already: call it, or request a tool of another name"
            raise ToolError(Kind.CONFLICT, message, details={"tool": address})

    def _leading(self, request_id: str) -> Filed:
        """The request itself, or the one that is built in its place."""
        filed = self.show(request_id)
        return self.show(filed.merged_into) if filed.merged_into and not filed.status.is_final else filed


class Waiter:
    """Waits for the end of one request, or with an empty id for any change."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.woken = asyncio.Event()
        self.filed: Filed | None = None
        self._loop = asyncio.get_running_loop()

    def wake(self, filed: Filed | None) -> None:
        """Wake it, from any thread."""
        self.filed = filed
        with suppress(RuntimeError):  # the loop has ended, and the waiter with it
            self._loop.call_soon_threadsafe(self.woken.set)


class Waiters:
    """Wakes waiters when their requests are over. A thread polls the queue while there are any, and a moment longer.

    A queue that cannot be reached is retried.
    """

    def __init__(self, queue: Callable[[], Queue]) -> None:
        self._queue = queue
        self._places: set[Waiter] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        # Threads of its own: a queue that does not answer would otherwise block all of the loop's.
        self._askers = ThreadPoolExecutor(ASKERS, "toolcrib-asking")

    async def until_over(self, request_id: str) -> Filed:
        """Wait until a request is over."""
        with self._place(request_id) as place:
            # It may have finished before we subscribed.
            with suppress(ToolError):
                filed = await self._ask(lambda: self._queue().get(request_id))
                if filed is not None and filed.status.is_final:
                    return filed
            await place.woken.wait()
        if place.filed is None:
            raise ToolError(
                Kind.CANCELLED, f"the crib was closed while it waited for {request_id}; open another and wait again"
            )
        return place.filed

    async def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a request after that number, as they happen, until it is over."""
        if await self._ask(lambda: self._queue().get(request_id)) is None:
            raise unknown(request_id)
        with self._place("") as place:
            while True:
                place.woken.clear()
                is_over, events = await self._ask(partial(self._new_events, request_id, after))
                for event in events:
                    after = event.number
                    yield event
                if is_over:
                    return
                await place.woken.wait()
                self._refuse_closed()

    def close(self) -> None:
        """Wake all waiters, and end the thread."""
        with self._lock:
            self._closing.set()
            places, thread = tuple(self._places), self._thread
        for place in places:
            place.wake(None)
        self._askers.shutdown(wait=False)
        if thread is not None:
            thread.join(2 * WAIT_SECONDS)

    async def _ask(self, ask: Callable[[], T]) -> T:
        self._refuse_closed()
        return await asyncio.get_running_loop().run_in_executor(self._askers, ask)

    @contextmanager
    def _place(self, request_id: str) -> Iterator[Waiter]:
        place = Waiter(request_id)
        with self._lock:
            self._refuse_closed()
            self._places.add(place)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="toolcrib-waiting", daemon=True)
                self._thread.start()
        try:
            yield place
        finally:
            with self._lock:
                self._places.discard(place)

    def _refuse_closed(self) -> None:
        if self._closing.is_set():
            raise ToolError(Kind.CANCELLED, "the crib is closed, so nothing can be waited for; open another")

    def _new_events(self, request_id: str, after: int) -> tuple[bool, list[Event]]:
        """Whether a request is over, and its new events; none while the queue cannot be reached."""
        try:
            # In this order: the history of a request that is over is then complete.
            filed = self._queue().get(request_id)
            return filed is not None and filed.status.is_final, self._queue().history(request_id, after)
        except ToolError as problem:
            if problem.kind is not Kind.TRANSIENT:
                raise
            return False, []

    def _run(self) -> None:
        look_at, delay = 0.0, RETRY_SECONDS
        while self._is_needed():
            try:
                if self._queue().wait(WAIT_SECONDS) or monotonic() >= look_at:
                    took = self._look()
                    look_at = monotonic() + POLL_SECONDS
                    # However often the queue changes, at most half of the time is spent here.
                    self._closing.wait(min(took, POLL_SECONDS))
                delay = RETRY_SECONDS
            except Exception as problem:  # noqa: BLE001 - a background loop: the waiters must not wait for ever
                logger.warning("the queue of requests could not be asked: %s", problem)
                self._closing.wait(delay)
                delay = min(2 * delay, LONGEST_RETRY_SECONDS)

    def _is_needed(self) -> bool:
        with self._lock:
            if self._places and not self._closing.is_set():
                return True
            self._thread = None
            return False

    def _look(self) -> float:
        """Wake the waiters whose request is over; how many seconds that took."""
        started = monotonic()
        with self._lock:
            places = tuple(self._places)
        over: dict[str, Filed] = {}
        for request_id in {place.request_id for place in places} - {""}:
            filed = self._queue().get(request_id)
            if filed is not None and filed.status.is_final:
                over[request_id] = filed
        for place in places:
            if not place.request_id or place.request_id in over:
                place.wake(over.get(place.request_id))
        return monotonic() - started
