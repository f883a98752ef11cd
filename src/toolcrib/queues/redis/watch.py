"""Waiting for the next change."""

from __future__ import annotations

import threading


class Watch:
    """Counts what changed on the server, and wakes whoever waits for more.

    The first count that anybody sees is where it begins: whatever changes after that is not missed.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._latest: int | None = None
        self._seen: int | None = None
        self._closed = False

    def begin(self, count: int) -> None:
        """Take this for what has been seen, unless something was seen before."""
        with self._condition:
            if self._seen is None and self._latest is None:
                self._seen = self._latest = count

    def rejoin(self, count: int) -> None:
        """Go on with this count, also where the server has begun to count anew."""
        with self._condition:
            self._latest = count
            self._condition.notify_all()

    def ring(self, count: int) -> None:
        """Something has changed."""
        with self._condition:
            if self._latest is None or count > self._latest:
                self._latest = count
                self._condition.notify_all()

    def wait(self, seconds: float) -> bool:
        """Sleep until there is more than was seen when this object last waited; False if there is not, in time."""
        with self._condition:
            seen = self._seen
            woken = self._condition.wait_for(lambda: self._closed or self._latest != seen, max(0.0, seconds))
            self._seen = self._latest
            return woken and not self._closed

    def close(self) -> None:
        """Wake everyone, and let nobody sleep again."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
