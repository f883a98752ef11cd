"""Make one call and yield its events while it runs; its Result is the last event."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.core.call_state import json_size
from toolcrib.model.call import cannot_ask
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.events import Chunk, LogMessage, Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from toolcrib.model.call import Call, Question
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.result import Result

    Perform = Callable[[Call], Coroutine[object, object, Result]]

# What may wait for a reader: beyond it the tool waits, and messages without a reader are dropped.
MAX_WAITING = 64
MAX_WAITING_BYTES = 256_000
# How long to wait for the end of a cancelled tool; after that it ends by itself, at its deadline at the latest.
END_SECONDS = 5.0


class EventLink:
    """Sends events to a reader in the same program, over a bounded queue.

    A tool that yields faster than the reader reads waits. Of progress only the latest figure is queued.
    """

    can_ask = False
    takes_chunks = True

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: deque[tuple[StreamEvent, int]] = deque()
        self._bytes = self._chunks = 0
        self._changed, self._taken = asyncio.Event(), asyncio.Event()
        self._is_over = False

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Queue the progress of the call."""
        self._here(self._tell, Progress(progress=progress, total=total, message=message))

    def log(self, level: str, data: object, logger: str) -> None:
        """Queue a log message."""
        self._here(self._tell, LogMessage(level=level, data=data, logger=logger))

    async def ask(self, question: Question) -> dict[str, object]:
        """Refuse: the reader only listens."""
        raise cannot_ask(question.method)

    async def chunk(self, value: object) -> None:
        """Queue a chunk, once there is space for it."""
        size = json_size(value)
        while not self._is_over and not self._has_room:
            self._taken.clear()
            await self._taken.wait()
        if self._is_over:
            # A thread of a call that was given up learns it here.
            raise ToolError(Kind.CANCELLED, "the reader of the stream is gone", partial_side_effects=True)
        self._chunks += 1
        self._put(Chunk(number=self._chunks, value=value), size)

    def take(self) -> StreamEvent | None:
        """The next event; None if there is none."""
        if not self._waiting:
            return None
        event, size = self._waiting.popleft()
        self._bytes -= size
        self._taken.set()
        return event

    async def wait(self, seconds: float | None) -> bool:
        """Wait until there may be an event, or the call is over; False if nothing came in that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def wake(self, _: object = None) -> None:
        """Let the reader look again."""
        self._changed.set()

    def close(self) -> None:
        """Accept no more events; a tool that waits for space gets an error."""
        self._is_over = True
        self._taken.set()

    @property
    def _has_room(self) -> bool:
        return len(self._waiting) < MAX_WAITING and self._bytes < MAX_WAITING_BYTES

    def _here(self, do: Callable[[StreamEvent], None], event: StreamEvent) -> None:
        """Run it in the thread of the reader: tools may send events from any thread."""
        if threading.get_ident() == self._thread:
            do(event)
        else:
            self._loop.call_soon_threadsafe(do, event)

    def _tell(self, event: StreamEvent) -> None:
        """Queue an event that may be lost: later progress replaces queued progress, and a message is dropped if the queue is full."""
        if isinstance(event, Progress) and self._waiting and isinstance(self._waiting[-1][0], Progress):
            self._waiting.pop()
        elif (not self._has_room and not isinstance(event, Progress)) or len(self._waiting) >= 2 * MAX_WAITING:
            return
        self._put(event, 0)

    def _put(self, event: StreamEvent, size: int) -> None:
        self._waiting.append((event, size))
        self._bytes += size
        self._changed.set()


async def stream_call(
    perform: Perform,
    call: Call,
    *,
    gone: Coroutine[object, object, object] | None = None,
    silence: float | None = None,
) -> AsyncGenerator[StreamEvent | None, None]:
    """Make the call: yield its events, and then its Result. A generator that is closed cancels the call.

    So does `gone`, which waits until the reader has left: the stream of a call that is not over then ends without a result. After so many seconds of
    `silence` there is a None.
    """
    link = EventLink()
    work = asyncio.ensure_future(perform(replace(call, client=link)))
    leaving = None if gone is None else asyncio.ensure_future(gone)
    try:
        work.add_done_callback(link.wake)
        if leaving is not None:
            leaving.add_done_callback(link.wake)
        while True:
            while (event := link.take()) is not None:
                yield event
            if work.done():
                yield work.result()
                return
            if leaving is not None and leaving.done():
                return
            if not await link.wait(silence):
                yield None
    finally:
        link.close()
        if leaving is not None:
            leaving.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=END_SECONDS)
