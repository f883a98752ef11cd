"""Proxy HTTP for sandboxed jobs: check every host, and dial for the client."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.infra.egress import http1
from toolcrib.infra.egress.dialler import unreachable
from toolcrib.infra.egress.listener import ESTABLISHED, GO_ON, Meter, open_end, serve_clients
from toolcrib.lib.http_syntax import Url, parse_authority, parse_url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable

    from toolcrib.infra.egress.http1 import PassOn, RequestHead, ResponseHead
    from toolcrib.infra.egress.listener import End

SWITCHING, FINAL = 101, 200
MAX_INTERIM = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyLimits:
    """How much one proxy does for its clients, all of them together."""

    connections: int = 64
    head_seconds: float = 10.0
    idle_seconds: float = 60.0
    sent_bytes: int = 100_000_000
    received_bytes: int = 1_000_000_000
    visits: int = 1_000


@dataclass(frozen=True, slots=True)
class Visit:
    """Where a client wanted to go and whether it was let; without a host, what it wanted could not be read."""

    host: str
    port: int
    allowed: bool
    reason: str = ""


@dataclass(kw_only=True, slots=True)
class ProxyLog:
    """The visits in their order; `dropped` counts those that found no room."""

    room: int
    visits: list[Visit] = field(default_factory=list)
    dropped: int = 0

    def add(self, url: Url | None, reason: str = "") -> None:
        """Note one; without a reason against it, it was allowed."""
        if len(self.visits) == self.room:
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
    """What is done for each client, and what all of them have used up."""

    def __init__(self, reach: Callable[[Url], Awaitable[socket.socket]], limits: ProxyLimits) -> None:
        self.log = ProxyLog(room=limits.visits)
        self._reach = reach
        self._limits = limits
        self._sent = Meter("sent", limits.sent_bytes)
        self._received = Meter("received", limits.received_bytes)
        self._loop = asyncio.get_running_loop()

    async def attend(self, client: End, *, is_full: bool) -> None:
        """Read one request, and pass it on if its destination may be reached."""
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
        """Pass data on in both directions; each piece restarts the idle timeout."""

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
        """Note what cut the connection short, and say so to a client that has heard nothing yet."""
        if not isinstance(problem, ToolError):
            raise problem
        self.log.add(url, problem.message)
        if not client.has_answer:
            await client.answer(problem)


def too_many(limits: ProxyLimits) -> ToolError:
    """The error for a client that finds all places taken."""
    message = f"{limits.connections} connections are open already; close one, or try again later"
    return ToolError(Kind.OVERLOADED, message)


def destination(request: RequestHead) -> Url:
    """Where a request wants to go."""
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
    """Pass bytes both ways, until both sides have ended theirs."""
    await client.write(ESTABLISHED)
    async with asyncio.TaskGroup() as group:
        group.create_task(_relay(client, server, send))
        group.create_task(_relay(server, client, receive))


async def _relay(source: End, sink: End, pass_on: PassOn) -> None:
    await http1.copy_body(source.reader, None, pass_on)
    sink.writer.write_eof()


async def _exchange(request: RequestHead, url: Url, client: End, server: End, send: PassOn, receive: PassOn) -> None:
    """Pass on one request and its response; a redirect is the client's to follow, and is checked when it does."""
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
    # A server may stop reading before it answers; its answer is still worth reading.
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
    raise unreachable(url.authority, "the response never comes to its point")
