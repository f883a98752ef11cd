"""The running launchers: one for each interpreter, started when it is needed, and no more than a handful."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox.child import resource_limits, system
from toolcrib.infra.sandbox.child.preload import ORDER_BYTES, ORDERS
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Starting the launcher from the host, and holding on to it.

_END_SECONDS = 6.0

# The packages are entered without running their __init__, which would bring the whole of Toolcrib into every worker.
_BOOT = """\
import sys
folder = sys.argv[1]
for name in ("toolcrib", "toolcrib.lib", "toolcrib.infra", "toolcrib.infra.sandbox", "toolcrib.infra.sandbox.child"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [folder + name.removeprefix("toolcrib").replace(".", "/")]
from toolcrib.infra.sandbox.child.launcher import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""


class LauncherProcess:
    """A running launcher in a Python of its own, and the socket that it takes orders from."""

    def __init__(self, program: Path) -> None:
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, ORDERS)
        self._control.settimeout(0)
        package = Path(__file__).resolve().parents[2]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter outside of every workspace, with our own code
                [
                    *(str(program), "-I", "-S", "-X", "utf8", "-c", _BOOT),
                    *(str(package), str(theirs.fileno()), str(self._owner)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._confining = self._confine()

    @property
    def is_ours(self) -> bool:
        """Whether this process started it; a fork of the host has only inherited it."""
        return self._owner == os.getpid()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def order(self, wish: bytes, descriptors: Sequence[int]) -> bool:
        """Ask for a supervisor; False if it has too many orders open, ConnectionError if it is gone."""
        try:
            socket.send_fds(self._control, [wish[:ORDER_BYTES]], descriptors)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno == errno.ETOOMANYREFS:
                return False
            if isinstance(problem, ConnectionError):
                raise
            raise ConnectionError(str(problem)) from problem
        return True

    def _confine(self) -> threading.Thread | None:
        """Have its processes counted by the kernel, beside its start; those of a user other than root are counted anyway."""
        if os.geteuid() != 0:
            return None
        thread = threading.Thread(target=resource_limits.confine, args=(self._process.pid,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread to be had: what each call uses is measured all the same
            return None
        return thread

    def kill(self) -> None:
        """End it at once; its supervisors end their calls."""
        self._process.kill()

    def close(self) -> None:
        """End it and every call under it, and wait for that."""
        if self._confining is not None and self.is_ours:
            self._confining.join(_END_SECONDS)  # it leaves the group when it ends
        self._control.close()
        if not self.is_ours:
            self._process.returncode = 0  # it is the child of another process, which waits for it
            return
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_SECONDS)


MAX_LAUNCHERS = 4

_MAX_STARTS = 10
_STARTS_WITHIN_SECONDS = 60.0


class Launchers:
    """Gives out launchers; beyond a handful, the one that was idle longest is ended."""

    def __init__(self) -> None:
        # The garbage collector may end a job of a loop that was closed, which leaves its seat, while this thread takes one.
        self._lock = threading.RLock()
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
