"""The HTTP proxy for sandboxed jobs: accept clients, check every host, and connect on behalf of the client."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.infra.egress import http1
from toolcrib.infra.egress.dialler import unreachable
from toolcrib.lib.http_syntax import Url, parse_authority, parse_url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from toolcrib.infra.egress.http1 import PassOn, RequestHead, ResponseHead


SWITCHING, FINAL = 101, 200
MAX_INTERIM = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyLimits:
    """The limits of one proxy, for all its clients together."""

    connections: int = 64
    head_seconds: float = 10.0
    idle_seconds: float = 60.0
    sent_bytes: int = 100_000_000
    received_bytes: int = 1_000_000_000
    visits: int = 1_000


@dataclass(frozen=True, slots=True)
class Visit:
    """A requested destination and whether it was allowed; without a host the request was malformed."""

    host: str
    port: int
    allowed: bool
    reason: str = ""


@dataclass(kw_only=True, slots=True)
class ProxyLog:
    """The visits in order; `dropped` counts those beyond the limit."""

    limit: int
    visits: list[Visit] = field(default_factory=list)
    dropped: int = 0

    def add(self, url: Url | None, reason: str = "") -> None:
        """Record a visit; without a reason it was allowed."""
        if len(self.visits) == self.limit:
            self.dropped += 1
            return
        host, port = ("", 0) if url is None else (url.host, url.port)
        self.visits.append(Visit(host, port, allowed=not reason, reason=reason))


@asynccontextmanager
async def serve_proxy(
    listener: socket.socket, reach: Callable[[Url], Awaitable[socket.socket]], deadline: float, limits: ProxyLimits
) -> AsyncIterator[ProxyLog]:
    """Serve on a listening socket, which is closed at the end; `reach` checks a destination and connects to it."""
    proxy = _Proxy(reach, limits)
    async with serve_clients(listener, proxy.attend, deadline, limits.connections):
        yield proxy.log


class _Proxy:
    """Serves each client, and counts what all of them have used."""

    def __init__(self, reach: Callable[[Url], Awaitable[socket.socket]], limits: ProxyLimits) -> None:
        self.log = ProxyLog(limit=limits.visits)
        self._reach = reach
        self._limits = limits
        self._sent = Meter("sent", limits.sent_bytes)
        self._received = Meter("received", limits.received_bytes)
        self._loop = asyncio.get_running_loop()

    async def attend(self, client: End, *, is_full: bool) -> None:
        """Read one request, and forward it if its destination is allowed."""
        url = None
        try:
            request = await client.read_request(self._limits.head_seconds)
            url = destination(request)
            self._check_room(is_full=is_full)
            upstream = await self._reach(url)
        except ToolError as refusal:
            self.log.add(url, refusal.message)
            await client.answer(refusal)
            return
        self.log.add(url)
        try:
            async with open_end(upstream) as server, asyncio.timeout(self._limits.idle_seconds) as patience:
                await self._pass(request, url, client, server, patience)
        except* ToolError as problems:
            await self._give_up(client, url, problems.exceptions[0])

    def _check_room(self, *, is_full: bool) -> None:
        if is_full:
            raise too_many(self._limits)
        self._sent.check()
        self._received.check()

    async def _pass(self, request: RequestHead, url: Url, client: End, server: End, patience: asyncio.Timeout) -> None:
        """Forward data in both directions; each piece restarts the idle timeout."""

        def passing(end: End, meter: Meter) -> PassOn:
            async def pass_on(data: bytes) -> None:
                meter.add(len(data))
                if not patience.expired():
                    patience.reschedule(self._loop.time() + self._limits.idle_seconds)
                await end.write(data)

            return pass_on

        send, receive = passing(server, self._sent), passing(client, self._received)
        if request.method == http1.CONNECT:
            await _tunnel(client, server, send, receive)
            return
        await _exchange(request, url, client, server, send, receive)
        await client.linger()

    async def _give_up(self, client: End, url: Url, problem: BaseException) -> None:
        """Record the failure, and answer a client that has not received anything yet."""
        if not isinstance(problem, ToolError):
            raise problem
        self.log.add(url, problem.message)
        if not client.has_answer:
            await client.answer(problem)


def too_many(limits: ProxyLimits) -> ToolError:
    """The error for a client beyond the connection limit."""
    message = f"{limits.connections} connections are open already; close one, or try again later"
    return ToolError(Kind.OVERLOADED, message)


def destination(request: RequestHead) -> Url:
    """The destination of a request."""
    if request.method == http1.CONNECT:
        host, port = parse_authority(request.target)
        if port is None:
            raise http1.malformed("CONNECT names no port; write CONNECT host:port")
        return Url(scheme="https", host=host, port=port, target="/")
    url = parse_url(request.target)
    if url.scheme != "http":
        raise http1.malformed("only http goes without a tunnel; write CONNECT host:port for https")
    return url


async def _tunnel(client: End, server: End, send: PassOn, receive: PassOn) -> None:
    """Forward bytes in both directions until both sides have closed."""
    await client.write(ESTABLISHED)
    async with asyncio.TaskGroup() as group:
        group.create_task(_relay(client, server, send))
        group.create_task(_relay(server, client, receive))


async def _relay(source: End, sink: End, pass_on: PassOn) -> None:
    await http1.copy_body(source.reader, None, pass_on)
    sink.writer.write_eof()


async def _exchange(request: RequestHead, url: Url, client: End, server: End, send: PassOn, receive: PassOn) -> None:
    """Forward one request and its response; the client follows redirects, which are checked then."""
    await send(request.encode(url.authority, url.target))
    if request.waits:
        await client.write(GO_ON)
        client.has_answer = False
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(_send_body(request, client, send))
        response = await _read_response(server, url)
        await receive(response.encode())
        if request.method != "HEAD" and response.status not in http1.WITHOUT_BODY:
            await http1.copy_body(server.reader, response.framing, receive)
        sending.cancel()


async def _send_body(request: RequestHead, client: End, send: PassOn) -> None:
    # A server may stop reading before it answers; its answer is still forwarded.
    with suppress(ConnectionError):
        await http1.copy_body(client.reader, request.framing or http1.Framing(0), send)


async def _read_response(server: End, url: Url) -> ResponseHead:
    """The head of the final response."""
    try:
        for _ in range(MAX_INTERIM):
            response = http1.parse_response(await http1.read_head(server.reader))
            if response.status >= FINAL:
                return response
            if response.status == SWITCHING:
                break
    except asyncio.IncompleteReadError:
        raise unreachable(url.authority, "the connection was closed before the response was complete") from None
    except ToolError as problem:
        raise unreachable(url.authority, f"the response is not valid HTTP: {problem.message}") from None
    raise unreachable(url.authority, "the response has too many interim responses")


# The accept loop of the proxy, with limits on connections and bytes, and the two ends of a connection.

logger = logging.getLogger("toolcrib.egress")

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUSES = {
    Kind.VALIDATION: 400,
    Kind.HOST_NOT_ALLOWED: 403,
    Kind.LIMIT_EXCEEDED: 403,
    Kind.TIMEOUT: 408,
    Kind.OVERLOADED: 503,
}
UNREACHABLE = 502
MAX_REASON = 200

_PAUSE_SECONDS = 0.1
_LINGER_SECONDS = 1.0


class Attend(Protocol):
    """Handler of one client; `is_full` means that the connection limit is reached."""

    async def __call__(self, client: End, *, is_full: bool) -> None:
        """Serve it until it is done."""


@asynccontextmanager
async def serve_clients(
    listener: socket.socket, attend: Attend, deadline: float, connections: int
) -> AsyncIterator[None]:
    """Accept clients on a listening socket until the deadline; closes the socket and every connection at the end."""
    accepting = _AcceptLoop(listener, attend, connections)
    accepting.start(deadline)
    try:
        yield
    finally:
        accepting.end()
        await _see_ended(accepting.tasks)


class _AcceptLoop:
    """The listener, and the task of each client."""

    def __init__(self, listener: socket.socket, attend: Attend, connections: int) -> None:
        self.tasks: dict[asyncio.Task[None], socket.socket] = {}
        self._listener = listener
        self._attend = attend
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []

    def start(self, deadline: float) -> None:
        """Accept clients until the deadline."""
        self._listener.settimeout(0)
        self._timers = [self._loop.call_later(max(0.0, deadline - time.monotonic()), self.end)]
        self._loop.add_reader(self._listener, self._accept)

    def end(self) -> None:
        """Stop accepting, and cancel every connection."""
        if self._listener.fileno() < 0:
            return
        for timer in self._timers:
            timer.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for task in self.tasks:
            task.cancel()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self._pause()
            return
        connection.settimeout(0)
        # Clients beyond the limit get an answer, unless there are too many of them as well.
        if len(self.tasks) >= 2 * self._connections:
            connection.close()
            return
        is_full = len(self.tasks) >= self._connections
        task = self._loop.create_task(self._serve(connection, is_full=is_full))
        self.tasks[task] = connection
        # Not in the task: one that is cancelled before its first step never runs.
        task.add_done_callback(lambda task: self.tasks.pop(task).close())

    def _pause(self) -> None:
        """Pause accepting: there was no descriptor for this client, and the listener stays readable."""
        self._loop.remove_reader(self._listener)
        resume = self._loop.call_later(_PAUSE_SECONDS, self._loop.add_reader, self._listener, self._accept)
        self._timers = [self._timers[0], resume]

    async def _serve(self, connection: socket.socket, *, is_full: bool) -> None:
        try:
            async with open_end(connection) as client:
                await self._attend(client, is_full=is_full)
        except* (OSError, EOFError):
            pass  # a client that disconnected needs no answer
        except* Exception:
            logger.exception("a connection of the proxy failed unexpectedly")


class Meter:
    """Count bytes up to a limit."""

    def __init__(self, what: str, limit: int) -> None:
        self._what = what
        self._limit = limit
        self._used = 0

    def add(self, size: int) -> None:
        """Count these bytes, and raise if the limit is exceeded."""
        self._used += size
        self.check()

    def check(self) -> None:
        """Raise if the limit is exceeded."""
        if self._used > self._limit:
            message = f"more than {self._limit} bytes were {self._what} by this job, and that is the limit"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": self._limit})


class End:
    """One side of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.has_answer = False
        # The plain transport below TLS; without a reference it would be reported as unclosed.
        self._plain: asyncio.StreamWriter | None = None
        # `drain` waits for all of it, so that nothing is lost when the connection is then closed.
        writer.transport.set_write_buffer_limits(0)

    async def read_request(self, seconds: float) -> RequestHead:
        """Read the head of the next request within this many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return http1.parse_request(await http1.read_head(self.reader))
        except TimeoutError:
            raise ToolError(Kind.TIMEOUT, f"no complete request within {seconds:g} s") from None

    async def write(self, data: bytes) -> None:
        """Write and wait until it is sent."""
        self.has_answer = True
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, error: ToolError) -> None:
        """Answer with an error, also in the reason phrase: most clients show nothing else for CONNECT."""
        body = f"{error.message}\n".encode()
        reason = "".join(letter for letter in error.message[:MAX_REASON] if " " <= letter <= "~")
        head = (
            f"HTTP/1.1 {STATUSES.get(error.kind, UNREACHABLE)} {reason}\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        await self.write(head.encode() + body)
        await self.linger()

    async def linger(self) -> None:
        """Let the other side read to the end: closing while it still sends would drop the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                if not self.writer.can_write_eof():  # TLS has its own end of data
                    self.writer.close()
                    await self.writer.wait_closed()
                    return
                self.writer.write_eof()
                while await self.reader.read(http1.READ_BYTES):
                    pass

    async def secure(self, context: ssl.SSLContext, greeting: bytes, seconds: float) -> None:
        """Send the greeting, then switch to TLS as a server."""
        loop, plain = asyncio.get_running_loop(), self.writer
        # From here on all data is TLS.
        cast("asyncio.Transport", plain.transport).pause_reading()
        self._plain = plain
        self.reader.feed_eof()
        if await self.reader.read():
            raise http1.malformed("it goes on before the tunnel is there")
        await self.write(greeting)
        reader = asyncio.StreamReader(limit=http1.MAX_HEAD_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport = await loop.start_tls(
            plain.transport,
            protocol,
            context,
            server_side=True,
            ssl_handshake_timeout=seconds,
            ssl_shutdown_timeout=_LINGER_SECONDS,
        )
        if transport is None:
            raise ConnectionResetError
        protocol.connection_made(transport)
        self.reader, self.writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        # At 0, pending and finished writes would look the same.
        transport.set_write_buffer_limits(high=1, low=0)

    async def close(self) -> None:
        """Close it, if it is still open."""
        self.writer.transport.abort()
        # After a failed handshake, the plain side is not notified.
        if self.writer is not self._plain:
            with suppress(OSError):
                await self.writer.wait_closed()


@asynccontextmanager
async def open_end(connection: socket.socket) -> AsyncIterator[End]:
    """Streams over a connected socket, which is closed at the end in any case."""
    try:
        reader, writer = await asyncio.open_connection(sock=connection, limit=http1.MAX_HEAD_BYTES)
    except BaseException:
        connection.close()
        raise
    end = End(reader, writer)
    try:
        yield end
    finally:
        await end.close()


async def _see_ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """Wait until every task has finished, even if cancelled meanwhile."""
    cancelled = False
    while tasks:
        try:
            await asyncio.wait(list(tasks))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
