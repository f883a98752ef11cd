"""Resolve a host, check every address, and connect to exactly the address that was checked.

A table of our own defines public addresses; any other address must be listed by the operator. `ipaddress.is_global` is
not usable: depending on the Python version it calls NAT64, 6to4, multicast and more global.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import zip_longest
from typing import TYPE_CHECKING

from toolcrib.lib.http_syntax import split_authority
from toolcrib.model.errors import Cure, Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.lib.http_syntax import Url

Address = IPv4Address | IPv6Address
GLOBAL_IPV6 = IPv6Network("2000::/3")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
RESOLVE_SECONDS = 10
CONNECT_SECONDS = 10
MAX_DIALLED = 4
# As in RFC 8305 (Happy Eyeballs): how long to wait for one address before the next is tried in parallel.
STAGGER_SECONDS = 0.25
# How long it is remembered whether an address belongs to this machine.
OWN_SECONDS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A special address range, refused unless listed, and its purpose."""

    network: IPv4Network | IPv6Network
    purpose: str

    def __str__(self) -> str:
        return f"{self.network} ({self.purpose})"


def _blocks(*rows: tuple[str, str]) -> tuple[Block, ...]:
    return tuple(
        Block(network=IPv6Network(text) if ":" in text else IPv4Network(text), purpose=purpose)
        for text, purpose in rows
    )


SPECIAL_IPV4 = _blocks(
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by carriers"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "cloud platform"),
    ("169.254.0.0/16", "link-local and cloud metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "multicast tunnels"),
    ("192.88.99.0/24", "6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"),
    ("198.18.0.0/15", "benchmarks"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved and broadcast"),
)


SPECIAL_IPV6 = _blocks(
    ("2001::/23", "protocol assignments and Teredo"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "AS112"),
    ("3fff::/20", "documentation"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::/96", "IPv4-compatible"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("100::/64", "discarded"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
    ("::/0", "not assigned for public use"),
)


def block_of(address: Address) -> Block | None:
    """The special block of an address, or None for a public one; an IPv4-mapped address counts as its IPv4 address."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return block_of(address.ipv4_mapped)
        blocks = SPECIAL_IPV6[:-1] if address in GLOBAL_IPV6 else SPECIAL_IPV6
    else:
        blocks = SPECIAL_IPV4
    return next((block for block in blocks if address in block.network), None)


def is_own_address(address: Address) -> bool:
    """Whether the address belongs to this machine, even if it is a public one."""
    return _is_own(address, int(time.monotonic() / OWN_SECONDS))


@lru_cache(maxsize=1_024)
def _is_own(address: Address, _period: int) -> bool:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: the kernel only chooses a source address, which for an own address is that address itself.
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
        except OSError:
            return False


@dataclass(frozen=True, kw_only=True, slots=True)
class AddressPolicy:
    """Public addresses of other machines, and the exact endpoints that the operator lists.

    A service that listens on a public address of this machine may trust local clients, so that address counts as private.
    """

    private: frozenset[tuple[Address, int]] = frozenset()
    is_own: Callable[[Address], bool] = is_own_address

    def check(self, host: str, address: Address, port: int) -> None:
        """Refuse an address that is neither public nor listed with this port."""
        if (address, port) in self.private:
            return
        block = block_of(address)
        if block is None and self.is_own(address):
            block = Block(network=ip_network(address), purpose="this machine")
        if block is None:
            return
        endpoint = f"[{address}]:{port}" if isinstance(address, IPv6Address) else f"{address}:{port}"
        cure = Cure(f'an operator who trusts it writes egress.private = ["{endpoint}"]')
        subject = str(address) if host == str(address) else f"{host}: {address}"
        raise ToolError(
            Kind.HOST_NOT_ALLOWED,
            f"{subject} lies in {block}",
            cure=cure,
            details={"host": host, "port": port, "address": str(address), "block": str(block)},
        )


def parse_private(endpoints: Iterable[str]) -> frozenset[tuple[Address, int]]:
    """Parse the operator's list of private endpoints, each an exact address with a port."""
    return frozenset(_parse_endpoint(text) for text in endpoints)


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Resolve a name with the system resolver."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialler:
    """Resolve hosts and connect to them as the policy allows."""

    policy: AddressPolicy
    resolve: Resolve = resolve_name

    async def look_up(self, host: str, port: int) -> list[Address]:
        """The addresses of a name; one forbidden address refuses all of them."""
        addresses = [ip_address(text) for text in await self._ask(host, port)]
        for address in addresses:
            self.policy.check(host, address, port)
        return addresses

    def open_socket(self, address: Address, port: int) -> socket.socket:
        """Create a socket to be connected, after a last check: no connection bypasses it."""
        self.policy.check(str(address), address, port)
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        return socket.socket(family, socket.SOCK_STREAM)

    async def dial(self, url: Url, *, name: str = "") -> socket.socket:
        """Connect to the host of the URL, at the first address that answers; messages call it `name`, or as its URL does."""
        addresses = [url.address] if url.address is not None else await self.look_up(url.host, url.port)
        waiting = _alternate(addresses)[:MAX_DIALLED]
        attempts: set[asyncio.Task[socket.socket]] = set()
        reason = ""
        try:
            while waiting or attempts:
                if waiting:
                    attempts.add(asyncio.create_task(self._connect(waiting.pop(0), url.port)))
                # The next address is tried when one has failed or does not answer soon: a network whose IPv6 leads nowhere
                # must not hold up every connection.
                seconds = STAGGER_SECONDS if waiting else None
                ended, _ = await asyncio.wait(attempts, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                for attempt in ended:
                    attempts.remove(attempt)
                    try:
                        return attempt.result()
                    except TimeoutError:
                        reason = f"no answer within {CONNECT_SECONDS} s"
                    except OSError as problem:
                        reason = os.strerror(problem.errno).lower() if problem.errno else "connection failed"
        finally:
            for attempt in attempts:
                attempt.cancel()
                attempt.add_done_callback(_close_late)
        raise unreachable(name or url.authority, reason)

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
        """Refuse a connection whose peer is not allowed."""
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


def _alternate(addresses: Sequence[Address]) -> list[Address]:
    """The addresses with those of the other family between them, beginning with the family that the resolver prefers."""
    first = [address for address in addresses if address.version == addresses[0].version]
    second = [address for address in addresses if address.version != addresses[0].version]
    return [address for pair in zip_longest(first, second) for address in pair if address is not None]


def _close_late(attempt: asyncio.Task[socket.socket]) -> None:
    """Close a connection that was made when another one had been chosen."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def unreachable(host: str, reason: str) -> ToolError:
    """The error for a connection that could not be established."""
    return ToolError(Kind.TRANSIENT, f"{host}: {reason}", retryable=True, details={"host": host, "reason": reason})


def _parse_endpoint(text: str) -> tuple[Address, int]:
    try:
        host, port = split_authority(text)
        if port is not None:
            return ip_address(host), port
    except (ToolError, ValueError):
        pass
    raise SettingsError(
        f'egress.private: {text!r} is not an address with a port; write "127.0.0.1:8080" or "[::1]:8080"'
    )
