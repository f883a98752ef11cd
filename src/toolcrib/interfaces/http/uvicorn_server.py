"""The server, connections and responses of uvicorn, with limits and a shutdown of our own.

This is the only module that uses internals of uvicorn; a test checks them against the installed version. uvicorn parses and
answers; this module adds time limits, size limits and the refusal of malformed requests. The server calls `look` of each
connection a few times per second, because a timer per request would cost more than its parsing.
"""

from __future__ import annotations

import asyncio
import math
import select
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from toolcrib.model.tool import METHODS
from toolcrib.toolkit.http import BODILESS
from toolcrib.toolkit.http.problems import raw_refusal
from toolcrib.toolkit.loop_watch import watch_loop

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp
    from uvicorn._types import ASGISendEvent, ASGIVersions, HTTPResponseStartEvent, HTTPScope

    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.interfaces.http.settings import ServerSettings

END_OF_CHUNKS = b"0\r\n\r\n"
SERVED_METHODS = frozenset(method.encode() for method in METHODS)
VERSIONS = frozenset({"1.0", "1.1"})
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
ASGI: ASGIVersions = {"version": "3.0", "spec_version": "2.3"}
MAX_URL = 8_192
MAX_HEADERS = 128
# The size of a request without its body; also the framing between two chunks of a body.
MAX_HEAD = 65_536
# Pipelined requests per connection.
MAX_AHEAD = 16
# After an early response the rest of the body is discarded for so long, so that the client can read the response.
LINGER_SECONDS = 2.0
# And at most so much of it. Then the rest is left unread for so long before the connection is aborted: an abort discards
# what the client has not read yet, and a client whose writes block comes to reading.
LINGER_BYTES = 1_048_576
UNREAD_SECONDS = 1.0
# A client that reads so much of a response within its time for reading gets that time again.
READ_BYTES = 65_536
# Linux reports that the client has closed its side, other systems only that both sides are closed.
LEFT = getattr(select, "POLLRDHUP", 0)
BACKLOG = 4_096
SIGNALS = (signal.SIGTERM, signal.SIGINT)
# How often deadlines of connections and requests are checked.
LOOK_SECONDS = 0.25
# How long cancelled calls may take to stop.
STOP_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeouts:
    """Time limits of a connection in seconds: for the head of a request, between requests, and for the client to read."""

    head: float
    idle: float
    read: float

    @classmethod
    def of(cls, settings: ServerSettings) -> Timeouts:
        """The time limits that the operator has set."""
        return cls(head=settings.header_seconds, idle=settings.keep_alive_seconds, read=settings.body_seconds)


class _RefusedError(Exception):
    """A malformed request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class GuardedProtocol(HttpToolsProtocol):
    """A connection of uvicorn with a timeout for every wait and a limit for every buffer.

    `_due` is the deadline for the client to send, `_read_due` the deadline for it to read, of `_unread` bytes.
    """

    def __init__(self, service: Service, timeouts: Timeouts, **given: Any) -> None:
        super().__init__(**given)
        self._service = service
        self._timeouts = timeouts
        self._due = math.inf
        self._read_due = math.inf
        self._unread = 0
        self._is_in_head = False
        self._is_over = False
        self._beside_body = 0
        self._read_away = 0
        self._refused: _RefusedError | None = None
        self._address: str | None = None
        # The request that is being answered while pipelined ones wait; `cycle` is the last that arrived.
        self._answered: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Admit the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._service.connections.enter(address):
            # What this client sends is not read.
            self._is_over = True
            transport.write(raw_refusal(429, "too many open connections; close some, or retry in a second"))
            transport.close()
            return
        self._address = address
        self._due = self.loop.time() + self._timeouts.head

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection."""
        if self._address is not None:
            self._service.connections.leave(self._address)
            self._address = None
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
            self._answered = None
        super().connection_lost(exc)
        if self.pipeline or (self.cycle is not None and self.cycle.response_complete):  # type: ignore[redundant-expr]  # it is None until the first request
            # Break the reference cycle: the garbage collector of an idle server does not run.
            self.pipeline.clear()
            self.cycle = None  # type: ignore[assignment]  # as before the first request

    def look(self, now: float) -> None:
        """Close the connection if its deadline has passed, or if its client has left while nothing is read from it."""
        is_unread = self._is_unread(now)
        if now >= self._read_due or (self.pipeline and self._has_left()):
            self.transport.abort()
        elif is_unread or now < self._due:
            return
        elif self._is_in_head and not self._is_over:
            self._refuse(408, f"the headers did not arrive within {self._timeouts.head:g} s; send them at once")
        else:
            self.transport.abort()

    def _is_unread(self, now: float) -> bool:
        """Whether the client has to read a response before anything goes on; its time begins anew as long as it reads."""
        unread = self.transport.get_write_buffer_size()
        # While a response is being written, a buffer that is not full says nothing about the client.
        if not unread or not (self.flow.write_paused or (self.cycle is not None and self.cycle.response_complete)):  # type: ignore[redundant-expr]  # it is None until the first request
            self._read_due = math.inf
            return False
        if self._read_due == math.inf or not self._unread - READ_BYTES < unread <= self._unread:
            self._unread, self._read_due = unread, now + self._timeouts.read
        return True

    def _has_left(self) -> bool:
        """Whether the client has closed a connection that is not read, where the event loop does not notice it."""
        if not self.flow.read_paused or self.transport.is_closing():
            return False
        state = select.poll()
        state.register(self.transport.get_extra_info("socket").fileno(), LEFT)
        return bool(state.poll(0))

    def data_received(self, data: bytes) -> None:
        """Parse the data; a malformed request is refused and closes the connection."""
        if self._is_over:
            return
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:  # type: ignore[redundant-expr]  # it is None until the first request
            self._read_away += len(data)
            if self._read_away > LINGER_BYTES:
                self._is_over = True
                self.flow.pause_reading()
                self._due = min(self._due, self.loop.time() + UNREAD_SECONDS)
                return
            if not self.cycle.keep_alive:
                # The rest of the body; what follows it is not answered any more.
                return
        self._beside_body += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Answer it as a plain request; what follows would be another protocol.
            self._end_after_answers()
        except httptools.HttpParserError as problem:
            refused = self._refused or _RefusedError(400, f"malformed HTTP request: {problem}")
            self._refuse(refused.status, refused.message)
        else:
            if self._beside_body > MAX_HEAD:
                self._refuse(431, f"more than {MAX_HEAD} bytes outside of a body")

    def on_message_begin(self) -> None:
        """A request begins; the time for the first request runs since the connection was made."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._is_in_head = True
        self._read_away = 0
        if self.cycle is not None:
            self._due = self.loop.time() + self._timeouts.head

    def on_url(self, url: bytes) -> None:
        """A part of the URL arrives."""
        self.url += url
        if len(self.url) > MAX_URL:
            self._raise(414, f"the path and its query are longer than {MAX_URL} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header arrives; a trailer is dropped, because it was not checked with the head."""
        if not self._is_in_head:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete: check it, and start the application."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self._judge(method, version)
        self._is_in_head = False
        self._due = math.inf
        before, keep_alive = self.cycle, version == "1.1" and self.parser.should_keep_alive()
        self.cycle = cycle = Cycle(self, self._describe(method, version), keep_alive=keep_alive)
        if before is None or before.response_complete:  # type: ignore[redundant-expr]  # it is None before the first
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            if not self.pipeline:
                self._answered = before
            self.pipeline.appendleft((cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """A part of the body arrives."""
        self._beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete; if it was answered already, wait for the next one."""
        self._beside_body = 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self.cycle.more_body = False
            self._due = self.loop.time() + self._timeouts.idle

    def on_response_complete(self) -> None:
        """Set the deadline for the next request, or for the rest of this one."""
        self._begin_next()
        if self._is_in_head or not self.cycle.response_complete:
            return
        lingers = self.cycle.more_body or self._is_over
        self._due = self.loop.time() + (LINGER_SECONDS if lingers else self._timeouts.idle)

    def _begin_next(self) -> None:
        """Start the next pipelined request, if there is one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._answered, app = self.pipeline.pop()
            self._start_asgi_task(self._answered, app)

    def _describe(self, method: bytes, version: str) -> HTTPScope:
        """The ASGI scope of the request."""
        raw_path, _, query = self.url.partition(b"?")
        path = raw_path.decode("ascii")
        return {
            "type": "http",
            "asgi": ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": "http",
            "method": method.decode("ascii"),
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
        }

    def _judge(self, method: bytes, version: str) -> None:
        """Refuse a head that is invalid or ambiguous."""
        if version not in VERSIONS:
            self._raise(400, "use HTTP/1.1")
        if method not in SERVED_METHODS:
            self._raise(400, "unknown method")
        if not self.url.startswith(b"/") or b"#" in self.url:
            self._raise(400, "write only the path, beginning with a slash, and the query")
        if len(self.pipeline) >= MAX_AHEAD:
            self._raise(400, f"more than {MAX_AHEAD} pipelined requests; wait for responses")
        framing, size = [], 0
        for name, value in self.headers:
            size += len(name) + len(value)
            if name in FRAMING:
                framing.append((name, value))
        if size > MAX_HEAD or len(self.headers) > MAX_HEADERS:
            self._raise(431, f"more than {MAX_HEADERS} headers, or {MAX_HEAD} bytes of them")
        if framing:
            self._judge_framing(framing, version)

    def _judge_framing(self, framing: list[tuple[bytes, bytes]], version: str) -> None:
        if len(framing) > 1:
            self._raise(400, "send either one Content-Length or one Transfer-Encoding")
        [(name, value)] = framing
        if name == b"transfer-encoding" and (version != "1.1" or value.lower() != b"chunked"):
            self._raise(400, "the only supported Transfer-Encoding is chunked, in HTTP/1.1")
        if self.parser.should_upgrade():
            self._raise(400, "a request with a body cannot upgrade the protocol")

    def _raise(self, status: int, message: str) -> NoReturn:
        # The parser replaces our exception with its own.
        self._refused = _RefusedError(status, message)
        raise self._refused

    def _refuse(self, status: int, message: str) -> None:
        """Refuse a malformed request, without cutting off a response in progress, and read nothing more."""
        self._service.metrics.note_malformed(status)
        cycle = self.cycle
        if cycle is None or cycle.response_complete:  # type: ignore[redundant-expr]  # it is None until the first request
            self._close_with(raw_refusal(status, message))
        elif not cycle.more_body:
            self._end_after_answers()
        elif self.pipeline:
            # It has not begun; the requests before it are still answered.
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else self._answered  # type: ignore[assignment]  # one is being answered
            self._end_after_answers()
        elif cycle.response_started:
            self.transport.abort()
        else:
            cycle.disconnected = True
            # Nothing can be sent after the refusal.
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
            self._close_with(raw_refusal(status, message))

    def _end_after_answers(self) -> None:
        self._is_over = True
        self._is_in_head = False
        self._due = math.inf
        self.cycle.keep_alive = False
        self.cycle.client_sends = True  # type: ignore[attr-defined]  # all of them are ours
        # What comes is dropped, but that the client leaves must be noticed.
        self.flow.resume_reading()

    def _close_with(self, response: bytes) -> None:
        """Send a last response, and leave the client some time to read it."""
        self._is_over = True
        self._due = self.loop.time() + LINGER_SECONDS
        self.transport.write(response)
        self.transport.write_eof()


class Cycle(RequestResponseCycle):
    """A response of uvicorn: head and body go out in one write, and headers are checked once instead of one by one."""

    def __init__(self, protocol: HttpToolsProtocol, scope: HTTPScope, *, keep_alive: bool) -> None:
        super().__init__(
            scope=scope,
            transport=protocol.transport,
            flow=protocol.flow,
            logger=protocol.logger,
            access_logger=protocol.access_logger,
            access_log=False,
            default_headers=protocol.server_state.default_headers,
            message_event=asyncio.Event(),
            # A client of HTTP/1.0 does not know interim responses.
            expect_100_continue=protocol.expect_100_continue and scope["http_version"] == "1.1",
            keep_alive=keep_alive,
            on_response=protocol.on_response_complete,
        )
        # Whether the client sends on although the connection ends with this response.
        self.client_sends = False
        self._start: HTTPResponseStartEvent | None = None
        self._is_bodiless = False

    async def send(self, message: ASGISendEvent) -> None:
        """Take a message of the response; as ASGI demands, the head waits for the first part of the body."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._start = message
        elif message["type"] == "http.response.body" and self._can_take_body():
            self._write(message.get("body", b""), is_last=not message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} is unexpected here")

    def _can_take_body(self) -> bool:
        return (self._start is not None or self.response_started) and not self.response_complete

    def _write(self, body: bytes, *, is_last: bool) -> None:
        start, self._start = self._start, None
        head = b"" if start is None else self._head(start)
        data = head + self._frame(body, is_last=is_last)
        self.response_started = True
        # An interim response would now be a part of this one.
        self.waiting_for_100_continue = False
        if data:
            self.transport.write(data)
        if not is_last:
            return
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self._close()
        self.on_response()

    def _close(self) -> None:
        """Close the connection; while the client still sends, only our side, because a reset could cost it the response."""
        if self.more_body or self.client_sends:
            self.transport.write_eof()
        else:
            self.transport.close()

    def _frame(self, body: bytes, *, is_last: bool) -> bytes:
        """A part of the body as it is sent."""
        if self._is_bodiless:
            return b""
        if self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return framed + END_OF_CHUNKS if is_last else framed
        if self.chunked_encoding is False:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("the body does not match its Content-Length")
        return body

    def _head(self, start: HTTPResponseStartEvent) -> bytes:
        """The status line and the headers; they decide how the body is framed."""
        status = start["status"]
        self._is_bodiless = status in BODILESS or self.scope["method"] == "HEAD"
        lines: list[bytes] = []
        for header in (*self.default_headers, *start.get("headers", ())):
            name, value = header
            if name == b"connection":
                self.keep_alive = self.keep_alive and value != b"close"
                continue
            if name == b"content-length":
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            lines.append(b": ".join(header))
        self._end_head(lines)
        head = STATUS_LINE[status] + b"\r\n".join(lines)
        ends = len(lines) + 1
        # More line ends than lines: a header contains a line break (response splitting).
        if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
            raise RuntimeError("a header contains a line break")
        return head

    def _end_head(self, lines: list[bytes]) -> None:
        """Add Transfer-Encoding if the application gave no length, and Connection: close if it applies."""
        if self.chunked_encoding is None and not self._is_bodiless:
            if self.scope["http_version"] == "1.0":
                self.keep_alive = False
            else:
                self.chunked_encoding = True
                lines.append(b"transfer-encoding: chunked")
        if not self.keep_alive:
            lines.append(b"connection: close")
        lines.append(b"\r\n")


class Server(uvicorn.Server):
    """uvicorn's server with our shutdown: the first signal drains, the second cancels."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, service: Service, say: Callable[[str], None]) -> None:
        super().__init__(_configure(app, settings, service))
        self._service = service
        self._say = say
        self._drain_seconds = settings.drain_seconds
        self._told_to_end = asyncio.Event()
        self._told_to_hurry = asyncio.Event()

    async def run(self, sockets: list[socket.socket], ready: Callable[[], None]) -> None:  # type: ignore[override]  # ours is async
        """Serve on the sockets until a signal."""
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        with self._signals(), watch_loop():
            await self.startup(sockets)
            try:
                ready()
                await self.main_loop()
            finally:
                await self.shutdown(sockets)

    async def main_loop(self) -> None:
        """Check deadlines and refresh the Date header until shutdown."""
        while not self._told_to_end.is_set():
            await self.on_tick(0)
            await self._check_deadlines(self._told_to_end)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, drain requests in progress, then cancel them."""
        self._service.ending.set()
        for server in self.servers:
            server.close()
        for one in sockets or ():
            one.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            self._say(
                f"shutting down; requests in progress: {len(self.server_state.tasks)}; a second signal cancels them"
            )
        await self._drain(self._drain_seconds, self._told_to_hurry)
        for task in tuple(self.server_state.tasks):
            task.cancel()
        await self._drain(STOP_SECONDS, asyncio.Event())
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await self.lifespan.shutdown()

    async def _drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until all requests are answered and connections closed, or until the time is over."""
        state, end = self.server_state, time.monotonic() + seconds
        while (state.tasks or state.connections) and not hurry.is_set() and time.monotonic() < end:
            await self._check_deadlines(hurry, seconds=0.02)

    async def _check_deadlines(self, until: asyncio.Event, seconds: float = LOOK_SECONDS) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), seconds)
        now = asyncio.get_running_loop().time()
        self._service.look(now)
        for connection in tuple(self.server_state.connections):
            connection.look(now)  # type: ignore[union-attr]  # all of them are ours

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle the signals that end a server; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = {one: signal.getsignal(one) for one in SIGNALS}
        for one in SIGNALS:
            loop.add_signal_handler(one, self._on_signal)
        try:
            yield
        finally:
            for one, handler in before.items():
                loop.remove_signal_handler(one)
                signal.signal(one, handler)

    def _on_signal(self) -> None:
        if self._told_to_end.is_set():
            self._told_to_hurry.set()
        self._told_to_end.set()


def _configure(app: ASGIApp, settings: ServerSettings, service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(GuardedProtocol, service, Timeouts.of(settings)),  # type: ignore[arg-type]  # called, never subclassed
        ws="none",
        lifespan="auto",
        interface="asgi3",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
