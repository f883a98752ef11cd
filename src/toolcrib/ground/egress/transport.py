"""Requests and responses through aiohttp, with a dialler of ours that knows the addresses it may dial."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from toolcrib.ground.egress.body import ACCEPTED_ENCODINGS, Reading, read_body
from toolcrib.ground.egress.flood import BoundedConnector, FloodError
from toolcrib.ground.egress.messages import REDIRECTS, Response
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohappyeyeballs import AddrInfoType

    from toolcrib.ground.egress.dialling import Dialler
    from toolcrib.ground.egress.messages import Request
    from toolcrib.pure.url import Url

USER_AGENT = "toolcrib"


class Resolver(AbstractResolver):
    """Hands the dialler's checked addresses to aiohttp, which dials exactly these and asks anew for every new connection."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The checked addresses of the host."""
        return [
            ResolveResult(hostname=host, host=str(address), port=port, family=family, proto=0, flags=0)
            for address in await self._dialler.look_up(host, port)
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


class _RefusedError(PermissionError):
    """An address that may not be dialled, in a shape that passes through the connector."""

    def __init__(self, refusal: ToolError) -> None:
        super().__init__(errno.EACCES, refusal.message)
        self.refusal = refusal


def open_session(dialler: Dialler) -> aiohttp.ClientSession:
    """A pool of connections for the running loop, all under one address policy."""

    def open_socket(info: AddrInfoType) -> socket.socket:
        endpoint = info[4]
        try:
            return dialler.open_socket(ip_address(str(endpoint[0])), int(endpoint[1]))
        except ToolError as refusal:
            raise _RefusedError(refusal) from None

    connector = BoundedConnector(resolver=Resolver(dialler), use_dns_cache=False, socket_factory=open_socket)
    session = aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPTED_ENCODINGS},
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=("Content-Type",),
    )
    # By itself it sends a request again when a kept connection turns out to be dead; repeating is up to our callers.
    session._retry_connection = False  # noqa: SLF001 - there is no other switch for it
    return session


async def exchange(session: aiohttp.ClientSession, request: Request, max_bytes: int) -> Response:
    """Send one request and read its response; a redirect comes back without its body."""
    reading = Reading(origin=request.url.origin, max_bytes=max_bytes, has_effects=request.has_effects)
    try:
        async with session.request(
            request.method, to_yarl(request.url), headers=request.headers, data=request.body, allow_redirects=False
        ) as answer:
            status, headers = answer.status, _join_headers(answer)
            is_bare = request.method == "HEAD" or (status in REDIRECTS and "location" in headers)
            body = b"" if is_bare else await _read(reading, headers, answer)
            return Response(url=request.url, status=status, headers=headers, body=body)
    except aiohttp.ClientError as error:
        # Not chained: the texts of aiohttp quote the whole URL, and its query may hold a secret.
        raise _explain(error, reading) from None


def to_yarl(url: Url) -> yarl.URL:
    """The same URL in the type that aiohttp takes: pre-encoded, path and query in one piece, nothing read anew."""
    return yarl.URL.build(scheme=url.scheme, authority=url.authority, path=url.target, encoded=True)


async def _read(reading: Reading, headers: Mapping[str, str], answer: aiohttp.ClientResponse) -> bytes:
    declared = headers.get("content-length", "")
    if "content-encoding" in headers or "transfer-encoding" in headers or not declared.isdecimal():
        return await read_body(reading, headers, answer.content.iter_any())
    if int(declared) > reading.max_bytes:
        raise reading.too_large(str(int(declared)))
    # Nobody hands over more than was declared, so there is nothing to count.
    return await answer.read()


def _join_headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in answer.headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _explain(error: aiohttp.ClientError, reading: Reading) -> ToolError:
    """The error in our own words."""
    if isinstance(error, FloodError):
        return reading.failure(Kind.LIMIT_EXCEEDED, str(error), limit=error.limit)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _explain_dialling(error, reading.origin)
    if isinstance(error, aiohttp.ClientPayloadError):
        return reading.failure(Kind.TRANSIENT, "the response broke off or is not as long as it said")
    if isinstance(error, aiohttp.ClientResponseError):
        return reading.failure(Kind.PERMANENT, "the response is not valid HTTP")
    return reading.failure(Kind.TRANSIENT, "the connection was closed before the response was complete")


def _explain_dialling(error: aiohttp.ClientConnectorError, origin: str) -> ToolError:
    """The error of a request that was never sent."""
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
