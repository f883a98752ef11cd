"""The launcher processes: one per interpreter, started on demand, with a bounded number of idle ones."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.channel import ORDER_BYTES
from toolcrib.infra.sandbox import system
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


MAX_LAUNCHERS = 4
_MAX_STARTS = 10
_STARTS_WITHIN_SECONDS = 60.0


class Launchers:
    """Provide launchers; when there are too many, end those that have been idle longest."""

    def __init__(self) -> None:
        # The garbage collector may close a job of a closed event loop in this thread, which releases its handle: hence
        # reentrant.
        self._lock = threading.RLock()
        self._handles: dict[Path, LauncherHandle] = {}  # least recently used first

    @contextlib.contextmanager
    def use(self, program: Path) -> Iterator[LauncherHandle]:
        """The handle of the launcher for this interpreter, which is kept while in use."""
        with self._lock:
            handle = self._handles.pop(program, None) or LauncherHandle(program)
            self._handles[program] = handle
            handle.users += 1
            spare = self._take_spare()
        for other in spare:
            other.close()
        try:
            yield handle
        finally:
            with self._lock:
                handle.users -= 1

    def find(self, program: Path) -> LauncherProcess | None:
        """The launcher for this interpreter, if it is running."""
        handle = self._handles.get(program)
        return None if handle is None else handle.launcher

    def close(self) -> None:
        """End every launcher and every job under it; waits a few seconds at most."""
        for handle in list(self._handles.values()):
            handle.close()

    def _take_spare(self) -> list[LauncherHandle]:
        idle = [program for program, handle in self._handles.items() if handle.users == 0]
        return [self._handles.pop(program) for program in idle[: max(0, len(self._handles) - MAX_LAUNCHERS)]]


class LauncherHandle:
    """One launcher, started on demand and restarted when it is gone."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._starts: collections.deque[float] = collections.deque(maxlen=_MAX_STARTS)
        self._last_answer = 0.0
        self.launcher: LauncherProcess | None = None
        self.users = 0

    def running(self) -> LauncherProcess:
        """The launcher, started if necessary."""
        with self._lock:
            if self.launcher is not None and not self.launcher.is_ours:
                self.launcher.close()
                self.launcher = None
            if self.launcher is None:
                # From now on untrusted code of the same user runs, and must not read this process's memory and
                # environment.
                system.prctl(system.DUMPABLE, 0)
                self.launcher = self._start()
            return self.launcher

    def note_answer(self) -> None:
        """Remember that it started a job just now."""
        self._last_answer = time.monotonic()

    def replace_if_silent_since(self, moment: float) -> None:
        """Kill a launcher that hangs; one that is only busy has started other jobs meanwhile."""
        launcher = self.launcher
        if launcher is not None and self._last_answer < moment:
            launcher.kill()
            self.drop(launcher)

    def drop(self, launcher: LauncherProcess) -> None:
        """Close this launcher and forget it."""
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
            message = f"the launcher of the sandbox ended {_MAX_STARTS} times within {_STARTS_WITHIN_SECONDS:g} s; wait a minute"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True)
        self._starts.append(now)
        try:
            return LauncherProcess(self._program)
        except OSError as problem:
            message = f"the launcher of the sandbox cannot be started: {problem.strerror}"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True) from problem


# Starting a launcher from the host, and its control socket.

_END_SECONDS = 6.0
# One message is one order, where the system preserves message boundaries.
_ORDERS = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
# The packages are registered without running their __init__, which would load all of Toolcrib into every worker.
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
    """A running launcher process and its control socket."""

    def __init__(self, program: Path) -> None:
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, _ORDERS)
        self._control.settimeout(0)
        package = Path(__file__).resolve().parents[2]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter outside the workspace, running our own code
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
        """Whether this process started it; a fork of the host only inherits it."""
        return self._owner == os.getpid()

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def order(self, order: bytes, descriptors: Sequence[int]) -> bool:
        """Request a supervisor; False if too many orders are pending, ConnectionError if the launcher is gone."""
        try:
            socket.send_fds(self._control, [order[:ORDER_BYTES]], descriptors)
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
        """As root, put the launcher into a cgroup in the background; other users are limited by RLIMIT_NPROC."""
        if os.geteuid() != 0:
            return None
        thread = threading.Thread(target=system.enter_cgroup, args=(self._process.pid,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread available: each call is measured anyway
            return None
        return thread

    def kill(self) -> None:
        """Kill it; its supervisors end their calls."""
        self._process.kill()

    def close(self) -> None:
        """End it and every call under it, and wait for that."""
        if self._confining is not None and self.is_ours:
            self._confining.join(_END_SECONDS)  # the launcher leaves its cgroup when it ends
        self._control.close()
        if not self.is_ours:
            self._process.returncode = 0  # the parent process waits for it
            return
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_SECONDS)
