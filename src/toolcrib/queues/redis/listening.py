"""A thread that hears what is published, and comes back when the connection is lost."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.queues.redis.link import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.queues.redis.address import Connection
    from toolcrib.queues.redis.link import Link

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


def _spell(problem: Exception) -> str:
    return problem.message if isinstance(problem, ToolError) else str(problem)[:200]
