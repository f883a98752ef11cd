"""A pool of keep-alive connections; each is opened by the dialler and carries one request at a time."""

from __future__ import annotations

import asyncio
import math
import select
import ssl
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.infra.egress.dialler import CONNECT_SECONDS, unreachable
from toolcrib.infra.egress.response_parser import ConnectionLostError
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from toolcrib.infra.egress.dialler import Dialler
    from toolcrib.infra.egress.response_parser import ResponseParser
    from toolcrib.lib.http_syntax import Url

    # Scheme, host and port: a connection is never used for another name, even one with the same address.
    Key = tuple[str, str, int]

# All connections of one pool; more requests wait for one that is free.
MAX_CONNECTIONS = 100
IDLE_SECONDS = 15.0


@cache
def tls_context() -> ssl.SSLContext:
    """The TLS context for servers: verifies the certificate, with the authorities of the system, and the host name."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Connection(asyncio.Protocol):
    """One connection: sends a request, and passes received bytes to the parser of its response."""

    def __init__(self, key: Key, dialled: socket.socket, when_lost: Callable[[Connection], None]) -> None:
        self.key = key
        self.idle_since = 0.0
        self.is_open = False
        self._when_lost = when_lost
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._may_stay = True
        self._is_paused = False
        self._pending = select.poll()
        self._pending.register(dialled, select.POLLIN)

    @property
    def may_stay(self) -> bool:
        """Whether it can carry another request: the last one is sent and answered completely, and no other bytes arrived."""
        transport = self._transport
        return (
            self._may_stay
            and self.is_open
            and self._parser is None
            and transport is not None
            and not transport.get_write_buffer_size()
        )

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and has no unread bytes.

        Bytes that a server sends before a request would be taken for the response to the next request.
        """
        return self.is_open and not self._pending.poll(0)

    def send(self, message: bytes, parser: ResponseParser) -> None:
        """Send a request; its response goes to the receiver of the parser."""
        if self._transport is None or not self.is_open:
            parser.receiver.end(ConnectionLostError(in_body=False))
            return
        self._parser = parser
        self._may_stay = False
        self._transport.write(message)

    def pause(self) -> None:
        """Stop reading, so that the flow control of TCP slows the server down."""
        if self.is_open and not self._is_paused and self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True

    def resume(self) -> None:
        """Continue reading."""
        if self.is_open and self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def fail(self) -> None:
        """Close at once, and notify the receiver of a response that it will not arrive."""
        parser = self._parser
        self.abort()
        if parser is not None:
            parser.receiver.end(ConnectionLostError(in_body=False))

    def abort(self) -> None:
        """Close at once, without notifying the receiver of a response, which calls this itself."""
        self._parser = None
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection, and with TLS its handshake, is established."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; bytes without a request end the connection."""
        parser = self._parser
        if parser is None:
            self.abort()
            return
        try:
            parser.feed(data)
        except Exception as problem:  # noqa: BLE001 - the receiver gets it and raises it to its caller
            self.abort()
            parser.receiver.end(problem)
            return
        if parser.is_complete:
            self._parser = None
            self._may_stay = parser.may_stay
            self.resume()  # its reader may leave the rest of the response unread
            parser.receiver.end(None)

    def eof_received(self) -> None:
        """The server will send no more; the transport closes itself."""
        self._finish(None)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed."""
        self._finish(error)
        self._transport = None
        self._when_lost(self)

    def _finish(self, error: Exception | None) -> None:
        self.is_open = False
        parser, self._parser = self._parser, None
        if parser is None:
            return
        failure: Exception | None = None
        try:
            parser.feed_end()
        except ConnectionLostError as lost:
            failure = lost
        if failure is None and error is not None:
            failure = ConnectionLostError(in_body=True)
        parser.receiver.end(failure)


class AwaitedResponse(Protocol):
    """A response that is awaited until `deadline`, in the time of the loop's clock."""

    deadline: float

    def end(self, failure: Exception | None) -> None:
        """Called when the deadline has passed."""


class ConnectionPool:
    """The connections of one event loop under one address policy."""

    def __init__(self, dialler: Dialler) -> None:
        self.loop = asyncio.get_running_loop()
        self._dialler = dialler
        self._in_use = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._open: set[Connection] = set()
        self._idle: dict[Key, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._all_lost: asyncio.Event | None = None
        self._watched: set[AwaitedResponse] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def take_idle(self, url: Url) -> Connection | None:
        """An idle connection to the host of the URL, exclusive to the caller until it is given back; None if there is none."""
        if self._queue or self._in_use >= MAX_CONNECTIONS:
            return None
        connection = self._pop_idle((url.scheme, url.host, url.port))
        if connection is not None:
            self._in_use += 1
        return connection

    async def take(self, url: Url, deadline: float | None) -> Connection:
        """An idle or new connection; waits for a free slot, and raises TimeoutError at the deadline."""
        async with asyncio.timeout_at(deadline):
            await self._take_slot()
            try:
                return self._pop_idle((url.scheme, url.host, url.port)) or await self._connect(url)
            except BaseException:
                self._free_slot()
                raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot carry one."""
        self._free_slot()
        if self._is_closed or not connection.may_stay:
            connection.abort()
            return
        connection.idle_since = self.loop.time()
        self._idle.setdefault(connection.key, []).append(connection)
        if self._sweep is None:
            self._sweep = self.loop.call_later(IDLE_SECONDS, self._close_unused)

    def watch(self, waiting: AwaitedResponse) -> None:
        """End it with a TimeoutError at its deadline, unless `unwatch` comes before.

        `asyncio.timeout` sets a timer for each of them. Here one timer is touched only when a deadline is nearer than all others.
        """
        self._watched.add(waiting)
        if waiting.deadline < self._next:
            self._set_timer(waiting.deadline)

    def unwatch(self, waiting: AwaitedResponse) -> None:
        """Stop watching it."""
        self._watched.discard(waiting)

    async def close(self) -> None:
        """Close all connections, also those in use, and wait until they are closed."""
        self._is_closed = True
        self._idle.clear()
        for timer in (self._sweep, self._timer):
            if timer is not None:
                timer.cancel()
        self._all_lost = asyncio.Event()
        for connection in [*self._open]:
            connection.fail()
        if self._open:
            await self._all_lost.wait()

    def _pop_idle(self, key: Key) -> Connection | None:
        """The connection that was used last: the others become old and are closed."""
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if self.loop.time() - connection.idle_since < IDLE_SECONDS and connection.is_quiet:
                return connection
            connection.abort()
        return None

    async def _connect(self, url: Url) -> Connection:
        if len(self._open) >= MAX_CONNECTIONS:
            self._close_oldest()
        dialled = await self._dialler.dial(url, name=url.origin)
        connection = Connection((url.scheme, url.host, url.port), dialled, self._forget)
        try:
            if url.scheme == "https":
                await self.loop.create_connection(
                    lambda: connection,
                    sock=dialled,
                    ssl=tls_context(),
                    server_hostname=url.host,
                    ssl_handshake_timeout=CONNECT_SECONDS,
                )
            else:
                await self.loop.create_connection(lambda: connection, sock=dialled)
        except BaseException as problem:
            dialled.close()
            if isinstance(problem, OSError):
                raise _explain(problem, url) from None
            raise
        if self._is_closed:
            connection.abort()
            raise unreachable(url.origin, "the connections were closed meanwhile")
        if connection.is_open:
            self._open.add(connection)
        return connection

    async def _take_slot(self) -> None:
        """Wait for a free slot, first come, first served."""
        if self._in_use < MAX_CONNECTIONS and not self._queue:
            self._in_use += 1
            return
        place = self.loop.create_future()
        self._queue.append(place)
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled():
                self._free_slot()  # the slot was assigned just before this task was cancelled
            raise

    def _free_slot(self) -> None:
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._in_use -= 1

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = deadline
        self._timer = self.loop.call_at(deadline, self._end_overdue)

    def _end_overdue(self) -> None:
        self._timer, self._next = None, math.inf
        now = self.loop.time()
        for waiting in [each for each in self._watched if each.deadline <= now]:
            self._watched.discard(waiting)
            waiting.end(TimeoutError())
        if self._watched:
            self._set_timer(min(waiting.deadline for waiting in self._watched))

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if self._all_lost is not None and not self._open:
            self._all_lost.set()

    def _close_oldest(self) -> None:
        oldest = min((idle[0] for idle in self._idle.values() if idle), key=lambda each: each.idle_since, default=None)
        if oldest is not None:
            self._idle[oldest.key].remove(oldest)
            oldest.abort()

    def _close_unused(self) -> None:
        """Close connections that have been idle for too long, and set the next timer."""
        self._sweep = None
        before = self.loop.time() - IDLE_SECONDS
        kept: dict[Key, list[Connection]] = {}
        for key, idle in self._idle.items():
            for connection in idle:
                if connection.idle_since <= before or not connection.is_open:
                    connection.abort()
                else:
                    kept.setdefault(key, []).append(connection)
        self._idle = kept
        if kept:
            self._sweep = self.loop.call_later(IDLE_SECONDS, self._close_unused)


def _explain(problem: OSError, url: Url) -> ToolError:
    """The error of a connection over which nothing was sent."""
    origin = url.origin
    if isinstance(problem, ssl.SSLCertVerificationError):
        reason = problem.verify_message or "it does not fit"
        message = f"{origin}: the TLS certificate is not trusted: {reason}"
        return ToolError(Kind.PERMANENT, message, details={"origin": origin, "reason": reason})
    if isinstance(problem, ssl.SSLError):
        return ToolError(Kind.PERMANENT, f"{origin}: the TLS handshake failed", details={"origin": origin})
    return unreachable(origin, "the connection was closed before TLS was established")
