"""The only owner of child processes: a launcher, a supervisor for each call, a worker that runs untrusted code.

    host ── control socket ──▶ launcher ── fork ──▶ supervisor ── fork ──▶ worker and its descendants
      └──────────── socket of the call, pipes, channel ─────┘

In the host: `host` is the entry and keeps the launchers, over `jobs` (what runs, and its policy) and `attempt` (one call); `probe`
finds out what this machine guarantees; `interpreters` and `environments` find and create other Pythons.

In `child`, which starts without the rest of Toolcrib and imports only the standard library, itself and `system`: `launcher`; `supervisor`
over `resource_limits` and `protected_paths`; `worker` with its `confinement` over `isolation` and `seccomp`, and what it runs
(`python_file`, `handler_context`, `script_channel`); `notifications`, `observer` and `broker` for system calls that the
supervisor answers; and `escape_attempts`, which the probe runs. Both sides use `system`, for system calls and signals.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_positive, read_words, setting
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError

# It takes as long to import as a launcher takes to start, so it is imported where it is used, while the launcher of a cold call starts.
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterator

GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
# What holds unless the operator says otherwise in [sandbox].
REQUIRE = ("env", "time", "reap", "fs", "net", "priv")
JOBS = 8
QUEUE = 1_000
MEMORY_MB = 1_024
PROCESSES = 64
DISK_MB = 256


def _read_guarantees(name: str, value: object) -> tuple[str, ...]:
    words = read_words(name, value)
    if unknown := sorted(set(words) - set(GUARANTEES)):
        raise ValueError(f"{name}: unknown guarantee {unknown[0]!r}; known are {', '.join(GUARANTEES)}")
    return words


class SandboxSettings(Table, name="sandbox"):
    """What the sandbox must guarantee, and how much the processes of tools may use."""

    require: tuple[str, ...] = setting(
        default=REQUIRE,
        read=_read_guarantees,
        summary="what the sandbox must guarantee for files of tools to run at all",
    )
    jobs: int = setting(
        default=JOBS, read=read_positive, opens=False, summary="how many processes of tools may run at once"
    )
    queue: int = setting(
        default=QUEUE,
        read=read_positive,
        opens=False,
        summary="how many more calls may wait for one of those places before they are refused",
    )
    memory_mb: int = setting(
        default=MEMORY_MB, read=read_positive, opens=False, summary="how much memory the processes of one call may use"
    )
    processes: int = setting(
        default=PROCESSES, read=read_positive, opens=False, summary="how many processes one call may have"
    )
    disk_mb: int = setting(
        default=DISK_MB,
        read=read_positive,
        opens=False,
        summary="how much one call may keep in its scratch folder, and how large a file it may write",
    )


# Job slots: a bounded number of jobs run at once, the others wait in first-in, first-out order.

_LONGEST_ADVICE_SECONDS = 60
_WEIGHT_OF_THE_LAST = 0.2


class _Turn:
    """A waiting job, and whether a slot was granted to it."""

    __slots__ = ("is_granted", "loop", "ready")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.ready: asyncio.Future[None] = loop.create_future()
        self.is_granted = False


class Slots:
    """Slots for running jobs, granted in FIFO order across event loops and threads."""

    def __init__(self, jobs: int = JOBS, queue: int = QUEUE) -> None:
        self._jobs = jobs
        self._queue = queue
        # Reentrant: the garbage collector may close a job of a closed event loop in this thread, which releases its slot.
        self._lock = threading.RLock()
        self._usual_seconds = 0.0
        self._open()

    @contextlib.asynccontextmanager
    async def take(self, deadline: float) -> AsyncIterator[None]:
        """Hold a slot inside the block; raises OVERLOADED if none becomes free before the deadline (time.monotonic)."""
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
        self._waiting: dict[_Turn, None] = {}

    async def _enter(self, deadline: float) -> None:
        import asyncio

        turn = self._enqueue()
        if turn is None:
            return
        try:
            await asyncio.wait((turn.ready,), timeout=max(0.0, deadline - time.monotonic()))
        except (asyncio.CancelledError, GeneratorExit):  # the latter if its event loop was closed
            self._leave(turn)
            if turn.is_granted:
                self._release()
            raise
        if self._leave(turn):
            raise self._refusal("no sandbox slot became free before the deadline of the call")

    def _enqueue(self) -> _Turn | None:
        """Take a free slot, or join the end of the queue."""
        import asyncio

        with self._lock:
            if self._owner != os.getpid():  # after a fork of the host: the parent's jobs do not count here
                self._open()
            if self._free > 0:
                self._free -= 1
                return None
            if len(self._waiting) >= self._queue:
                raise self._refusal(f"{self._jobs} jobs run in the sandbox and {len(self._waiting)} more wait")
            turn = _Turn(asyncio.get_running_loop())
            if self._free > 0:  # the garbage collector released one meanwhile
                self._free -= 1
                return None
            self._waiting[turn] = None
            return turn

    def _leave(self, turn: _Turn) -> bool:
        """Leave the queue; False if the slot was already granted."""
        with self._lock:
            return self._waiting.pop(turn, self) is None

    def _release(self, seconds: float | None = None) -> None:
        """Pass the slot to the job that has waited longest."""
        with self._lock:
            if seconds is not None:
                self._usual_seconds += (seconds - self._usual_seconds) * _WEIGHT_OF_THE_LAST
            for turn in list(self._waiting):
                if not self._leave(turn):
                    continue
                turn.is_granted = True
                try:
                    turn.loop.call_soon_threadsafe(_grant, turn.ready)
                except RuntimeError:  # its event loop was closed
                    turn.is_granted = False
                    continue
                return
            self._free += 1

    def _refusal(self, reason: str) -> ToolError:
        seconds = self._usual_seconds * (len(self._waiting) + 1) / self._jobs
        advice = min(max(1, math.ceil(seconds)), _LONGEST_ADVICE_SECONDS)
        message = f"{reason}; call again in {advice} s, or raise the setting sandbox.jobs"
        return ToolError(Kind.OVERLOADED, message, retryable=True, details={RETRY_AFTER: advice})


class WaitingJobs:
    """Places for jobs that wait for the client of their call.

    Such a job keeps its slot, so only some may wait, and one caller cannot take the last place from the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_a_caller = max(1, most - 1)
        self._lock = threading.RLock()  # reentrant for the reason that `Slots` gives
        self._callers: Counter[str] = Counter()

    @contextlib.contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Take a place within the block; raises OVERLOADED where none is free."""
        with self._lock:
            if self._callers.total() >= self._most or self._callers[caller] >= self._most_of_a_caller:
                message = f"{self._callers.total()} jobs wait for an answer of their clients; ask again later"
                raise ToolError(Kind.OVERLOADED, message, retryable=True)
            self._callers[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._callers[caller] -= 1
                if not self._callers[caller]:
                    del self._callers[caller]


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
