"""Send requests and open proxies: every outgoing connection starts here and is checked on every hop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.infra.egress.dialler import AddressPolicy, Dialler, parse_private, resolve_name
from toolcrib.infra.egress.messages import redirect
from toolcrib.infra.egress.proxy import ProxyLimits, serve_proxy
from toolcrib.infra.egress.transport import exchange, open_session
from toolcrib.lib.http_syntax import follow_reference
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from aiohttp import ClientSession

    from toolcrib.infra.egress.dialler import Resolve
    from toolcrib.infra.egress.messages import Request, Response
    from toolcrib.infra.egress.proxy import ProxyLog
    from toolcrib.lib.http_syntax import HostList, Url

    Exchange = Callable[[Request, int], Awaitable[Response]]

MAX_REDIRECTS = 5
MAX_SENT_BYTES = 1_000_000


class Egress:
    """Send requests to public addresses and to the private endpoints that the operator lists.

    `private` holds exact addresses with ports ("127.0.0.1:8080"); `resolve` turns a host and a port into address
    literals.
    """

    def __init__(self, *, private: Iterable[str] = (), resolve: Resolve | None = None) -> None:
        self._policy = AddressPolicy(private=parse_private(private))
        self._dialler = Dialler(policy=self._policy, resolve=resolve or resolve_name)
        self._ways: dict[asyncio.AbstractEventLoop, tuple[Exchange, AsyncGenerator[None, None]]] = {}

    def check(self, url: Url, hosts: HostList | None) -> None:
        """Refuse what is not allowed, as far as that is known before connecting; `hosts` None means every public host."""
        if hosts is not None:
            hosts.check(url)
        address = url.address
        if address is not None:
            self._policy.check(url.host, address, url.port)

    async def fetch(
        self,
        request: Request,
        *,
        hosts: HostList | None,
        max_bytes: int,
        timeout: float,  # noqa: ASYNC109 - the message names the limit
        max_sent_bytes: int = MAX_SENT_BYTES,
    ) -> Response:
        """Send the request, follow its redirects and read the response within `timeout` seconds."""
        if request.size > max_sent_bytes:
            message = f"{request.url.origin}: the request has {request.size} bytes, and the limit is {max_sent_bytes}"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": request.size, "limit": max_sent_bytes})
        try:
            async with asyncio.timeout(timeout):
                response = await self._hop(request, hosts, max_bytes)
                return (
                    response if response.location is None else await self._follow(request, response, hosts, max_bytes)
                )
        except TimeoutError:
            raise ToolError(
                Kind.TIMEOUT,
                f"{request.url.origin}: no complete response within {timeout:g} s",
                retryable=True,
                partial_side_effects=request.has_effects,
                details={"origin": request.url.origin, "seconds": timeout},
            ) from None

    def proxy(
        self, hosts: HostList | None, *, deadline: float, limits: ProxyLimits | None = None
    ) -> Callable[[socket.socket], AbstractAsyncContextManager[ProxyLog]]:
        """Serve clients that can only reach this listening socket, until `deadline` (time.monotonic).

        Leaving the context closes the socket and every connection made through it.
        """

        async def reach(url: Url) -> socket.socket:
            self.check(url, hosts)
            return await self._dialler.dial(url)

        return lambda listener: serve_proxy(listener, reach, deadline, limits or ProxyLimits())

    async def close(self) -> None:
        """Close the connections of the running loop; those of another loop close when that loop shuts down."""
        _, keeper = self._ways.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    async def _follow(self, request: Request, response: Response, hosts: HostList | None, max_bytes: int) -> Response:
        has_effects = request.has_effects
        hops = 0
        while (location := response.location) is not None:
            hops += 1
            try:
                request = _next_request(request, response, location, hops)
                response = await self._hop(request, hosts, max_bytes)
            except ToolError as error:
                raise _redirected(error, response.url.origin, has_effects=has_effects) from error
        return replace(response, hops=hops)

    async def _hop(self, request: Request, hosts: HostList | None, max_bytes: int) -> Response:
        # A pooled connection does not resolve again, so the host is checked here every time.
        self.check(request.url, hosts)
        exchange, _ = self._ways.get(asyncio.get_running_loop()) or await self._open()
        return await exchange(request, max_bytes)

    async def _open(self) -> tuple[Exchange, AsyncGenerator[None, None]]:
        """Open a session for the running loop."""
        session = open_session(self._dialler)
        keeper = _close_with_loop(session)
        await anext(keeper)
        self._ways = {known: way for known, way in self._ways.items() if not known.is_closed()}
        way = self._ways[asyncio.get_running_loop()] = (partial(exchange, session), keeper)
        return way


async def _close_with_loop(session: ClientSession) -> AsyncGenerator[None, None]:
    """Close the session when closed itself; an event loop closes its generators when it shuts down."""
    try:
        yield
    finally:
        await session.close()


def _next_request(request: Request, response: Response, location: str, hops: int) -> Request:
    if hops > MAX_REDIRECTS:
        raise ToolError(Kind.PERMANENT, f"more than {MAX_REDIRECTS} redirects")
    return redirect(request, response.status, follow_reference(response.url, location))


def _redirected(error: ToolError, origin: str, *, has_effects: bool) -> ToolError:
    """The error after a redirect; an invalid URL in a redirect is not the caller's mistake."""
    return ToolError(
        Kind.PERMANENT if error.kind is Kind.VALIDATION else error.kind,
        f"redirected by {origin}: {error.message}",
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects or has_effects,
        details={**error.details, "redirectedBy": origin},
    )
