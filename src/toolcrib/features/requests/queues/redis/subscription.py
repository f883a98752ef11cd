"""Subscribe to channels in a thread that reconnects, and wait for changes."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from toolcrib.features.requests.queues.redis.connection import Lost
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.features.requests.queues.redis.connection import Connection, Link

# After so many seconds without a message the server is pinged, and has a few times as long to answer.
QUIET_SECONDS = 1.0
QUIET_TIMES = 5
FIRST_PAUSE, LAST_PAUSE = 0.05, 5.0

logger = logging.getLogger("toolcrib.queues")


class Listener:
    """Subscribes to channels, and calls `heard` for each message and `quiet` after a moment without any.

    `joined` is called after each subscription, with whether it is a later one: messages in between were missed, and now is
    the time to look for what they announced.
    """

    def __init__(
        self,
        link: Link,
        channels: Sequence[str],
        *,
        heard: Callable[[str, bytes], None],
        quiet: Callable[[], None],
        joined: Callable[[bool], None],
    ) -> None:
        self._link = link
        self._channels = tuple(channels)
        self._heard = heard
        self._quiet = quiet
        self._joined = joined
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            # A forked child has no thread but the one that forked.
            if (self._thread is not None and self._thread.is_alive()) or self._closing.is_set():
                return
            self._thread = threading.Thread(target=self._listen, name="toolcrib-redis", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Do not reconnect."""
        self._closing.set()

    def join(self) -> None:
        """Wait until the thread has ended, which it does once the link is closed."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _listen(self) -> None:
        pause, before = FIRST_PAUSE, False
        while not self._closing.is_set():
            try:
                connection = self._subscribe()
                self._joined(before)
                pause, before = FIRST_PAUSE, True
                self._hear(connection)
            except Exception as problem:  # noqa: BLE001 - the thread must outlive any error, until its queue closes
                if self._closing.is_set():
                    break
                if pause == FIRST_PAUSE:  # logged once, not for every retry
                    logger.warning("redis: cannot subscribe at %s: %s", self._link.place, _spell(problem))
            finally:
                self._hang_up()
            self._closing.wait(pause)
            pause = min(2 * pause, LAST_PAUSE)

    def _subscribe(self) -> Connection:
        connection = self._link.connect()
        with self._lock:
            self._connection = connection
        connection.send_command("SUBSCRIBE", *self._channels)
        for _ in self._channels:
            connection.read_response()
        return connection

    def _hear(self, connection: Connection) -> None:
        silence = 0
        while not self._closing.is_set():
            if connection.can_read(timeout=QUIET_SECONDS):
                silence = 0
                self._tell(connection.read_response())
                continue
            silence += 1
            if silence == 1:
                connection.send_command("PING")
                self._carefully(self._quiet)
            if silence > QUIET_TIMES:
                raise Lost("it does not answer a ping", sent=False)

    def _tell(self, said: object) -> None:
        if isinstance(said, list) and said[0] == b"message":
            self._carefully(lambda: self._heard(said[1].decode(), said[2]))

    def _carefully(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ToolError as problem:
            logger.warning("redis: a message could not be processed: %s", problem.message)

    def _hang_up(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._link.drop(connection)


class Watch:
    """Follows the server's counter of changes, and wakes the threads that wait for the next one.

    It begins with the first count that any command returned: no later change is missed.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._latest: int | None = None
        self._seen: int | None = None
        self._closed = False

    def begin(self, count: int) -> None:
        """Begin with this count, unless there is one already."""
        with self._condition:
            if self._seen is None and self._latest is None:
                self._seen = self._latest = count

    def rejoin(self, count: int) -> None:
        """Continue with this count, also if the server has started to count from zero."""
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
        """Wait for a change since the last wait; False if there is none in time."""
        with self._condition:
            seen = self._seen
            woken = self._condition.wait_for(lambda: self._closed or self._latest != seen, max(0.0, seconds))
            self._seen = self._latest
            return woken and not self._closed

    def close(self) -> None:
        """Wake all waiters; from now on `wait` returns at once."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()


def _spell(problem: Exception) -> str:
    return problem.message if isinstance(problem, ToolError) else str(problem)[:200]
