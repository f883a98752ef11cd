"""The running launchers: one for each interpreter, started when it is needed, and no more than a handful."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox import system
from toolcrib.ground.sandbox.starting import LauncherProcess
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LAUNCHERS = 4

_MAX_STARTS = 10
_STARTS_WITHIN_SECONDS = 60.0


class Launchers:
    """Gives out launchers; beyond a handful, the one that was idle longest is ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seats: dict[Path, Seat] = {}  # the one that was used last stands last

    @contextlib.contextmanager
    def use(self, program: Path) -> Iterator[Seat]:
        """The seat of the launcher for this interpreter, which stays while somebody is inside."""
        with self._lock:
            seat = self._seats.pop(program, None) or Seat(program)
            self._seats[program] = seat
            seat.users += 1
            spare = self._take_spare()
        for other in spare:
            other.close()
        try:
            yield seat
        finally:
            with self._lock:
                seat.users -= 1

    def find(self, program: Path) -> LauncherProcess | None:
        """The launcher for this interpreter, if it runs."""
        seat = self._seats.get(program)
        return None if seat is None else seat.launcher

    def close(self) -> None:
        """End every launcher and every job under them; waits for that, a few seconds at the most."""
        for seat in list(self._seats.values()):
            seat.close()

    def _take_spare(self) -> list[Seat]:
        idle = [program for program, seat in self._seats.items() if seat.users == 0]
        return [self._seats.pop(program) for program in idle[: max(0, len(self._seats) - MAX_LAUNCHERS)]]


class Seat:
    """The place of one launcher: it is started when it is asked for, and again when it is gone."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._starts: collections.deque[float] = collections.deque(maxlen=_MAX_STARTS)
        self._last_answer = 0.0
        self.launcher: LauncherProcess | None = None
        self.users = 0

    def running(self) -> LauncherProcess:
        """The launcher, started if need be."""
        with self._lock:
            if self.launcher is not None and not self.launcher.is_ours:
                self.launcher.close()
                self.launcher = None
            if self.launcher is None:
                # From now on foreign code of the same user runs: it must not read this process's memory and environment.
                system.prctl(system.DUMPABLE, 0)
                self.launcher = self._start()
            return self.launcher

    def note_answer(self) -> None:
        """Remember that it started a job just now."""
        self._last_answer = time.monotonic()

    def replace_if_silent_since(self, moment: float) -> None:
        """Give up on a launcher that hangs; one that is merely busy has started other jobs meanwhile."""
        launcher = self.launcher
        if launcher is not None and self._last_answer < moment:
            launcher.kill()
            self.drop(launcher)

    def drop(self, launcher: LauncherProcess) -> None:
        """Let go of this very launcher."""
        with self._lock:
            if self.launcher is launcher:
                self.launcher = None
        launcher.close()

    def close(self) -> None:
        """End the launcher and every job under it."""
        launcher = self.launcher
        if launcher is not None:
            self.drop(launcher)
        self._starts.clear()

    def _start(self) -> LauncherProcess:
        now = time.monotonic()
        if len(self._starts) == _MAX_STARTS and now - self._starts[0] < _STARTS_WITHIN_SECONDS:
            message = (
                f"the sandbox's launcher ended {_MAX_STARTS} times within {_STARTS_WITHIN_SECONDS:g} s; wait a minute"
            )
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True)
        self._starts.append(now)
        try:
            return LauncherProcess(self._program)
        except OSError as problem:
            message = f"the sandbox's launcher cannot be started: {problem.strerror}"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True) from problem
