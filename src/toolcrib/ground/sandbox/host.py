"""The sandbox as the rest of Toolcrib sees it: run a job in a child, and say what that child was kept from."""

from __future__ import annotations

import asyncio
import collections
import threading
import time
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox import system
from toolcrib.ground.sandbox.attempt import Attempt
from toolcrib.ground.sandbox.jobs import PythonFile, encode
from toolcrib.ground.sandbox.starting import LauncherProcess
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.ground.sandbox.jobs import Ended, Job

GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
KEPT = frozenset({"env", "time", "reap"} if system.HAS_SUBREAPER else {"env", "time"})

MAX_STREAM_BYTES = 256 * 1024
MAX_RESULT_BYTES = 8 * 1024 * 1024

_LONGEST_SECONDS = 7 * 24 * 3600.0
_KILL_ROOM_SECONDS = 0.5  # what ending a tree of processes and telling about it may take
_BUSY_SECONDS = 0.002
_ATTEMPTS = 3
_MAX_STARTS = 10
_STARTS_WITHIN_SECONDS = 60.0


def strike_time(deadline: float) -> float:
    """When to begin ending a job so that its answer is there by the deadline."""
    left = deadline - time.monotonic()
    return deadline - min(_KILL_ROOM_SECONDS, left / 10)


class Sandbox:
    """Runs jobs in child processes. The launcher is started by the first job and shared by all.

    `require` names the guarantees without which no job runs. One Sandbox serves any number of jobs at once, in any event
    loop; `close` ends what is running, and a later job starts the launcher again.
    """

    def __init__(self, *, require: Iterable[str] = ("env", "time", "reap")) -> None:
        self._require = tuple(require)
        self._launcher: LauncherProcess | None = None
        self._starts: collections.deque[float] = collections.deque(maxlen=_MAX_STARTS)
        self._lock = threading.Lock()
        self._last_answer = 0.0

    def report(self) -> dict[str, list[str]]:
        """What holds for every job, by which layers, and what nobody guarantees."""
        return {
            "guarantees": [name for name in GUARANTEES if name in KEPT],
            "layers": ["hygiene"],
            "missing": [name for name in GUARANTEES if name not in KEPT],
        }

    def check(self) -> None:
        """Refuse, with SANDBOX_UNAVAILABLE, if a required guarantee cannot be given here."""
        missing = [name for name in self._require if name not in KEPT]
        if not missing:
            return
        message = (
            f"the sandbox cannot guarantee {', '.join(missing)} on this system; "
            "the operator may lower the setting sandbox.require"
        )
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, details={"missing": missing})

    async def run(
        self,
        job: Job,
        *,
        deadline: float,
        max_stdout: int = MAX_STREAM_BYTES,
        max_stderr: int = MAX_STREAM_BYTES,
        max_result: int = MAX_RESULT_BYTES,
    ) -> Ended:
        """Run a job until it ends or `deadline` (time.monotonic) passes; no process of it is left when this returns.

        That holds for cancellation too. What a stream carries beyond its limit is dropped; a result beyond its limit
        ends the job.
        """
        self.check()
        began = time.monotonic()
        until = min(deadline, began + _LONGEST_SECONDS)
        message = encode(job, until)
        wish = b"a" if isinstance(job, PythonFile) and b"async" in job.code else b"c"
        for _ in range(_ATTEMPTS):
            attempt = Attempt(max_stdout, max_stderr, max_result)
            try:
                await self._order(attempt, wish, until)
                await attempt.finish(message, until)
            finally:
                await attempt.end()
            if attempt.was_ignored:
                self._replace_if_silent_since(began)
                break
            if not attempt.was_lost:
                self._last_answer = time.monotonic()
                return attempt.ended()
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, "the sandbox's launcher does not start the job", retryable=True)

    def close(self) -> None:
        """End the launcher and every job under it; waits for that, a few seconds at the most."""
        if self._launcher is not None:
            self._drop(self._launcher)
        self._starts.clear()

    async def _order(self, attempt: Attempt, wish: bytes, until: float) -> None:
        """Have a supervisor started."""
        while True:
            launcher = self._running_launcher()
            try:
                if launcher.order(wish, attempt.descriptors()):
                    return
            except ConnectionError:
                self._drop(launcher)
                continue
            if time.monotonic() > until:
                raise ToolError(Kind.OVERLOADED, "too many jobs wait for the sandbox; call again later", retryable=True)
            await asyncio.sleep(_BUSY_SECONDS)

    def _running_launcher(self) -> LauncherProcess:
        with self._lock:
            if self._launcher is not None and not self._launcher.is_ours:
                self._launcher.close()
                self._launcher = None
            if self._launcher is None:
                # From now on foreign code of the same user runs: it must not read this process's memory and environment.
                system.prctl(system.DUMPABLE, 0)
                self._launcher = self._start_launcher()
            return self._launcher

    def _replace_if_silent_since(self, moment: float) -> None:
        """Give up on a launcher that hangs; one that is merely busy has started other jobs meanwhile."""
        if self._launcher is not None and self._last_answer < moment:
            self._launcher.kill()
            self._drop(self._launcher)

    def _drop(self, launcher: LauncherProcess) -> None:
        with self._lock:
            if self._launcher is launcher:
                self._launcher = None
        launcher.close()

    def _start_launcher(self) -> LauncherProcess:
        now = time.monotonic()
        if len(self._starts) == _MAX_STARTS and now - self._starts[0] < _STARTS_WITHIN_SECONDS:
            message = (
                f"the sandbox's launcher ended {_MAX_STARTS} times within {_STARTS_WITHIN_SECONDS:g} s; wait a minute"
            )
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True)
        self._starts.append(now)
        try:
            return LauncherProcess()
        except OSError as problem:
            message = f"the sandbox's launcher cannot be started: {problem.strerror}"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True) from problem
