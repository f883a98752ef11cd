"""Send requests and read bounded responses through aiohttp, over connections of our own dialler.

A body is counted after decompression, one layer of it, and reading stops at the limit.
"""

from __future__ import annotations

import errno
import os
import socket
import zlib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast

from toolcrib.infra.egress import REDIRECTS, Response
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping

    import aiohttp
    import yarl
    from aiohappyeyeballs import AddrInfoType
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

    from toolcrib.infra.egress import Request
    from toolcrib.infra.egress.dialler import Dialler
    from toolcrib.lib.http_syntax import Url

ACCEPTED_ENCODINGS = "gzip, deflate"
LONGEST_NAMED = 40
# The limit on what a server sends around the body: interim responses, heads, trailers.
MAX_AROUND = 65_536
INTERIM = range(100, 200)
SWITCHING = 101
USER_AGENT = "toolcrib"

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB_METHOD = 8


def open_session(dialler: Dialler) -> aiohttp.ClientSession:
    """A connection pool for the running loop, under one address policy."""
    import aiohttp

    def open_socket(info: AddrInfoType) -> socket.socket:
        endpoint = info[4]
        try:
            return dialler.open_socket(ip_address(str(endpoint[0])), int(endpoint[1]))
        except ToolError as refusal:
            raise _RefusedError(refusal) from None

    connector = _connector_class()(
        resolver=cast("AbstractResolver", Resolver(dialler)), use_dns_cache=False, socket_factory=open_socket
    )
    session = aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPTED_ENCODINGS},
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=("Content-Type",),
    )
    # aiohttp would repeat a request on a dead pooled connection; retries are up to our callers.
    session._retry_connection = False  # noqa: SLF001 - there is no public switch for it
    return session


async def exchange(session: aiohttp.ClientSession, request: Request, max_bytes: int) -> Response:
    """Send one request and read its response; a redirect is returned without its body."""
    import aiohttp

    reading = Reading(origin=request.url.origin, max_bytes=max_bytes, has_effects=request.has_effects)
    try:
        async with session.request(
            request.method, to_yarl(request.url), headers=request.headers, data=request.body, allow_redirects=False
        ) as answer:
            status, headers = answer.status, _join_headers(answer)
            is_bare = request.method == "HEAD" or (status in REDIRECTS and "location" in headers)
            body = b"" if is_bare else await _read(reading, headers, answer)
            return Response(url=request.url, status=status, headers=headers, body=body)
    except (aiohttp.ClientError, FloodError) as error:
        # Not chained: messages of aiohttp quote the whole URL, and its query may contain a secret.
        raise _explain(error, reading) from None


@asynccontextmanager
async def exchange_streamed(
    session: aiohttp.ClientSession, request: Request, max_piece: int
) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
    """Send one request; gives the head of the response, and its body in pieces as they arrive."""
    import aiohttp

    reading = Reading(origin=request.url.origin, max_bytes=max_piece, has_effects=request.has_effects)
    headers = {**request.headers, "Accept-Encoding": "identity"}
    try:
        async with session.request(
            request.method, to_yarl(request.url), headers=headers, data=request.body, allow_redirects=False
        ) as answer:
            told = _join_headers(answer)
            decoder = _decoder(reading, told.get("content-encoding", ""))

            async def pieces() -> AsyncIterator[bytes]:
                async for piece in answer.content.iter_any():
                    yield decoder.feed(piece, max_piece)

            yield Response(url=request.url, status=answer.status, headers=told, body=b""), pieces()
    except (aiohttp.ClientError, FloodError) as error:
        raise _explain(error, reading) from None


def to_yarl(url: Url) -> yarl.URL:
    """The same URL in the type of aiohttp, pre-encoded, so that nothing is parsed again."""
    import yarl

    return yarl.URL.build(scheme=url.scheme, authority=url.authority, path=url.target, encoded=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The origin of a response, its size limit, and whether its request may have had effects."""

    origin: str
    max_bytes: int
    has_effects: bool

    @property
    def max_encoded(self) -> int:
        """The limit before decompression: a stream that expands to nothing must end, too.

        Deflate enlarges incompressible data by far less than one percent and a kilobyte.
        """
        return self.max_bytes + self.max_bytes // 100 + 1_000

    def failure(self, kind: Kind, reason: str, **details: object) -> ToolError:
        """The error for an unusable response."""
        return ToolError(
            kind,
            f"{self.origin}: {reason}",
            retryable=kind is Kind.TRANSIENT,
            partial_side_effects=self.has_effects,
            details={"origin": self.origin, **details},
        )

    def too_large(self, size: str) -> ToolError:
        """The error for a response beyond the limit."""
        reason = f"the response has {size} bytes, and the limit is {self.max_bytes}"
        return self.failure(Kind.LIMIT_EXCEEDED, reason, limit=self.max_bytes)


async def read_body(reading: Reading, headers: Mapping[str, str], chunks: AsyncIterable[bytes]) -> bytes:
    """Read a whole body, or raise as soon as it is too large."""
    decoder = _decoder(reading, headers.get("content-encoding", ""))
    encoded = 0
    body = bytearray()
    async for chunk in chunks:
        encoded += len(chunk)
        body += decoder.feed(chunk, reading.max_bytes + 1 - len(body))
        if len(body) > reading.max_bytes:
            raise reading.too_large(f"more than {reading.max_bytes}")
        if encoded > reading.max_encoded:
            raise reading.too_large(f"more than {reading.max_encoded} compressed")
    decoder.finish()
    return bytes(body)


class FloodError(Exception):
    """A server sends too much data that is not a response body."""


# The classes are created in functions because aiohttp, which takes longer to import than all of ours, is needed only
# for sending: a tool that uses the proxy does not load it.


@cache
def _handler_class() -> type[ResponseHandler]:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.helpers import set_exception

    class BoundedHandler(ResponseHandler):
        """A connection that is closed after too many bytes that are not part of a body."""

        _around = 0
        _has_head = False

        def set_response_params(self, **params: Any) -> None:
            """Start a new response."""
            self._around = 0
            self._has_head = False
            super().set_response_params(**params)

        def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
            """Receive a head; an interim one is not the last of a response."""
            code = data[0].code
            self._has_head = self._has_head or code not in INTERIM or code == SWITCHING
            super().feed_data(data, size)

        def data_received(self, data: bytes) -> None:
            """Count bytes that are not part of a body."""
            had_head, before = self._has_head, self._body_bytes()
            super().data_received(data)
            # Bytes after a head may be its body, and bytes received while reading is paused are not parsed yet.
            if had_head is not self._has_head or self._reading_paused or self._body_bytes() != before:
                self._around = 0
                return
            self._around += len(data)
            if self._around > MAX_AROUND:
                self._give_up()

        def _body_bytes(self) -> int:
            return 0 if self._payload is None else self._payload.total_bytes

        def _give_up(self) -> None:
            where = "behind its body" if self._has_head else "before its response"
            error = FloodError(f"the server sends more than {MAX_AROUND} bytes {where}")
            if self._payload is not None:
                set_exception(self._payload, error)
            if self.transport is not None:
                self.transport.close()
            self.set_exception(error)

    return BoundedHandler


@cache
def _connector_class() -> type[aiohttp.TCPConnector]:
    import aiohttp

    make_handler = _handler_class()

    class BoundedConnector(aiohttp.TCPConnector):
        """Creates bounded connections."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._factory = partial(make_handler, self._loop)

    return BoundedConnector


class Resolver:
    """Gives checked addresses to aiohttp, which connects to exactly these and resolves again for every new connection."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The checked addresses of the host."""
        from aiohttp.abc import ResolveResult

        return [
            ResolveResult(hostname=host, host=str(address), port=port, family=family, proto=0, flags=0)
            for address in await self._dialler.look_up(host, port)
        ]

    async def close(self) -> None:
        """A no-op: nothing is open."""


class _RefusedError(PermissionError):
    """A refused address as an OSError, which passes through the connector."""

    def __init__(self, refusal: ToolError) -> None:
        super().__init__(errno.EACCES, refusal.message)
        self.refusal = refusal


async def _read(reading: Reading, headers: Mapping[str, str], answer: aiohttp.ClientResponse) -> bytes:
    declared = headers.get("content-length", "")
    if "content-encoding" in headers or "transfer-encoding" in headers or not declared.isdecimal():
        return await read_body(reading, headers, answer.content.iter_any())
    if int(declared) > reading.max_bytes:
        raise reading.too_large(str(int(declared)))
    # aiohttp returns no more than was declared, so there is nothing to count.
    return await answer.read()


def _join_headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in answer.headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _explain(error: aiohttp.ClientError | FloodError, reading: Reading) -> ToolError:
    """Translate an error of aiohttp."""
    import aiohttp

    if isinstance(error, FloodError):
        return reading.failure(Kind.LIMIT_EXCEEDED, str(error), limit=MAX_AROUND)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _explain_dialling(error, reading.origin)
    if isinstance(error, aiohttp.ClientPayloadError):
        return reading.failure(Kind.TRANSIENT, "the response is incomplete or shorter than declared")
    if isinstance(error, aiohttp.ClientResponseError):
        return reading.failure(Kind.PERMANENT, "the response is not valid HTTP")
    return reading.failure(Kind.TRANSIENT, "the connection was closed before the response was complete")


def _explain_dialling(error: aiohttp.ClientConnectorError, origin: str) -> ToolError:
    """The error of a request that was never sent."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or "it does not fit"
        message = f"{origin}: the TLS certificate is not trusted: {reason}"
        return ToolError(Kind.PERMANENT, message, details={"origin": origin, "reason": reason})
    if isinstance(error, aiohttp.ClientSSLError):
        return ToolError(Kind.PERMANENT, f"{origin}: the TLS handshake failed", details={"origin": origin})
    if isinstance(error.os_error, _RefusedError):
        return error.os_error.refusal
    number = error.os_error.errno
    reason = os.strerror(number).lower() if number else "connection failed"
    return ToolError(
        Kind.TRANSIENT, f"{origin}: {reason}", retryable=True, details={"origin": origin, "reason": reason}
    )


class _Identity:
    """An uncompressed body."""

    def feed(self, data: bytes, limit: int) -> bytes:
        return data[:limit]

    def finish(self) -> None:
        """A no-op: there is no end to verify."""


class _Inflater:
    """One layer of gzip or deflate, decompressed at most up to the remaining limit."""

    def __init__(self, reading: Reading, encoding: str) -> None:
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
            raise self._reading.failure(Kind.PERMANENT, f"the response is no valid {self._encoding}") from None
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


def _decoder(reading: Reading, encoding: str) -> _Identity | _Inflater:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return _Identity()
    if encoding in {"gzip", "deflate"}:
        return _Inflater(reading, encoding)
    # Not truncated: a part of a secret that a server repeats would not be masked.
    named = repr(encoding) if len(encoding) <= LONGEST_NAMED else "something else"
    reason = f"the response is encoded as {named}, which was not asked for ({ACCEPTED_ENCODINGS})"
    raise reading.failure(Kind.PERMANENT, reason)
