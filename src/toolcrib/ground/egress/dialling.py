"""From a host to a connection: look the name up ourselves, check every answer, dial the very address that was checked."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.ground.egress.addresses import Address, AddressPolicy
    from toolcrib.pure.url import Url

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

RESOLVE_SECONDS = 10
CONNECT_SECONDS = 10
MAX_DIALLED = 4


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Ask the system for the addresses of a name."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialler:
    """Finds the addresses of a host and connects to them, as far as the policy lets it."""

    policy: AddressPolicy
    resolve: Resolve = resolve_name

    async def look_up(self, host: str, port: int) -> list[Address]:
        """The addresses of a name; one that may not be dialled refuses all of them."""
        addresses = [ip_address(text) for text in await self._ask(host, port)]
        for address in addresses:
            self.policy.check(host, address, port)
        return addresses

    def open_socket(self, address: Address, port: int) -> socket.socket:
        """A socket that is about to be connected. The last wall: whatever way an address came here, it gets dialled."""
        self.policy.check(str(address), address, port)
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        return socket.socket(family, socket.SOCK_STREAM)

    async def dial(self, url: Url) -> socket.socket:
        """A connection to the host of the URL, at the first of its addresses that answers."""
        addresses = [url.address] if url.address is not None else await self.look_up(url.host, url.port)
        reason = ""
        for address in addresses[:MAX_DIALLED]:
            try:
                return await self._connect(address, url.port)
            except TimeoutError:
                reason = f"no answer within {CONNECT_SECONDS} s"
            except OSError as problem:
                reason = os.strerror(problem.errno).lower() if problem.errno else "connection failed"
        raise unreachable(url.authority, reason)

    async def _connect(self, address: Address, port: int) -> socket.socket:
        connection = self.open_socket(address, port)
        try:
            connection.settimeout(0)
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
            self.check_peer(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def check_peer(self, connection: socket.socket) -> None:
        """Refuse a connection that does not lead where it may."""
        host, port = connection.getpeername()[:2]
        self.policy.check(str(host), ip_address(host), port)

    async def _ask(self, host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                addresses = await self.resolve(host, port)
        except TimeoutError:
            raise unreachable(host, f"looking up the name took longer than {RESOLVE_SECONDS} s") from None
        except OSError:
            raise unreachable(host, "looking up the name failed") from None
        if not addresses:
            raise unreachable(host, "looking up the name found no address")
        return addresses


def unreachable(host: str, reason: str) -> ToolError:
    """The error for a connection that never came to be."""
    return ToolError(Kind.TRANSIENT, f"{host}: {reason}", retryable=True, details={"host": host, "reason": reason})
