"""Waiting for requests: one thread at the doorbell of the queue, for everybody in this process who waits."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from toolcrib.model.errors import Kind, ToolError
from toolcrib.queues.refusals import unknown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Event, Filed

T = TypeVar("T")

logger = logging.getLogger("toolcrib.requests")

# How long the thread stays when nobody waits any more.
SLICE_SECONDS = 0.25
ASKERS = 4
# Somebody else with the same queue may have heard a ring, so everything is looked at that often anyway.
LOOK_SECONDS = 1.0
AGAIN_SECONDS = 0.25
LONGEST_AGAIN_SECONDS = 5.0


class Place:
    """Somebody who waits for the end of one request, or with an empty id for anything to change."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.rung = asyncio.Event()
        self.filed: Filed | None = None
        self._loop = asyncio.get_running_loop()

    def ring(self, filed: Filed | None) -> None:
        """Wake whoever waits here, from any thread."""
        self.filed = filed
        with suppress(RuntimeError):  # the loop has ended, and whoever waited there with it
            self._loop.call_soon_threadsafe(self.rung.set)


class Waiting:
    """Tells whoever waits what became of requests. The thread is there as long as somebody waits, and a moment longer.

    A queue that cannot be reached for a while is asked again.
    """

    def __init__(self, queue: Callable[[], Queue]) -> None:
        self._queue = queue
        self._places: set[Place] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        # Threads of its own: a queue that does not answer would else keep all of the loop's.
        self._askers = ThreadPoolExecutor(ASKERS, "toolcrib-asking")

    async def until_over(self, request_id: str) -> Filed:
        """Wait until nothing more happens to a request by itself."""
        with self._place(request_id) as place:
            # It may be over already: what rang before this place was taken rings for nobody here.
            with suppress(ToolError):
                filed = await self._ask(lambda: self._queue().get(request_id))
                if filed is not None and filed.status.is_final:
                    return filed
            await place.rung.wait()
        if place.filed is None:
            raise ToolError(Kind.CANCELLED, f"the crib was closed while {request_id} was waited for")
        return place.filed

    async def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """What happens to a request, from the event behind that number on, until it is over."""
        if await self._ask(lambda: self._queue().get(request_id)) is None:
            raise unknown(request_id)
        with self._place("") as place:
            while True:
                place.rung.clear()
                is_over, events = await self._ask(partial(self._news, request_id, after))
                for event in events:
                    after = event.number
                    yield event
                if is_over:
                    return
                await place.rung.wait()
                self._refuse_closed()

    def close(self) -> None:
        """Send home whoever waits, and end the thread."""
        with self._lock:
            self._closing.set()
            places, thread = tuple(self._places), self._thread
        for place in places:
            place.ring(None)
        self._askers.shutdown(wait=False)
        if thread is not None:
            thread.join(2 * SLICE_SECONDS)

    async def _ask(self, ask: Callable[[], T]) -> T:
        self._refuse_closed()
        return await asyncio.get_running_loop().run_in_executor(self._askers, ask)

    @contextmanager
    def _place(self, request_id: str) -> Iterator[Place]:
        place = Place(request_id)
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

    def _news(self, request_id: str, after: int) -> tuple[bool, list[Event]]:
        """Whether a request is over, and what happened to it; no news while the queue cannot be reached."""
        try:
            # In this order: what ended it is in its history by then.
            filed = self._queue().get(request_id)
            return filed is not None and filed.status.is_final, self._queue().history(request_id, after)
        except ToolError as problem:
            if problem.kind is not Kind.TRANSIENT:
                raise
            return False, []

    def _run(self) -> None:
        look_at, delay = 0.0, AGAIN_SECONDS
        while self._is_needed():
            try:
                if self._queue().wait(SLICE_SECONDS) or monotonic() >= look_at:
                    took = self._look()
                    look_at = monotonic() + LOOK_SECONDS
                    # However often it rings, half of the time is left to others.
                    self._closing.wait(min(took, LOOK_SECONDS))
                delay = AGAIN_SECONDS
            except Exception as problem:  # noqa: BLE001 - a background loop: those who wait must not wait for ever
                logger.warning("the queue of requests could not be asked: %s", problem)
                self._closing.wait(delay)
                delay = min(2 * delay, LONGEST_AGAIN_SECONDS)

    def _is_needed(self) -> bool:
        with self._lock:
            if self._places and not self._closing.is_set():
                return True
            self._thread = None
            return False

    def _look(self) -> float:
        """Tell whoever waits for something that is there; how many seconds that took."""
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
                place.ring(over.get(place.request_id))
        return monotonic() - started
