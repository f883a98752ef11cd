"""Send requests and open proxies: every outgoing connection starts here and is checked on every hop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from toolcrib.infra.egress import next_request, redirected
from toolcrib.infra.egress.connection_pool import ConnectionPool
from toolcrib.infra.egress.dialler import AddressPolicy, Dialler, parse_private, resolve_name
from toolcrib.infra.egress.proxy import ProxyLimits, serve_proxy
from toolcrib.infra.egress.transport import exchange, exchange_streamed
from toolcrib.lib.http_syntax import STANDARD_PORTS, parse_hosts
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from toolcrib.infra.egress import Request, Response
    from toolcrib.infra.egress.dialler import Address, Resolve
    from toolcrib.infra.egress.proxy import ProxyLog
    from toolcrib.lib.http_syntax import HostList, Url

MAX_SENT_BYTES = 1_000_000
MAX_PASSED = 1_000


class Egress:
    """Send requests to public addresses and to the private endpoints that the operator lists.

    `private` holds exact addresses with ports ("127.0.0.1:8080"); `resolve` turns a host and a port into address
    literals. A port other than 80 and 443 has to be named: by the host list of the tool, by `allowed` (host patterns of
    the operator), or by `private`, and then only at that address.
    """

    def __init__(
        self, *, private: Iterable[str] = (), allowed: Iterable[str] = (), resolve: Resolve | None = None
    ) -> None:
        self._policy = AddressPolicy(private=parse_private(private))
        self._patterns = tuple(allowed)
        self._ports = STANDARD_PORTS | {port for _, port in self._policy.private}
        self._dialler = Dialler(policy=self._policy, resolve=resolve or resolve_name)
        self._ways: dict[asyncio.AbstractEventLoop, tuple[ConnectionPool, AsyncGenerator[None, None]]] = {}
        self._opening = threading.Lock()
        # Cache of the host list that last allowed each host and port, with its state: they repeat with every call.
        self._passed: dict[tuple[str, int], tuple[HostList | None, object]] = {}

    @cached_property
    def _allowed(self) -> HostList:
        return parse_hosts(self._patterns, "hosts of [http_tools]")

    def check(self, url: Url, hosts: HostList | None) -> None:
        """Refuse what is not allowed, as far as that is known before connecting; `hosts` None means every public host."""
        endpoint = url.host, url.port
        state = None if hosts is None else hosts.state
        passed = self._passed.get(endpoint)
        if passed is not None and passed[0] is hosts and passed[1] is state:
            return
        if hosts is not None:
            hosts.check(url, self._ports)
        self.check_address(url)
        address = url.address
        if not self._is_named(url, hosts):
            self._check_private(url, () if address is None else (address,))
        # Not cached for public addresses, because those of this machine may change.
        if address is None or (address, url.port) in self._policy.private:
            if len(self._passed) >= MAX_PASSED:
                self._passed.clear()
            self._passed[endpoint] = hosts, state

    def check_address(self, url: Url) -> None:
        """Refuse an address that is neither public nor listed; a name is checked when it is resolved."""
        if url.address is not None:
            self._policy.check(url.host, url.address, url.port)

    def checks(self, url: Url, hosts: HostList | None) -> tuple[Callable[[], None], ...]:
        """The parts of `check` that can fail independently of each other."""
        return partial(self.check, url, hosts), partial(self.check_address, url)

    def check_server(self, url: Url, hosts: HostList | None, port: int) -> None:
        """As `check`, for a server that is not a web server and usually listens on `port`."""
        ports = self._ports | {port}
        if hosts is not None:
            hosts.check(url, ports - STANDARD_PORTS)
        self.check_address(url)
        address = url.address
        if not self._names_server(url, hosts, port):
            self._check_private(url, () if address is None else (address,), "[sql_tools]", {port})

    async def locate(self, url: Url, hosts: HostList | None, port: int) -> list[Address]:
        """The addresses of such a server, each of them checked; the caller connects to these and to no other."""
        self.check_server(url, hosts, port)
        address = url.address
        addresses = [address] if address is not None else await self._dialler.look_up(url.host, url.port)
        if not self._names_server(url, hosts, port):
            self._check_private(url, addresses, "[sql_tools]", {port})
        return addresses

    def _names_server(self, url: Url, hosts: HostList | None, port: int) -> bool:
        return url.port == port or (hosts is not None and hosts.names_port(url))

    async def fetch(
        self,
        request: Request,
        *,
        hosts: HostList | None,
        max_bytes: int,
        timeout: float,  # noqa: ASYNC109 - the message names the limit
        max_sent_bytes: int = MAX_SENT_BYTES,
        follows: bool = True,
    ) -> Response:
        """Send the request, follow its redirects unless told otherwise, and read the response within `timeout` seconds."""
        signed = request.signed()
        if signed.size > max_sent_bytes:
            message = f"{request.url.origin}: the request has {signed.size} bytes, and the limit is {max_sent_bytes}"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": signed.size, "limit": max_sent_bytes})
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            response = await self._hop(signed, hosts, max_bytes, deadline)
            if response.location is None or not follows:
                return response
            return await self._follow(request, response, hosts, max_bytes, deadline)
        except TimeoutError:
            raise ToolError(
                Kind.TIMEOUT,
                f"{request.url.origin}: no complete response within {timeout:g} s",
                retryable=True,
                partial_side_effects=request.has_effects,
                details={"origin": request.url.origin, "seconds": timeout},
            ) from None

    @asynccontextmanager
    async def stream(
        self, request: Request, *, hosts: HostList | None, max_piece: int
    ) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
        """Send the request and read its response piece by piece, for as long as the block lasts; follows no redirect."""
        self.check(request.url, hosts)
        if self._must_look_up(request.url, hosts):
            await self._look_up(request.url)
        pool, _ = self._ways.get(asyncio.get_running_loop()) or await self._open()
        async with exchange_streamed(pool, request.signed(), max_piece) as streamed:
            yield streamed

    def proxy(
        self, hosts: HostList | None, *, deadline: float, limits: ProxyLimits | None = None
    ) -> Callable[[socket.socket], AbstractAsyncContextManager[ProxyLog]]:
        """Serve clients that can only reach this listening socket, until `deadline` (time.monotonic).

        Leaving the context closes the socket and every connection made through it.
        """

        async def reach(url: Url) -> socket.socket:
            self.check(url, hosts)
            if self._must_look_up(url, hosts):
                await self._look_up(url)
            return await self._dialler.dial(url)

        return lambda listener: serve_proxy(listener, reach, deadline, limits or ProxyLimits())

    async def close(self) -> None:
        """Close the connections of the running loop; those of another loop close when that loop shuts down."""
        _, keeper = self._ways.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    async def _follow(
        self, request: Request, response: Response, hosts: HostList | None, max_bytes: int, deadline: float
    ) -> Response:
        has_effects = request.has_effects
        hops = 0
        while response.location is not None:
            hops += 1
            try:
                request = next_request(request, response, hops)
                response = await self._hop(request.signed(), hosts, max_bytes, deadline)
            except ToolError as error:
                raise redirected(error, response.url.origin, has_effects=has_effects) from error
        return replace(response, hops=hops)

    async def _hop(self, request: Request, hosts: HostList | None, max_bytes: int, deadline: float) -> Response:
        # A pooled connection does not resolve again, so the host is checked here every time.
        url = request.url
        self.check(url, hosts)
        if self._must_look_up(url, hosts):
            async with asyncio.timeout_at(deadline):
                await self._look_up(url)
        pool, _ = self._ways.get(asyncio.get_running_loop()) or await self._open()
        return await exchange(pool, request, max_bytes, deadline)

    def _must_look_up(self, url: Url, hosts: HostList | None) -> bool:
        """Whether the URL has a name at a port that only `private` names."""
        return url.address is None and not self._is_named(url, hosts)

    async def _look_up(self, url: Url) -> None:
        """Refuse a port that only `private` names, unless all addresses of the name are listed there."""
        self._check_private(url, await self._dialler.look_up(url.host, url.port))

    def _is_named(self, url: Url, hosts: HostList | None) -> bool:
        return url.port in STANDARD_PORTS or (self._allowed if hosts is None else hosts).names_port(url)

    def _check_private(
        self, url: Url, addresses: Iterable[Address], table: str = "[http_tools]", ports: Iterable[int] = STANDARD_PORTS
    ) -> None:
        private = self._policy.private
        if url.port not in self._ports or any((address, url.port) not in private for address in addresses):
            raise _unnamed_port(url, table, ports)

    async def _open(self) -> tuple[ConnectionPool, AsyncGenerator[None, None]]:
        """Open a pool for the running loop."""
        pool = ConnectionPool(self._dialler)
        keeper = _close_with_loop(pool)
        await anext(keeper)
        way = pool, keeper
        # Several loops may open theirs at the same time, each in its own thread.
        with self._opening:
            open_ways = {known: way for known, way in self._ways.items() if not known.is_closed()}
            self._ways = {**open_ways, asyncio.get_running_loop(): way}
        return way


async def _close_with_loop(pool: ConnectionPool) -> AsyncGenerator[None, None]:
    """Close the pool when closed itself; an event loop closes its generators when it shuts down."""
    try:
        yield
    finally:
        await pool.close()


def _unnamed_port(url: Url, table: str, ports: Iterable[int]) -> ToolError:
    usual = " and ".join(map(str, sorted(ports)))
    return ToolError(
        Kind.HOST_NOT_ALLOWED,
        f"{url.authority}: a port other than {usual} has to be declared",
        cure=Cure(f'list "{url.authority}" in the hosts of the tool, or as operator in hosts of {table}'),
        details={"host": url.host, "port": url.port},
    )
