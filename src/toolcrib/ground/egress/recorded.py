"""An egress that opens no connection: whoever goes out through it gets the answers that were recorded, and no others."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from toolcrib.ground.egress import wire
from toolcrib.ground.egress.client import Egress
from toolcrib.ground.egress.door import ESTABLISHED, GO_ON, Meter, open_door
from toolcrib.ground.egress.proxy import ProxyLimits, ProxyLog, destination, too_many
from toolcrib.ground.egress.recorded_answers import Answers, Reply, path_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.url import parse_url

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from toolcrib.ground.egress.door import End
    from toolcrib.ground.egress.hosts import HostList
    from toolcrib.ground.egress.messages import Request, Response
    from toolcrib.ground.egress.recorded_tls import Authority
    from toolcrib.ground.egress.wire import RequestHead
    from toolcrib.model.toolrequest import RecordedAnswer
    from toolcrib.pure.url import Url

FAULT = Reply(status=503, headers=(("Content-Type", "text/plain"),), body=b"Service Unavailable\n")


class Recorded(Egress):
    """Answers what was recorded, over http and https, and refuses everything else; each job hears the answers from the first on.

    From the request number `fail_from` of a job on, the server fails: it answers with 503, and after that it cuts the
    connection. None means never.
    """

    def __init__(self, answers: Sequence[RecordedAnswer], *, fail_from: int | None = None) -> None:
        super().__init__(resolve=_refuse_to_resolve)
        self._answers = Answers(answers)
        self._fail_from = fail_from

    @cached_property
    def authority(self) -> Authority:
        """Who vouches for the servers that are made up here."""
        from toolcrib.ground.egress.recorded_tls import Authority

        return Authority()

    async def fetch(self, request: Request, **_: object) -> Response:
        """Refuse: only what goes through the proxy is answered."""
        raise ToolError(
            Kind.HOST_NOT_ALLOWED,
            f"{request.url.origin}: requests of the platform itself are not recorded; send it from a file of code",
        )

    def proxy(
        self, hosts: HostList | None, *, deadline: float, limits: ProxyLimits | None = None
    ) -> Callable[[socket.socket], AbstractAsyncContextManager[ProxyLog]]:
        """Serve one job on a listening socket, as the proxy of an egress does that leads outside."""
        bounds = limits or ProxyLimits()

        @asynccontextmanager
        async def serve(listener: socket.socket) -> AsyncIterator[ProxyLog]:
            server = _Server(self, self._answers, hosts, self._fail_from, bounds)
            async with open_door(listener, server.attend, deadline, bounds.connections):
                yield server.log

        return serve


async def _refuse_to_resolve(host: str, port: int) -> NoReturn:
    raise ToolError(Kind.HOST_NOT_ALLOWED, f"{host}:{port} is not looked up: nobody is asked in earnest")


class _Server:
    """Every server that one job can reach."""

    def __init__(
        self,
        recorded: Recorded,
        answers: Answers,
        hosts: HostList | None,
        fail_from: int | None,
        limits: ProxyLimits,
    ) -> None:
        self.log = ProxyLog(room=limits.visits)
        self._recorded = recorded
        self._answers = answers
        self._turns = answers.begin()
        self._hosts = hosts
        self._fail_from = fail_from
        self._limits = limits
        self._sent = Meter("sent", limits.sent_bytes)
        self._requests = 0

    async def attend(self, client: End, *, is_full: bool) -> None:
        """Answer one request after the other, as long as the client has any."""
        tunnel: Url | None = None
        stays, seconds = True, self._limits.head_seconds
        while stays:
            url = tunnel
            try:
                request = await client.read_request(seconds)
                url = _address(request, tunnel)
                self._check(url, is_full=is_full)
                if request.method == wire.CONNECT:
                    tunnel = await self._open_tunnel(client, url)
                    continue
                stays = await self._exchange(request, url, client)
            except ToolError as refusal:
                if refusal.kind is Kind.TIMEOUT and client.has_answer:
                    return  # who has been answered may leave without a word
                self.log.add(url, refusal.message)
                await client.answer(refusal)
                return
            seconds = self._limits.idle_seconds
        await client.linger()

    def _check(self, url: Url, *, is_full: bool) -> None:
        if is_full:
            raise too_many(self._limits)
        self._sent.check()
        if self._hosts is not None:
            self._hosts.check(url)

    async def _open_tunnel(self, client: End, url: Url) -> Url:
        """Be the server at the other end of the tunnel; its address, with the scheme that it speaks."""
        scheme = self._answers.scheme_at(url.host, url.port)
        if not scheme:
            raise _unanswered(wire.CONNECT, url.authority)
        self.log.add(url)
        if scheme == "http":
            await client.write(ESTABLISHED)
            return replace(url, scheme=scheme)
        context = self._recorded.authority.context_for(url.host)
        try:
            await client.secure(context, ESTABLISHED, self._limits.head_seconds)
        except OSError:
            self.log.add(url, "the TLS handshake failed; trust the authority that SSL_CERT_FILE names")
            raise
        return url

    async def _exchange(self, request: RequestHead, url: Url, client: End) -> bool:
        """Answer a request; whether the connection stays for another."""
        async with asyncio.timeout(self._limits.idle_seconds):
            if request.waits:
                await client.write(GO_ON)
                client.has_answer = False
            await wire.copy_body(client.reader, request.framing or wire.Framing(0), self._drop)
            reply = self._turns.next(request.method, url)
            if reply is None:
                raise _unanswered(request.method, f"{url.origin}{path_of(url)}")
            self.log.add(url)
            stays = _may_stay(request)
            await client.write(self._fail_or(reply).encode(request.method, stays=stays))
        return stays

    async def _drop(self, data: bytes) -> None:
        self._sent.add(len(data))

    def _fail_or(self, reply: Reply) -> Reply:
        """The reply, or what comes in its place once the server fails."""
        self._requests += 1
        if self._fail_from is None or self._requests < self._fail_from:
            return reply
        if self._requests > self._fail_from:
            raise ConnectionAbortedError
        return FAULT


def _address(request: RequestHead, tunnel: Url | None) -> Url:
    """What a request asks for; in a tunnel that is a path at its other end."""
    if tunnel is None:
        return destination(request)
    if request.method == wire.CONNECT or not request.target.startswith("/"):
        raise wire.malformed("in a tunnel it has to name a path")
    hosts = [value for name, value in request.headers if name == "host"] or [tunnel.authority]
    if len(hosts) > 1:
        raise wire.malformed("it names more than one host")
    url = parse_url(f"{tunnel.scheme}://{hosts[0]}{request.target}")
    if url.origin != tunnel.origin:
        raise wire.malformed(f"it asks for {url.origin} in a tunnel to {tunnel.origin}")
    return url


def _may_stay(request: RequestHead) -> bool:
    wishes = {
        word.strip().lower() for name, value in request.headers if name == "connection" for word in value.split(",")
    }
    return request.minor == "1" and "close" not in wishes


def _unanswered(method: str, what: str) -> ToolError:
    message = f"asked for {method} {what}, which nothing recorded answers; add it to the answers of the request"
    return ToolError(Kind.NOT_FOUND, message)
