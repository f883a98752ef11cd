"""Bound concurrency: slots with a queue for tool calls, and thread pools for blocking work."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

P = ParamSpec("P")
T = TypeVar("T")

MAX_WAIT_SECONDS = 10.0
RETRY_AFTER_SECONDS = 1
READERS = 16
WRITERS = 16


class Admission:
    """Slots for tool calls, first come first served: `async with admission: …`.

    Raises ToolError(OVERLOADED) if the queue is full, or if a call has waited in it for `max_wait` seconds.
    """

    def __init__(self, places: int, queue: int, *, max_wait: float = MAX_WAIT_SECONDS) -> None:
        self.places = places
        self.queue = queue
        self.max_wait = max_wait
        self.running = 0
        self.refused = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def queued(self) -> int:
        """How many calls wait for a slot."""
        return len(self._waiting)

    async def __aenter__(self) -> None:
        if not self.take():
            await self.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def take(self) -> bool:
        """Take a free slot; False if there is none. Who got one leaves it."""
        if self.running < self.places:
            self.running += 1
            return True
        return False

    async def wait(self) -> None:
        """Wait in the queue until a finished call hands over its slot."""
        if len(self._waiting) >= self.queue:
            raise self._refusal(f"{self.running} calls are running and {len(self._waiting)} wait")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self.max_wait):
                await turn
        except TimeoutError:
            self._give_up(turn)
            raise self._refusal(f"no slot became free within {self.max_wait:g} s") from None
        except asyncio.CancelledError:
            self._give_up(turn)
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self.leave()  # the slot was handed over just as the wait ended
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def leave(self) -> None:
        """Give the slot to the call that has waited longest, or make it free."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

    def _refusal(self, why: str) -> ToolError:
        self.refused += 1
        return ToolError(
            Kind.OVERLOADED,
            f"{why}; try again in {RETRY_AFTER_SECONDS} s",
            retryable=True,
            details={RETRY_AFTER: RETRY_AFTER_SECONDS},
        )


class Threads:
    """Run blocking work in threads; readers have their own pool, so that writers waiting for locks do not block them."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, "toolcrib-read")
        self._writers = ThreadPoolExecutor(WRITERS, "toolcrib-write")

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that only reads."""
        return await _run(self._readers, partial(work, *args, **kwargs))

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work that writes."""
        return await _run(self._writers, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Start no more work; running work finishes by itself."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writers.shutdown(wait=False, cancel_futures=True)


async def _run(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    # In the context of the request, which holds the view and the quota of its caller.
    return await asyncio.get_running_loop().run_in_executor(executor, copy_context().run, work)
