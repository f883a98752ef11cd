"""The way out of a job that has a network: our proxy, which leads to the hosts that its tool names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.ground.egress import Egress
    from toolcrib.ground.sandbox.attempt import Proxy
    from toolcrib.runners.witness import Witness


def lead_out(
    egress: Callable[[], Egress], hosts: tuple[str, ...] | None, deadline: float, witness: Witness | None = None
) -> Proxy:
    """What answers where the job knocks; without hosts it leads wherever a tool may go."""
    from toolcrib.ground.egress import parse_hosts

    proxy = egress().proxy(None if hosts is None else parse_hosts(hosts), deadline=deadline)
    return proxy if witness is None else witness.follow(proxy)
