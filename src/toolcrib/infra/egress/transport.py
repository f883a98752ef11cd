"""Send requests over pooled connections and read their responses, bounded.

A body is counted after decompression, one layer of it, and reading stops at the limit.
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.infra.egress import REDIRECTS, Response
from toolcrib.infra.egress.http1 import MalformedError, malformed
from toolcrib.infra.egress.response_parser import MAX_AROUND, ConnectionLostError, FloodError, ResponseParser
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import SAFE_METHODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from toolcrib.infra.egress import Request
    from toolcrib.infra.egress.connection_pool import Connection, ConnectionPool
    from toolcrib.infra.egress.http1 import Framing, ResponseHead

ACCEPTED_ENCODINGS = "gzip, deflate"
LONGEST_NAMED = 40
USER_AGENT = "toolcrib"
# The unread bytes of a streamed response at which its server is slowed down.
MAX_WAITING = 65_536

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB_METHOD = 8


async def exchange(pool: ConnectionPool, request: Request, max_bytes: int, deadline: float) -> Response:
    """Send one request and read its response; a redirect is returned without its body. Raises TimeoutError at the deadline.

    It is never sent twice: retries are up to the caller, also if a pooled connection turns out to be closed.
    """
    message = encode_request(request, ACCEPTED_ENCODINGS)
    connection = pool.take_idle(request.url) or await pool.take(request.url, deadline)
    receiver = WholeResponse(pool, request, max_bytes, deadline)
    try:
        pool.watch(receiver)
        connection.send(message, ResponseParser(request.method, receiver))
        return await receiver.response
    except (MalformedError, FloodError, ConnectionLostError) as problem:
        raise _explain(problem, ResponseLimit(request, max_bytes)) from None
    finally:
        pool.unwatch(receiver)
        # After a cancellation or timeout its response is still to come, so that it is closed there.
        pool.give_back(connection)


@asynccontextmanager
async def exchange_streamed(
    pool: ConnectionPool, request: Request, max_piece: int
) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
    """Send one request; returns the head of the response, and its body in pieces as they arrive."""
    reading = ResponseLimit(request, max_piece)
    message = encode_request(request, "identity")
    connection = pool.take_idle(request.url) or await pool.take(request.url, None)
    try:
        receiver = StreamedResponse(connection)
        connection.send(message, ResponseParser(request.method, receiver))
        head = await receiver.read_head()
        headers = join_headers(head)
        decoder = _decoder(reading, headers.get("content-encoding", ""))

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await receiver.read():
                yield decoder.feed(piece, max_piece)

        yield Response(url=request.url, status=head.status, headers=headers, body=b""), pieces()
    except (MalformedError, FloodError, ConnectionLostError) as problem:
        raise _explain(problem, reading) from None
    finally:
        pool.give_back(connection)


def encode_request(request: Request, encodings: str) -> bytes:
    """The bytes of the request; raises ToolError if they would not be exactly one request."""
    url, body, given = request.url, request.body, request.headers
    names = {name.lower() for name in given}
    lines = [f"{request.method} {url.target} HTTP/1.1", f"Host: {url.authority}"]
    if "user-agent" not in names:
        lines.append(f"User-Agent: {USER_AGENT}")
    lines.append(f"Accept-Encoding: {encodings}")
    if "accept" not in names:
        lines.append("Accept: */*")
    lines += [f"{name}: {value}" for name, value in given.items()]
    if body is not None or request.method not in SAFE_METHODS:
        lines.append(f"Content-Length: {len(body or b'')}")
    head = "\r\n".join(lines)
    # URL and headers were validated before; this is the last place where an injected line can be detected.
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or lines[0].count(" ") != 2:  # noqa: PLR2004 - method, target and version
        raise ToolError(Kind.VALIDATION, f"{url.origin}: the request has a line break or a space where none may be")
    return f"{head}\r\n\r\n".encode() + (body or b"")


class WholeResponse:
    """Receives a response as a whole; `response` is done when it is complete or has failed."""

    __slots__ = ("_body", "_headers", "_max_bytes", "_request", "_status", "deadline", "response", "take")

    def __init__(self, pool: ConnectionPool, request: Request, max_bytes: int, deadline: float) -> None:
        self.response: asyncio.Future[Response] = pool.loop.create_future()
        self.deadline = deadline
        self.take: Callable[[bytes], object] = _refuse
        self._request = request
        self._max_bytes = max_bytes
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: BoundedBody | list[bytes] = []

    def begin(self, head: ResponseHead, framing: Framing | None) -> bool:
        """Choose how the body is read; the body of a redirect is not read."""
        self._status = head.status
        self._headers = headers = join_headers(head)
        if head.status in REDIRECTS and "location" in headers:
            return False
        length = None if framing is None else framing.length
        encoding = headers.get("content-encoding", "") if length != 0 else ""
        if length is None or encoding:
            self._body = body = BoundedBody(ResponseLimit(self._request, self._max_bytes), encoding)
            self.take = body.feed
            return True
        if length > self._max_bytes:
            raise ResponseLimit(self._request, self._max_bytes).too_large(str(length))
        # The parser passes on no more than the declared length, so nothing needs to be counted.
        pieces: list[bytes] = []
        self._body, self.take = pieces, pieces.append
        return True

    def end(self, failure: Exception | None) -> None:
        """Set the response, or the error."""
        if self.response.done():
            return
        if failure is None:
            body = self._body
            try:
                whole = b"".join(body) if isinstance(body, list) else body.finish()
            except ToolError as problem:
                failure = problem
            else:
                self.response.set_result(
                    Response(url=self._request.url, status=self._status, headers=self._headers, body=whole)
                )
                return
        self.response.set_exception(failure)


class StreamedResponse:
    """Receives a response piece by piece, and slows its server down while nothing is read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._head: ResponseHead | None = None
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._is_ended = False
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    def begin(self, head: ResponseHead, framing: Framing | None) -> bool:
        """Receive the head."""
        self._head = head
        self._changed.set()
        return True

    def take(self, piece: bytes) -> None:
        """Receive a piece of the body."""
        self._pieces.append(piece)
        self._waiting += len(piece)
        self._changed.set()
        if self._waiting > MAX_WAITING:
            self._connection.pause()

    def end(self, failure: Exception | None) -> None:
        """Called at the end of the response, or with the reason why it failed."""
        self._failure = failure
        self._is_ended = True
        self._changed.set()

    async def read_head(self) -> ResponseHead:
        """Wait for the head of the final response."""
        while self._head is None:
            self._raise_failure()
            await self._wait()
        return self._head

    async def read(self) -> bytes:
        """Wait for more of the body; empty at its end."""
        while not self._pieces:
            self._raise_failure()
            if self._is_ended:
                return b""
            await self._wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = 0
        self._connection.resume()
        return data

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


class ResponseLimit(NamedTuple):
    """The request of a response, for messages, and its size limit."""

    request: Request
    max_bytes: int

    @property
    def max_encoded(self) -> int:
        """The limit before decompression, because compressed data may expand to nothing.

        Deflate enlarges incompressible data by far less than one percent and a kilobyte.
        """
        return self.max_bytes + self.max_bytes // 100 + 1_000

    def failure(self, kind: Kind, reason: str, **details: object) -> ToolError:
        """The error for an unusable response."""
        origin = self.request.url.origin
        return ToolError(
            kind,
            f"{origin}: {reason}",
            retryable=kind is Kind.TRANSIENT,
            partial_side_effects=self.request.has_effects,
            details={"origin": origin, **details},
        )

    def too_large(self, size: str) -> ToolError:
        """The error for a response beyond the limit."""
        reason = f"the response has {size} bytes, and the limit is {self.max_bytes}"
        return self.failure(Kind.LIMIT_EXCEEDED, reason, limit=self.max_bytes)


class BoundedBody:
    """A body that is compressed or of unknown length: decompressed and counted while it arrives."""

    __slots__ = ("_body", "_decoder", "_encoded", "_reading")

    def __init__(self, reading: ResponseLimit, encoding: str) -> None:
        self._reading = reading
        self._decoder = _decoder(reading, encoding)
        self._encoded = 0
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        """Add a piece, or raise as soon as the body is too large."""
        reading, body = self._reading, self._body
        self._encoded += len(piece)
        body += self._decoder.feed(piece, reading.max_bytes + 1 - len(body))
        if len(body) > reading.max_bytes:
            raise reading.too_large(f"more than {reading.max_bytes}")
        if self._encoded > reading.max_encoded:
            raise reading.too_large(f"more than {reading.max_encoded} compressed")

    def finish(self) -> bytes:
        """The whole body; raises if its encoding is incomplete."""
        self._decoder.finish()
        return bytes(self._body)


def _refuse(_: bytes) -> None:
    raise malformed("its body comes before its head")


def join_headers(head: ResponseHead) -> dict[str, str]:
    """The headers by name, repeated ones joined; what is not ASCII is read as UTF-8."""
    joined: dict[str, str] = {}
    for name, field in head.headers:
        value = field if field.isascii() else field.encode("latin-1").decode("utf-8", "surrogateescape")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def _explain(problem: MalformedError | FloodError | ConnectionLostError, reading: ResponseLimit) -> ToolError:
    """The error of a request that was sent and got no valid response."""
    if isinstance(problem, FloodError):
        return reading.failure(Kind.LIMIT_EXCEEDED, str(problem), limit=MAX_AROUND)
    if isinstance(problem, MalformedError):
        reason = problem.reason.removeprefix("message refused: ")
        return reading.failure(Kind.PERMANENT, f"the response is not valid HTTP: {reason}")
    if problem.in_body:
        return reading.failure(Kind.TRANSIENT, "the response is incomplete or shorter than declared")
    return reading.failure(Kind.TRANSIENT, "the connection was closed before the response was complete")


class _Identity:
    """An uncompressed body."""

    def feed(self, data: bytes, limit: int) -> bytes:
        return data[:limit]

    def finish(self) -> None:
        """A no-op: there is no end to verify."""


class _Inflater:
    """One layer of gzip or deflate, decompressed at most up to the remaining limit."""

    def __init__(self, reading: ResponseLimit, encoding: str) -> None:
        self._reading = reading
        self._encoding = encoding
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes, limit: int) -> bytes:
        if not data:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(self._window(data[0]))
        try:
            decoded = self._stream.decompress(data, limit)
        except zlib.error:
            raise self._reading.failure(Kind.PERMANENT, f"the response is not a valid {self._encoding}") from None
        if self._stream.unused_data:
            raise self._reading.failure(Kind.PERMANENT, f"the response goes on after the end of its {self._encoding}")
        return decoded

    def finish(self) -> None:
        if self._stream is not None and not self._stream.eof:
            raise self._reading.failure(Kind.TRANSIENT, f"the response ends before its {self._encoding} does")

    def _window(self, first: int) -> int:
        if self._encoding == "gzip":
            return _GZIP
        # Some servers send deflate without the zlib header that the standard requires.
        return zlib.MAX_WBITS if first & 0x0F == _ZLIB_METHOD else -zlib.MAX_WBITS


def _decoder(reading: ResponseLimit, encoding: str) -> _Identity | _Inflater:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return _Identity()
    if encoding in {"gzip", "deflate"}:
        return _Inflater(reading, encoding)
    # Not truncated, because a part of a secret that a server sends back would not be masked.
    named = repr(encoding) if len(encoding) <= LONGEST_NAMED else "something else"
    reason = f"the response is encoded as {named}, which was not asked for ({ACCEPTED_ENCODINGS})"
    raise reading.failure(Kind.PERMANENT, reason)
