"""Name the code that blocks the event loop of a server, while it blocks it."""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
from contextlib import contextmanager
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

logger = logging.getLogger("toolcrib.pipeline")


@contextmanager
def watch_loop(seconds: float = BLOCKED_SECONDS) -> Iterator[None]:
    """Inside the block, log what blocks the running event loop for longer than `seconds`.

    What the pipeline says about a slow function comes when it returns; one that never does is named here.
    """
    watch = _LoopWatch(asyncio.get_running_loop(), seconds)
    watch.start()
    try:
        yield
    finally:
        watch.end()


class _LoopWatch(threading.Thread):
    """A thread that expects a beat of the loop every so often."""

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
        """Look at the loop's last beat; each time that it is blocked is told once."""
        told, looked = 0.0, monotonic()
        while not self._ended.wait(self._seconds / 2):
            before, looked = looked, monotonic()
            last = self._last
            # Where this thread came late too, the whole process was held up.
            if looked - last > self._seconds and looked - before < self._seconds and last != told:
                told = last
                self._tell(looked - last)

    def _beat(self) -> None:
        self._last = monotonic()
        self._timer = self._loop.call_later(self._seconds / 4, self._beat)

    def _tell(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the documented way to another thread's stack
        # A loop that waits for events is only late because the machine is busy.
        if frame is not None and not frame.f_code.co_filename.startswith(LOOP):
            logger.warning(
                "%s has blocked the event loop for %.2g s, and every other call waits; write @tool(thread=True) or make it async",
                _name_blocker(frame),
                seconds,
            )


def _name_blocker(innermost: FrameType) -> str:
    """The host function that the pipeline called; without one, what runs."""
    blocker, frame = innermost, innermost.f_back
    if not _is_ours(innermost):
        outermost = innermost
        while frame is not None and frame.f_code.co_filename != pipeline.__file__:
            outermost = outermost if _is_ours(frame) else frame
            frame = frame.f_back
        blocker = innermost if frame is None else outermost
    return f"{blocker.f_code.co_qualname} ({blocker.f_code.co_filename}:{blocker.f_lineno})"


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGE)
