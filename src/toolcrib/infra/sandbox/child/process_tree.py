"""The process tree of a call: everything that this process started, including daemons."""

from __future__ import annotations

import os
import signal
import time

from toolcrib.infra.sandbox.child import system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Collection

    from toolcrib.infra.sandbox.child.notifications import NotificationListener
    from toolcrib.infra.sandbox.child.system import Events

GRACE_SECONDS = 0.2
KILL_SECONDS = 1.5
_ROUND_SECONDS = 0.02


class ProcessTree:
    """The descendants of this process.

    As their subreaper it becomes the parent of every orphan, so ECHILD proves that none is left, not even a daemon in
    its own session. Without a subreaper only the process group of a child is known. `notifications` answers pending
    system calls of processes that are ending.
    """

    def __init__(self, events: Events, notifications: NotificationListener | None = None) -> None:
        self._events = events
        self._notifications = notifications
        self.statuses: dict[int, int] = {}
        self.signalled: set[int] = set()

    def reap(self) -> bool:
        """Reap the children that have ended; returns whether none is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if process == 0:
                return False
            self.statuses[process] = status

    def wait(self, seconds: float) -> bool:
        """Wait for the children to end; returns whether none is left."""
        until = time.monotonic() + seconds
        while not self.reap():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._events.wait((), left)
        return True

    def end(self, child: int, *, at_once: bool = False) -> bool:
        """Terminate all processes, or kill them with `at_once`; returns whether all have ended."""
        if not system.HAS_SUBREAPER:
            return self._end_group(child)
        if at_once:
            self._kill_at_once(child)
        elif self.signal_all(signal.SIGTERM, GRACE_SECONDS):
            return True
        return self.signal_all(signal.SIGKILL, KILL_SECONDS)

    def signal_all(self, number: signal.Signals, seconds: float) -> bool:
        """Signal all processes, including new ones, until none is left; False if the time is up first."""
        until = time.monotonic() + seconds
        told: set[int] = set()
        while not self.reap():
            if time.monotonic() > until:
                return False
            everyone = system.descendants_of([os.getpid()], system.children_by_parent())
            # A second SIGTERM would disturb a process that is cleaning up.
            system.send_signal([process for process in everyone if process not in told], number)
            if number != signal.SIGKILL:
                told.update(everyone)
            self.signalled.update(everyone)
            self._answer_for(_ROUND_SECONDS)
        return True

    def _answer_for(self, seconds: float) -> None:
        """Wait for an event or the end of the time, and answer system calls meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            notifications = None if self._notifications is None or self._notifications.is_over else self._notifications
            ready, _ = self._events.wait(() if notifications is None else (notifications.fileno(),), left)
            if notifications is None or not ready:
                return
            notifications.serve()

    def kill_strays(self, supervisors: Collection[int]) -> bool:
        """Kill children of the launcher that lost their supervisor; returns whether there were any."""
        children = system.children_by_parent()
        strays = [child for child in children.get(os.getpid(), []) if child not in supervisors]
        system.send_signal([*strays, *system.descendants_of(strays, children)], signal.SIGKILL)
        return bool(strays)

    def _kill_at_once(self, child: int) -> None:
        """Kill a child with its group and its descendants, before searching all processes of the machine."""
        if child not in self.statuses:  # or the process ID may have been reused
            system.send_signal([child, -child], signal.SIGKILL)
            self.signalled.add(child)
        tree = system.descendants()
        system.send_signal(tree, signal.SIGKILL)
        self.signalled.update(tree)

    def _end_group(self, child: int) -> bool:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child, number)
            except (ProcessLookupError, PermissionError):
                break
            self.signalled.add(child)
            self.wait(GRACE_SECONDS)
        return self.wait(KILL_SECONDS)
