"""The end of a family of processes: everything that this process started, however far it has moved away."""

from __future__ import annotations

import os
import signal
import time

from toolcrib.infra.sandbox.child import system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Collection

    from toolcrib.infra.sandbox.child.notifications import Oversight
    from toolcrib.infra.sandbox.child.system import Events

GRACE_SECONDS = 0.2
KILL_SECONDS = 1.5
_ROUND_SECONDS = 0.02


class Family:
    """The descendants of this process.

    As their subreaper it becomes the parent of every orphan among them, so that the kernel's word "no child" proves that
    none is left, be it a daemon in a session of its own. Without a subreaper only the group of a child is known.
    `oversight` answers calls of theirs that wait, also of those that tidy up.
    """

    def __init__(self, events: Events, oversight: Oversight | None = None) -> None:
        self._events = events
        self._oversight = oversight
        self.statuses: dict[int, int] = {}
        self.signalled: set[int] = set()

    def reap(self) -> bool:
        """Take note of the children that have ended; whether there is none left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if process == 0:
                return False
            self.statuses[process] = status

    def wait(self, seconds: float) -> bool:
        """Give the children some time to end; whether none is left."""
        until = time.monotonic() + seconds
        while not self.reap():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._events.wait((), left)
        return True

    def end(self, child: int, *, at_once: bool = False) -> bool:
        """Ask everyone to end, unless it has to be `at_once`, then make them; whether that was achieved."""
        if not system.HAS_SUBREAPER:
            return self._end_group(child)
        if at_once:
            self._strike(child)
        elif self.press(signal.SIGTERM, GRACE_SECONDS):
            return True
        return self.press(signal.SIGKILL, KILL_SECONDS)

    def press(self, number: signal.Signals, seconds: float) -> bool:
        """Signal everyone, and those whom they start meanwhile; whether none is left when the time is up."""
        until = time.monotonic() + seconds
        told: set[int] = set()
        while not self.reap():
            if time.monotonic() > until:
                return False
            everyone = system.descendants_of([os.getpid()], system.children_by_parent())
            # Asking twice would disturb who is tidying up.
            system.send_signal([process for process in everyone if process not in told], number)
            if number != signal.SIGKILL:
                told.update(everyone)
            self.signalled.update(everyone)
            self._answer_for(_ROUND_SECONDS)
        return True

    def _answer_for(self, seconds: float) -> None:
        """Wait until something happens or the time is up, and answer calls meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            oversight = None if self._oversight is None or self._oversight.is_over else self._oversight
            ready, _ = self._events.wait(() if oversight is None else (oversight.fileno(),), left)
            if oversight is None or not ready:
                return
            oversight.serve()

    def kill_strays(self, supervisors: Collection[int]) -> bool:
        """Kill whoever lost its supervisor and became a child of the launcher; whether there was one."""
        families = system.children_by_parent()
        strays = [child for child in families.get(os.getpid(), []) if child not in supervisors]
        system.send_signal([*strays, *system.descendants_of(strays, families)], signal.SIGKILL)
        return bool(strays)

    def _strike(self, child: int) -> None:
        """Kill a child and its group, then its family, before looking through all processes of the machine for more."""
        if child not in self.statuses:  # or its number may be another's by now
            system.send_signal([child, -child], signal.SIGKILL)
            self.signalled.add(child)
        family = system.descendants()
        system.send_signal(family, signal.SIGKILL)
        self.signalled.update(family)

    def _end_group(self, child: int) -> bool:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child, number)
            except (ProcessLookupError, PermissionError):
                break
            self.signalled.add(child)
            self.wait(GRACE_SECONDS)
        return self.wait(KILL_SECONDS)
