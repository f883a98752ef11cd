"""How many jobs run at once: those beyond that number wait in the order in which they came."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import time
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

JOBS = 8
QUEUE = 1_000

_LONGEST_ADVICE_SECONDS = 60
_WEIGHT_OF_THE_LAST = 0.2


class Slots:
    """Places for jobs, first come first served, whichever event loop or thread they come from."""

    def __init__(self, jobs: int = JOBS, queue: int = QUEUE) -> None:
        self._jobs = jobs
        self._queue = queue
        self._lock = threading.Lock()
        self._usual_seconds = 0.0
        self._open()

    @contextlib.asynccontextmanager
    async def take(self, deadline: float) -> AsyncIterator[None]:
        """Have a place while inside; raises OVERLOADED if there is none before the deadline (time.monotonic)."""
        await self._enter(deadline)
        began, owner = time.monotonic(), self._owner
        try:
            yield
        finally:
            if owner == os.getpid():
                self._release(time.monotonic() - began)

    def _open(self) -> None:
        self._owner = os.getpid()
        self._free = self._jobs
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    async def _enter(self, deadline: float) -> None:
        turn = self._line_up()
        if turn is None:
            return
        try:
            await asyncio.wait((turn,), timeout=max(0.0, deadline - time.monotonic()))
        except asyncio.CancelledError:
            if not self._leave(turn):
                self._release()
            raise
        if self._leave(turn):
            raise self._refusal("no place in the sandbox became free in the time of the call")

    def _line_up(self) -> asyncio.Future[None] | None:
        """Take a free place, or stand at the end of the queue."""
        with self._lock:
            if self._owner != os.getpid():  # a fork of the host: the jobs of its parent are none of its own
                self._open()
            if self._free > 0:
                self._free -= 1
                return None
            if len(self._waiting) >= self._queue:
                raise self._refusal(f"{self._jobs} jobs run in the sandbox and {len(self._waiting)} more wait")
            loop = asyncio.get_running_loop()
            turn = loop.create_future()
            self._waiting[turn] = loop
            return turn

    def _leave(self, turn: asyncio.Future[None]) -> bool:
        """Go away from the queue; False if the place was already given."""
        with self._lock:
            return self._waiting.pop(turn, None) is not None

    def _release(self, seconds: float | None = None) -> None:
        """Hand the place to whoever waits longest."""
        with self._lock:
            if seconds is not None:
                self._usual_seconds += (seconds - self._usual_seconds) * _WEIGHT_OF_THE_LAST
            while self._waiting:
                turn = next(iter(self._waiting))
                loop = self._waiting.pop(turn)
                try:
                    loop.call_soon_threadsafe(_give, turn)
                except RuntimeError:  # its loop was closed under it
                    continue
                return
            self._free += 1

    def _refusal(self, reason: str) -> ToolError:
        seconds = self._usual_seconds * (len(self._waiting) + 1) / self._jobs
        advice = min(max(1, math.ceil(seconds)), _LONGEST_ADVICE_SECONDS)
        message = f"{reason}; call again in {advice} s, or raise the setting sandbox_jobs"
        return ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": advice})


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
