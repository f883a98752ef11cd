"""Pool warm processes: serve a call by one that is ready, a new one below the limit, or the first that becomes free."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from toolcrib.infra.sandbox import QUEUE
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from toolcrib.infra.programs.warm_process import WarmProcess

Worker = TypeVar("Worker", bound="WarmProcess")

IDLE_SECONDS = 300.0
# A process is ended after so long: tools leave state behind, and the limits of its proxy count for its whole life.
OLDEST_SECONDS = 3600.0
RETRY_SECONDS = 1


@dataclass(eq=False, kw_only=True, slots=True)
class _Turn(Generic[Worker]):
    """A waiting caller. `is_promised` if a place is being cleared for it; once it `is_woken`, `worker` is what it gets, None for a place."""

    key: Hashable
    loop: asyncio.AbstractEventLoop
    ready: asyncio.Future[None]
    is_promised: bool = False
    is_turned_away: bool = False
    is_woken: bool = False
    worker: Worker | None = field(default=None)


class Workers(Generic[Worker]):
    """The warm processes of one kind of tool, at most `limit` of them; callers beyond it wait in order.

    `setting` names that limit for the operator. With `fresh`, each takes one call and ends. Calls may come from any event loop and
    thread.
    """

    def __init__(self, limit: int, setting: str, *, fresh: bool = False, queue: int = QUEUE) -> None:
        self._limit = limit
        self._setting = setting
        self._fresh = fresh
        self._queue = queue
        # Reentrant: a call whose event loop was closed gives its worker or place back when it is garbage-collected, which may be at
        # any line. So what waits is looked at in a copy, and taken in one step.
        self._lock = threading.RLock()
        self._open()

    def has_ready(self, key: Hashable) -> bool:
        """Whether a worker with this key waits for a call."""
        return any(worker.key == key for worker in self._idle)

    async def take(self, key: Hashable, make: Callable[[], Worker], until: float) -> Worker:
        """A worker to call, which `make` makes if none is ready; raises OVERLOADED if there is none before `until`."""
        while True:
            found = self._enter(key)
            if isinstance(found, _Turn):
                found = await self._wait(found, until)
            if found is None:
                return self._make(make)
            if found.is_usable:
                return found
            found.end()

    def give_back(self, worker: Worker) -> None:
        """Return the worker to the pool, unless it must not be reused."""
        with self._lock:
            if worker not in self._all:
                return
            worker.idle_since = time.monotonic()
            is_old = worker.idle_since - worker.born > OLDEST_SECONDS
            turn = next((turn for turn in list(self._waiting) if not turn.is_promised), None)
            is_wanted = turn is None or (turn.key == worker.key and turn.loop is worker.loop)
            if self._fresh or worker.is_spent or is_old or worker.loop.is_closed() or not is_wanted:
                worker.end()
            elif turn is not None and self._leave(turn):
                self._wake(turn, worker)
            else:
                self._idle.append(worker)
                if worker.timer is None:
                    self._watch(worker, IDLE_SECONDS)

    def dismiss(self, key: Hashable) -> None:
        """End the workers with this key that wait for a call."""
        with self._lock:
            for worker in [worker for worker in self._idle if worker.key == key]:
                self._idle.remove(worker)
                worker.end()

    async def close(self) -> None:
        """End every process and refuse waiting callers."""
        with self._lock:
            workers, turns = list(self._all), list(self._waiting)
            self._idle.clear()
            self._waiting.clear()
            for turn in turns:
                turn.is_turned_away = True
                self._wake(turn, None)
        reason = ToolError(Kind.CANCELLED, "the crib was closed while the tool ran", partial_side_effects=True)
        for worker in workers:
            worker.end(reason)
        await asyncio.gather(*(worker.see_ended() for worker in workers))

    def _open(self) -> None:
        self._owner = os.getpid()
        self._free = self._limit
        self._all: set[Worker] = set()
        self._idle: list[Worker] = []  # the one that waits longest first
        self._waiting: dict[_Turn[Worker], None] = {}

    def _enter(self, key: Hashable) -> Worker | _Turn[Worker] | None:
        """A ready worker, None for a free place to start one, or a turn in the queue."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._owner != os.getpid():  # a fork of the host: the workers of its parent are none of its own
                self._open()
            for worker in reversed(self._idle):
                if worker.key == key and worker.loop is loop:
                    self._idle.remove(worker)
                    return worker
            if self._free == 0:
                self._clear_stranded()
            if self._free > 0:
                self._free -= 1
                return None
            if len(self._waiting) >= self._queue:
                raise self._refusal(f"{self._limit} processes are busy and {len(self._waiting)} more calls wait")
            turn = _Turn[Worker](key=key, loop=loop, ready=loop.create_future())
            if self._free > 0:  # the garbage collector freed one meanwhile
                self._free -= 1
                return None
            self._waiting[turn] = None
            if self._idle:
                turn.is_promised = True
                self._dismiss(self._idle.pop(0))
            return turn

    async def _wait(self, turn: _Turn[Worker], until: float) -> Worker | None:
        try:
            await asyncio.wait((turn.ready,), timeout=max(0.0, until - time.monotonic()))
        except (asyncio.CancelledError, GeneratorExit):  # the latter if its event loop was closed
            if not self._leave(turn):
                self._return(turn)
            raise
        if self._leave(turn):
            raise self._refusal("no process became free in the time of the call")
        if turn.is_turned_away:
            raise ToolError(Kind.CANCELLED, "the crib was closed while the call waited")
        return turn.worker

    def _leave(self, turn: _Turn[Worker]) -> bool:
        """Leave the queue; False if it was already the caller's turn."""
        with self._lock:
            return self._waiting.pop(turn, self) is None

    def _return(self, turn: _Turn[Worker]) -> None:
        """Pass on a worker or place that arrived after its caller gave up."""
        if turn.worker is not None:
            self.give_back(turn.worker)
        elif turn.is_woken and not turn.is_turned_away:
            with self._lock:
                self._admit_next()

    def _make(self, make: Callable[[], Worker]) -> Worker:
        try:
            worker = make()
        except BaseException:
            with self._lock:
                self._admit_next()
            raise
        with self._lock:
            self._all.add(worker)
        worker.when_ended(self._forget)
        return worker

    def _forget(self, worker: Worker) -> None:
        """Give the place of a process that ended to the caller that waits longest."""
        with self._lock:
            if worker.timer is not None:
                worker.timer.cancel()
            self._remove(worker)

    def _remove(self, worker: Worker) -> None:
        if worker not in self._all:
            return
        self._all.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        self._admit_next()

    def _dismiss(self, worker: Worker) -> None:
        worker.end()
        if not worker.loop.is_running():  # its end will not be reported
            self._remove(worker)

    def _clear_stranded(self) -> None:
        """Drop workers whose event loop was closed."""
        for worker in [worker for worker in self._all if worker.loop.is_closed()]:
            self._dismiss(worker)

    def _admit_next(self) -> None:
        """Free a place for the caller that waits longest."""
        for turn in list(self._waiting):
            if self._leave(turn) and self._wake(turn, None):
                return
        self._free += 1

    def _wake(self, turn: _Turn[Worker], worker: Worker | None) -> bool:
        """Wake the caller; False if its event loop was closed."""
        turn.worker, turn.is_woken = worker, True
        try:
            turn.loop.call_soon_threadsafe(_settle, turn.ready)
        except RuntimeError:
            turn.is_woken = False
        return turn.is_woken

    def _watch(self, worker: Worker, seconds: float) -> None:
        worker.timer = worker.loop.call_later(seconds, self._look_at, worker)

    def _look_at(self, worker: Worker) -> None:
        """End a worker that was idle for too long."""
        with self._lock:
            worker.timer = None
            if worker not in self._idle:
                return
            left = worker.idle_since + IDLE_SECONDS - time.monotonic()
            if left > 0:
                self._watch(worker, left)
                return
            self._idle.remove(worker)
            worker.end()

    def _refusal(self, reason: str) -> ToolError:
        message = f"{reason}; call again in {RETRY_SECONDS} s, or raise the setting {self._setting}"
        return ToolError(Kind.OVERLOADED, message, retryable=True, details={RETRY_AFTER: RETRY_SECONDS})


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
