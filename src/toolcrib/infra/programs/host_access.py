"""The proxy by which a job reaches its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib.http_syntax import parse_hosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.programs.observed_effects import EffectRecorder
    from toolcrib.infra.sandbox.attempt import Proxy


def lead_out(
    egress: Callable[[], Egress], hosts: tuple[str, ...] | None, deadline: float, recorder: EffectRecorder | None = None
) -> Proxy:
    """The proxy of a job; without hosts it allows every public host."""
    proxy = egress().proxy(None if hosts is None else parse_hosts(hosts), deadline=deadline)
    return proxy if recorder is None else recorder.record_visits(proxy)
