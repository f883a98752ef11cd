"""Log the code that blocks the event loop of a server, while it blocks."""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.core import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

BLOCKED_SECONDS = 1.0
PACKAGE = str(Path(__file__).parents[1])
LOOP = (str(Path(asyncio.__file__).parent), selectors.__file__)

HOST_CURE = "write @tool(thread=True) or make it async"
OUR_BUG = "this is a bug of Toolcrib: report it with this line"

logger = logging.getLogger("toolcrib.pipeline")


@contextmanager
def watch_loop(seconds: float = BLOCKED_SECONDS) -> Iterator[None]:
    """Inside the block, log code that blocks the running event loop for longer than `seconds`.

    The pipeline warns about a slow function when it returns; this names one that never does.
    """
    watch = _LoopWatch(asyncio.get_running_loop(), seconds)
    watch.start()
    try:
        yield
    finally:
        watch.end()


class _LoopWatch(threading.Thread):
    """A thread that checks the heartbeat of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        super().__init__(name="toolcrib loop watch", daemon=True)
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._seconds = seconds
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._beat()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
        self.join()

    def run(self) -> None:
        """Check the last heartbeat; each blockage is logged once."""
        told, looked = 0.0, monotonic()
        while not self._ended.wait(self._seconds / 2):
            before, looked = looked, monotonic()
            last = self._last
            # If this thread is late too, the whole process was suspended.
            if looked - last > self._seconds and looked - before < self._seconds and last != told:
                told = last
                self._tell(looked - last)

    def _beat(self) -> None:
        self._last = monotonic()
        self._timer = self._loop.call_later(self._seconds / 4, self._beat)

    def _tell(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - documented, the only way to another thread's stack
        # If the loop is waiting for events, it is only late because the machine is busy.
        if frame is not None and not frame.f_code.co_filename.startswith(LOOP):
            blocker, is_ours = _find_blocker(frame)
            logger.warning(
                "%s has blocked the event loop for %.2g s, and every other call waits; %s",
                f"{blocker.f_code.co_qualname} ({blocker.f_code.co_filename}:{blocker.f_lineno})",
                seconds,
                OUR_BUG if is_ours else HOST_CURE,
            )


def _find_blocker(innermost: FrameType) -> tuple[FrameType, bool]:
    """The host function that the pipeline called; without one, the innermost function of ours, and whether it is ours."""
    frames, frame = [innermost], innermost.f_back
    while frame is not None and not frame.f_code.co_filename.startswith(LOOP):
        frames.append(frame)
        frame = frame.f_back
    called = [*takewhile(lambda each: each.f_code.co_filename != pipeline.__file__, frames)]
    if len(called) < len(frames) and not _is_ours(innermost):
        return next(each for each in reversed(called) if not _is_ours(each)), False
    ours = next(filter(_is_ours, frames), None)
    return ours or innermost, ours is not None


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGE)
