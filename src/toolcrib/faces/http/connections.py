"""How many connections are open, altogether and from each address, and how many may be."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address

# Whoever has one address of IPv6 has all that share its first half.
SHARED_BITS = 64


class Connections:
    """The door: it lets a connection in, or not, and is told when one is over."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self.most = most
        self.most_per_address = most_per_address
        self.total = 0
        self.refused = 0
        self._by_neighbour: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Let a connection from the address in; False if there are enough already."""
        neighbour = neighbour_of(address)
        if self.total >= self.most or self._by_neighbour[neighbour] >= self.most_per_address:
            self.refused += 1
            return False
        self.total += 1
        self._by_neighbour[neighbour] += 1
        return True

    def leave(self, address: str) -> None:
        """A connection that was let in is over."""
        neighbour = neighbour_of(address)
        self.total -= 1
        self._by_neighbour[neighbour] -= 1
        if not self._by_neighbour[neighbour]:
            del self._by_neighbour[neighbour]


def neighbour_of(address: str) -> str:
    """Who is counted as one: an IPv4 address, or everyone in the same half of IPv6."""
    if ":" not in address:
        return address
    number = ip_address(address.partition("%")[0])
    if not isinstance(number, IPv6Address):
        return str(number)
    return str(number.ipv4_mapped or int(number) >> SHARED_BITS)
