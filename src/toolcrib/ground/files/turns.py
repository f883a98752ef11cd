"""Threads one at a time, in the order in which they came."""

from __future__ import annotations

import threading
import time
from collections import deque

from toolcrib.model.errors import Kind, ToolError


class Turns:
    """Lets one thread in until it leaves, and then the one that has waited longest."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._holder: int | None = None
        self._waiting: deque[_Waiter] = deque()

    @property
    def mine(self) -> bool:
        """Whether this thread is in."""
        return self._holder == threading.get_ident()

    def enter(self, deadline: float) -> bool:
        """Wait for the turn of this thread, which must not be in; False at the deadline of `time.monotonic`."""
        with self._mutex:
            if self._holder is None:
                self._holder = threading.get_ident()
                return True
            waiter = _Waiter()
            self._waiting.append(waiter)
        try:
            waiter.called.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:
            if not self._withdraw(waiter):
                self.leave()
            raise
        return not self._withdraw(waiter)

    def leave(self) -> None:
        """Let the next one in."""
        with self._mutex:
            if not self._waiting:
                self._holder = None
                return
            waiter = self._waiting.popleft()
            self._holder = waiter.thread
            waiter.called.set()

    def _withdraw(self, waiter: _Waiter) -> bool:
        """Stop waiting; False if the turn has come meanwhile."""
        with self._mutex:
            if waiter.called.is_set():
                return False
            self._waiting.remove(waiter)
            return True


class _Waiter:
    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.called = threading.Event()


def held_already(name: str) -> ToolError:
    """The refusal of a lock that the thread holds."""
    message = f"this thread holds the lock {name!r} already; take it once, around everything that needs it"
    return ToolError(Kind.INTERNAL, message, details={"lock": name})


def not_free(name: str, seconds: float, pid: int | None = None) -> ToolError:
    """The refusal at the deadline, with the process that holds the lock where it is known."""
    holder = "somebody else" if pid is None else f"process {pid}"
    message = f"the lock {name!r} was not free within {seconds:g} s, {holder} holds it; try again"
    return ToolError(Kind.TRANSIENT, message, retryable=True, details={"lock": name, "pid": pid})
