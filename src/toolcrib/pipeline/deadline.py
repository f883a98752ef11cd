"""Ends calls whose time is up, at next to no cost for those that end by themselves."""

from __future__ import annotations

import asyncio
import math
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.pipeline.case import Case

STRIKE_AGAIN_SECONDS = 1.0


class Deadlines:
    """Watches the calls of every event loop, each loop in its own thread.

    `asyncio.timeout` sets a timer for every call, which costs several times the call itself. Here a call is put into a
    set, and the one timer of its loop is touched only when the call has less time than every other.
    """

    def __init__(self) -> None:
        self._timers: dict[int, _Timer] = {}

    def watch(self, case: Case, deadline: float) -> None:
        """Cancel the current task at `deadline` (time.monotonic), unless the case leaves its `watched` before."""
        timer = self._timers.get(get_ident())
        # Not get_running_loop: up to Python 3.11 it asks the kernel for the process id, each time.
        task = None if timer is None else asyncio.current_task(timer.loop)
        if timer is None or task is None:
            timer = self._timers[get_ident()] = _Timer(asyncio.get_running_loop())
            task = asyncio.current_task()
            if task is None:
                raise RuntimeError("a tool is called inside a task")
        case.deadline = deadline
        case.task = task
        case.cancelled_before = task.cancelling()
        case.watched = timer.watched
        timer.watched.add(case)
        if deadline < timer.next:
            timer.set(deadline)

    def leave(self, case: Case) -> None:
        """Watch a case no longer, if it ever was."""
        watched: set[Case] | None = getattr(case, "watched", None)
        if watched is not None:
            watched.discard(case)


class _Timer:
    """The timer of one event loop, set to the earliest deadline among its calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watched: set[Case] = set()
        self.next = math.inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, deadline: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self.next = deadline
        self._handle = self.loop.call_later(max(0.0, deadline - monotonic()), self._strike)

    def _strike(self) -> None:
        now = monotonic()
        for case in [case for case in self.watched if case.deadline <= now]:
            case.struck += 1
            # A tool that swallows its cancellation, or one under a call that was struck too, is cancelled again.
            case.deadline = now + STRIKE_AGAIN_SECONDS
            case.task.cancel()
        self._handle, self.next = None, math.inf
        if self.watched:
            self.set(min(case.deadline for case in self.watched))


def struck_alone(case: Case) -> bool:
    """Whether the cancellation that arrived comes from the deadline of this very call and from nobody else."""
    return case.struck > 0 and case.task.cancelling() - case.struck <= case.cancelled_before


def stop(case: Case) -> ToolError:
    """Take the cancellation of a call back that ran out of time, and say so instead."""
    for _ in range(case.struck):
        case.task.uncancel()
    case.struck = 0
    seconds = monotonic() - case.started
    return ToolError(Kind.TIMEOUT, f"{case.name} was stopped after {seconds:.3g} s", partial_side_effects=True)
