"""A sandboxed process that outlives the call that starts it, and serves one call after the other over its channel."""

from __future__ import annotations

import asyncio
import contextvars
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable
    from typing import Self

    from toolcrib.infra.sandbox.attempt import Lines, Talk
    from toolcrib.infra.sandbox.jobs import CompletedJob
    from toolcrib.model.errors import ToolError

KILLING_SECONDS = 5.0
LOOK_SECONDS = 0.01


class WarmProcess:
    """A process that takes one call at a time. It belongs to the event loop that started it.

    `live` runs it to its end and serves its channel. `key` says which calls it can take, `is_spent` that it takes no further one.
    """

    def __init__(self, key: Hashable, live: Callable[[Talk], Coroutine[object, object, CompletedJob]]) -> None:
        self.key = key
        self.loop = asyncio.get_running_loop()
        self.born = self.idle_since = time.monotonic()
        self.is_spent = False
        self.timer: asyncio.TimerHandle | None = None
        self._is_heard = False
        self._reason: ToolError | None = None
        self._lines: asyncio.Future[Lines] = self.loop.create_future()
        self._over = self.loop.create_future()
        # In a context of its own: it outlives the call that starts it.
        self._running = self.loop.create_task(live(self._listen), context=contextvars.Context())
        self._running.add_done_callback(_consume_result)

    @property
    def is_usable(self) -> bool:
        """Whether it can take a call: it is alive and has sent nothing outside a call."""
        return not self._running.done() and self._lines.done() and self._lines.result().is_silent

    def when_ended(self, tell: Callable[[Self], None]) -> None:
        """Run a callback in its event loop when the process has ended."""
        self._running.add_done_callback(lambda _: tell(self))

    def end(self, reason: ToolError | None = None) -> None:
        """End the process, from any thread; a call that it serves fails for that reason."""
        self._reason = self._reason or reason
        self.is_spent = True
        if self._lines.done():
            self._lines.result().end_job()
        with suppress(RuntimeError):  # of a loop that was closed
            self.loop.call_soon_threadsafe(self._end_soon)

    async def see_ended(self) -> None:
        """Wait for the end of the process, from any event loop, for a few seconds at most."""
        if self.loop is asyncio.get_running_loop():
            await asyncio.wait([self._running], timeout=KILLING_SECONDS)
            return
        until = time.monotonic() + KILLING_SECONDS
        while self._is_there and time.monotonic() < until:  # noqa: ASYNC110 - another loop's futures cannot be awaited here
            await asyncio.sleep(LOOK_SECONDS)

    @property
    def _is_there(self) -> bool:
        """Whether the process is still alive, as seen from any thread."""
        if self._running.done():
            return False
        if not self._lines.done():
            return not self.loop.is_closed()
        # A running event loop notices the end itself, after closing the channel; for a blocked loop only the channel can tell.
        return self.loop.is_running() or not self._lines.result().is_cut

    def _end_soon(self) -> None:
        """Close the channel from the worker's own event loop, so that the process ends soon."""
        if not self._lines.done():
            self._running.cancel()
        elif not self._is_heard:  # the reader must see the end of the channel, not a closed one
            self._close_channel()

    async def _listen(self, lines: Lines) -> None:
        """Keep the channel open while callers read and write."""
        self._lines.set_result(lines)
        try:
            await self._over
        finally:
            await self._part(lines)

    async def _part(self, lines: Lines) -> None:
        """Look at the channel a last time before it is closed."""

    def _close_channel(self) -> None:
        if not self._over.done():
            self._over.set_result(None)


def _consume_result(running: asyncio.Task[CompletedJob]) -> None:
    """Consume the result of a process that no caller waits for."""
    if not running.cancelled():
        running.exception()
