"""Connections to the server: each command has a time limit, and a connection that failed in any way is not used again.

No message repeats the URL of the server, which may hold a password.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.exceptions import RedisError, ResponseError


# How long a connection, or one piece of an answer, may take.
SECONDS = 5.0
# A server that restarts is back within these pauses; after them the caller gets an error.
PAUSES = (0.05, 0.15, 0.4)
PATIENCE_SECONDS = 8.0
# After so long a command has an answer or an error.
LONGEST_SECONDS = PATIENCE_SECONDS + 2 * SECONDS
IDLE_CONNECTIONS = 8
REASON_CHARACTERS = 200
_BOTH_WAYS = 2  # of `socket`, which only egress imports
# By the first word of the answer, or by the exception that the library raises for it.
_MEANINGS = {
    "OutOfMemoryError": (
        Kind.TRANSIENT,
        "its memory is full; nothing was stored, raise maxmemory or delete old keys",
    ),
    "MISCONF": (Kind.TRANSIENT, "it cannot write to its disk; nothing was stored, look at its log"),
    "BUSY": (Kind.TRANSIENT, "it is busy with a script; nothing was stored, try again"),
    "WRONGTYPE": (
        Kind.PERMANENT,
        "a key that begins with toolcrib: belongs to another program; delete it, or set another queue.hash",
    ),
    "ReadOnlyError": (
        Kind.PERMANENT,
        "it is a read-only replica; nothing was stored, name the primary in queue.url",
    ),
    "NoPermissionError": (
        Kind.AUTH,
        "this user may not do that; nothing was stored, allow it scripts, SCAN and the keys and channels",
    ),
}


class Socket(Protocol):
    """What is done with the socket of a connection."""

    def shutdown(self, how: int, /) -> None:
        """End reading, writing or both."""


class Connection(Protocol):
    """The part of the library's connection that we use; the library has no types."""

    _sock: Socket | None

    def connect(self) -> None:
        """Connect, and call the function that the connection was made with."""

    def on_connect(self) -> None:
        """Authenticate and choose the database."""

    def disconnect(self) -> None:
        """Close it, from any thread."""

    def send_command(self, *words: str | bytes | int) -> None:
        """Send a command."""

    def read_response(self) -> object:
        """The next answer."""

    def can_read(self, timeout: float) -> bool:
        """Whether an answer arrives within so many seconds."""


class Lost(Exception):  # noqa: N818 - internal: what happened to an answer
    """No answer came; `sent` says that the command may still have taken effect."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class Link:
    """The connections to one server, for any number of threads. `place` names it without the password."""

    def __init__(self, url: str, *, password: str = "") -> None:
        address = _read_address(url, password)
        self.place = address.place
        self._make = address.make
        self._closed = False
        self._begin()

    def ask(self, *words: str | bytes | int) -> object:
        """The answer to an idempotent command, which is sent again if the answer is lost.

        Raises TRANSIENT when the server cannot be reached, and says whether the command may have taken effect.
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
        """A new connection for the caller alone, until it is dropped; raises Lost, or AUTH."""
        from redis.exceptions import AuthenticationError, RedisError

        self._leave_to_parent()
        connection = self._make(redis_connect_func=self._greet)
        with self._lock:
            self._refuse_if_closed()
            self._open.add(connection)
        try:
            connection.connect()
        except AuthenticationError as problem:
            self.drop(connection)
            cure = "name the secret that is its password in queue.secret"
            raise ToolError(Kind.AUTH, f"the Redis server at {self.place} refuses the password; {cure}") from problem
        except RedisError as problem:
            self.drop(connection)
            # A server that rejects the handshake may echo it, and the password is part of it.
            raise Lost(_spell_safely(problem), sent=False) from problem
        except BaseException:
            self.drop(connection)
            raise
        return connection

    def drop(self, connection: Connection) -> None:
        """Close a connection in any state."""
        with self._lock:
            self._open.discard(connection)
        connection.disconnect()

    def close(self) -> None:
        """Close every connection; threads that wait for an answer get an error."""
        self._leave_to_parent()
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
            used = self._open.difference(idle)
        for connection in idle:
            self.drop(connection)
        for connection in used:
            _wake(connection)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []

    def _leave_to_parent(self) -> None:
        """A forked child opens connections of its own: two processes on one would read each other's answers."""
        if self._process != os.getpid():
            self._begin()

    def _greet(self, connection: Connection) -> None:
        """Authenticate on a new socket, unless the link was closed.

        The library connects anew to send on a connection that `close` has just disconnected, and `close` cannot disconnect one that
        has no socket yet. Either would wait for its answer as if nothing had been closed.
        """
        self._refuse_if_closed()
        connection.on_connect()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ToolError(Kind.PERMANENT, f"the queue at {self.place} was closed; open it again")

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
            raise _refused(self.place, problem) from problem
        except (Disconnected, TooLate) as problem:
            self.drop(connection)
            raise Lost(str(problem)[:REASON_CHARACTERS], sent=True) from problem
        except BaseException as problem:
            self.drop(connection)  # its answer may still arrive, and would be read as the next one
            if self._closed and isinstance(problem, Exception):
                raise Lost("it was closed", sent=True) from problem
            raise
        self._keep(connection)
        return answer

    def _take_unless_closed(self) -> Connection:
        try:
            return self._take()
        except Exception as problem:
            # `close` in another thread may take the socket and the buffer away from a connection that is being opened.
            if isinstance(problem, Lost | ToolError) or not self._closed:
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
            "the command may have taken effect: send it again, the same request is not stored twice"
            if sent
            else "nothing was stored: try again when the server is up"
        )
        message = f"the Redis server at {self.place} cannot be reached ({reason}); {stored}"
        return ToolError(Kind.TRANSIENT, message, retryable=True, partial_side_effects=sent)


def look_after(link: Link) -> list[str]:
    """Why this server could lose requests, each with its cure."""
    facts = {**_read(link, "persistence"), **_read(link, "memory")}
    remarks = []
    if facts.get("aof_enabled") == "0":
        remarks.append(
            f"the Redis server at {link.place} keeps no append-only file: a crash loses requests; set appendonly yes"
        )
    elif facts.get("aof_last_write_status", "ok") != "ok":
        remarks.append(
            f"the Redis server at {link.place} cannot write its append-only file; look at its disk and its log"
        )
    policy = facts.get("maxmemory_policy", "")
    if facts.get("maxmemory", "0") != "0" and policy.startswith("allkeys"):
        remarks.append(
            f"the Redis server at {link.place} drops any key when its memory is full ({policy}), requests too; "
            "set maxmemory-policy noeviction"
        )
    return remarks


def _read(link: Link, section: str) -> dict[str, str]:
    try:
        answer = link.ask("INFO", section)
    except ToolError as problem:
        if problem.retryable:
            raise
        return {}  # this user may not read INFO, so there are no remarks
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Address:
    """How to make a connection, and the name of the server in messages."""

    make: Callable[..., Connection]
    place: str


def _read_address(url: str, password: str) -> _Address:
    """Read the URL of the server; `password` takes precedence over the one in the URL."""
    try:
        from redis import connection as library
    except ModuleNotFoundError as problem:
        if problem.name != "redis":
            raise
        message = (
            "queue.url names a Redis server, but the package to reach it is missing; pip install 'toolcrib[redis]'"
        )
        raise SettingsError(message) from problem
    parse: Callable[[str], dict[str, Any]] = library.parse_url
    try:
        _check_path(url)
        facts = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, **parse(url), "protocol": 2}
        kind: Callable[..., Connection] = facts.pop("connection_class", library.Connection)
        if password:
            facts["password"] = password
        kind(**facts)
    except (ValueError, TypeError):
        raise SettingsError(
            "queue.url: write redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket?db=0; "
            "in a password / ? # @ are written as %2F %3F %23 %40"
        ) from None
    place = str(facts["path"]) if "path" in facts else f"{facts.get('host', 'localhost')}:{facts.get('port', 6379)}"
    return _Address(make=partial(kind, **facts), place=place)


def _check_path(url: str) -> None:
    """Refuse what the library would ignore: a database that is not a number, an empty socket path."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    is_socket = parts.scheme == "unix"
    if parts.fragment or (not database if is_socket else database and not database.isdecimal()):
        raise ValueError


def _refused(place: str, problem: ResponseError) -> ToolError:
    """The error for an error answer of the server, with the cure."""
    unknown = (Kind.PERMANENT, f"{problem!s:.300}; look at the key that it names")
    word = str(problem).partition(" ")[0]
    kind, meaning = _MEANINGS.get(type(problem).__name__) or _MEANINGS.get(word) or unknown
    message = f"the Redis server at {place} refuses: {meaning}"
    return ToolError(kind, message, retryable=kind is Kind.TRANSIENT)


def _wake(connection: Connection) -> None:
    """End the wait of the thread that uses the connection and that closes it then.

    Closed here, its descriptor could become that of another file at once, from which that thread would go on reading.
    """
    used = connection._sock  # noqa: SLF001 - the library only offers to close it
    if used is not None:
        with suppress(OSError):
            used.shutdown(_BOTH_WAYS)


def _is_quiet(connection: Connection) -> bool:
    """Whether it may be reused: not if it was closed meanwhile, or has unread data."""
    from redis.exceptions import RedisError

    try:
        return not connection.can_read(timeout=0)
    except (RedisError, OSError):
        return False


def _spell_safely(problem: RedisError) -> str:
    from redis.exceptions import ResponseError

    text = str(problem)[:REASON_CHARACTERS]
    return text.partition(" ")[0] if isinstance(problem, ResponseError) else text
