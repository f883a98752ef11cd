"""Connections to the server: each command has a time limit, and a connection that failed in any way is not used again."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.queues.redis.address import read_address
from toolcrib.queues.redis.refused import refused

if TYPE_CHECKING:
    from redis.exceptions import RedisError

    from toolcrib.queues.redis.address import Connection

# A server that is started anew is back within these; whoever waits longer should be told.
PAUSES = (0.05, 0.15, 0.4)
PATIENCE_SECONDS = 8.0
IDLE_CONNECTIONS = 8
REASON_CHARACTERS = 200


class Lost(Exception):  # noqa: N818 - what happened to an answer, not an error that anybody sees
    """No answer came; `sent` says that the command may have been obeyed all the same."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class Link:
    """The way to one server, for any number of threads. `place` says which one, without what opens it."""

    def __init__(self, url: str, *, password: str = "") -> None:
        address = read_address(url, password)
        self.place = address.place
        self._make = address.make
        self._closed = False
        self._begin()

    def ask(self, *words: str | bytes | int) -> object:
        """The answer to a command that may be given twice: it is, where the first answer was lost on the way.

        Raises TRANSIENT when the server cannot be reached, and says whether the command may have been obeyed.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        pauses, sent = iter(PAUSES), False
        while True:
            try:
                return self._ask_once(words)
            except Lost as lost:
                sent, pause = sent or lost.sent, next(pauses, PATIENCE_SECONDS)
                if time.monotonic() + pause >= deadline:
                    raise self._unreachable(str(lost), sent=sent) from lost
            time.sleep(pause)

    def connect(self) -> Connection:
        """A new connection that nobody else uses, until it is dropped; raises Lost, or AUTH."""
        from redis.exceptions import AuthenticationError, RedisError

        self._leave_to_parent()
        connection = self._make()
        with self._lock:
            if self._closed:
                raise ToolError(Kind.PERMANENT, f"the queue at {self.place} was closed; open it again")
            self._open.add(connection)
        try:
            connection.connect()
        except AuthenticationError as problem:
            self.drop(connection)
            cure = "name the secret that is its password in queue_secret"
            raise ToolError(Kind.AUTH, f"the Redis server at {self.place} wants another password; {cure}") from problem
        except RedisError as problem:
            self.drop(connection)
            # A server that does not understand a greeting repeats it, and the password is part of one.
            raise Lost(_spell_safely(problem), sent=False) from problem
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def drop(self, connection: Connection) -> None:
        """Let go of a connection, whatever state it is in."""
        with self._lock:
            self._open.discard(connection)
        connection.disconnect()

    def close(self) -> None:
        """Let go of every connection; whoever waits for an answer waits no more."""
        self._leave_to_parent()
        with self._lock:
            self._closed = True
            self._idle.clear()
            opened = list(self._open)
        for connection in opened:
            self.drop(connection)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []

    def _leave_to_parent(self) -> None:
        """A forked child has connections of its own: two who ask on one get each other's answers."""
        if self._process != os.getpid():
            self._begin()

    def _ask_once(self, words: tuple[str | bytes | int, ...]) -> object:
        from redis.exceptions import ConnectionError as Disconnected
        from redis.exceptions import NoScriptError, ResponseError
        from redis.exceptions import TimeoutError as TooLate

        connection = self._take_unless_closed()
        try:
            connection.send_command(*words)
            answer: object = connection.read_response()
        except ResponseError as problem:
            self._keep(connection)
            if isinstance(problem, NoScriptError):
                raise
            raise refused(self.place, problem) from problem
        except (Disconnected, TooLate) as problem:
            self.drop(connection)
            raise Lost(str(problem)[:REASON_CHARACTERS], sent=True) from problem
        except BaseException as problem:
            self.drop(connection)  # its answer may still come, and would be taken for the next one
            if self._closed and isinstance(problem, Exception):
                raise Lost("it was closed", sent=True) from problem
            raise
        self._keep(connection)
        return answer

    def _take_unless_closed(self) -> Connection:
        try:
            return self._take()
        except (OSError, ValueError) as problem:
            # Whoever closes it may take the descriptor away from under one that is just being opened.
            if not self._closed:
                raise
            raise Lost("it was closed", sent=False) from problem

    def _take(self) -> Connection:
        self._leave_to_parent()
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.connect()
            if _is_quiet(connection):
                return connection
            self.drop(connection)

    def _keep(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        self.drop(connection)

    def _unreachable(self, reason: str, *, sent: bool) -> ToolError:
        stored = (
            "whether anything was stored is not known: ask again, the same request is not taken twice"
            if sent
            else "nothing was stored: try again when it is there"
        )
        message = f"the Redis server at {self.place} cannot be reached ({reason}); {stored}"
        return ToolError(Kind.TRANSIENT, message, retryable=True, partial_side_effects=sent)


def _is_quiet(connection: Connection) -> bool:
    """Whether it may be used again: one that was cut in the meantime, or says something unasked, may not."""
    from redis.exceptions import RedisError

    try:
        return not connection.can_read(timeout=0)
    except (RedisError, OSError):
        return False


def _spell_safely(problem: RedisError) -> str:
    from redis.exceptions import ResponseError

    text = str(problem)[:REASON_CHARACTERS]
    return text.partition(" ")[0] if isinstance(problem, ResponseError) else text
