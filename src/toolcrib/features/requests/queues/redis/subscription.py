"""A thread that hears what is published, and comes back when the connection is lost."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from toolcrib.features.requests.queues.redis.connection import Lost
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.features.requests.queues.redis.connection import Connection, Link

# A server that says nothing for so long is asked whether it is still there, and has a few times as long to answer.
QUIET_SECONDS = 1.0
QUIET_TIMES = 5
FIRST_PAUSE, LAST_PAUSE = 0.05, 5.0

logger = logging.getLogger("toolcrib.queues")


class Listener:
    """Subscribes to channels, and tells what is `heard` there, and when it is `quiet` for a moment.

    `joined` is told whenever it begins to hear, with whether it had heard before: what is published meanwhile nobody hears,
    and that is the time to look for it.
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
        """Listen from now on, unless it does already."""
        with self._lock:
            # A forked child has no thread but the one that forked.
            if (self._thread is not None and self._thread.is_alive()) or self._closing.is_set():
                return
            self._thread = threading.Thread(target=self._listen, name="toolcrib-redis", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Do not begin anew."""
        self._closing.set()

    def join(self) -> None:
        """Wait until it has stopped, which it has once the link is closed."""
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
            except Exception as problem:  # noqa: BLE001 - a thread of ours ends with its queue and not before
                if self._closing.is_set():
                    break
                if pause == FIRST_PAUSE:  # it is said once, and not whenever it is tried again
                    logger.warning("redis: %s does not tell us anything: %s", self._link.place, _spell(problem))
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
                raise Lost("it answers no more", sent=False)

    def _tell(self, said: object) -> None:
        if isinstance(said, list) and said[0] == b"message":
            self._carefully(lambda: self._heard(said[1].decode(), said[2]))

    def _carefully(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ToolError as problem:
            logger.warning("redis: a message could not be taken in: %s", problem.message)

    def _hang_up(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._link.drop(connection)


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


def _spell(problem: Exception) -> str:
    return problem.message if isinstance(problem, ToolError) else str(problem)[:200]
