"""Read the facts of a server about a tool into a Tool that runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Backoff, Behaviour, Cost, Entry, Limits, Remote, RetryPolicy, SideEffects, Tool

if TYPE_CHECKING:
    from toolcrib.client.shapes import Document

# `estimate` is derived from the rest.
COST_KEYS = ("per_invocation", "per_minute", "estimated_duration", "currency")


def read_entry(facts: Document, url: str) -> Entry:
    """The entry of a tool as the server at the URL describes it; the facts were validated against their shape."""
    try:
        tool = _read_tool(facts, url)
    except (ValueError, TypeError, ToolError) as problem:
        message = f"{url} describes a tool that there cannot be: {str(problem)[:300]}; let both be of the same version"
        raise ToolError(Kind.PERMANENT, message) from problem
    return Entry(tool=tool, enabled=facts["enabled"], reason=facts["reason"], cure=facts["cure"])


def _read_tool(facts: Document, url: str) -> Tool:
    behaviour, side_effects, modes, cost = (facts[key] for key in ("behaviour", "sideEffects", "modes", "cost"))
    return Tool(
        name=facts["name"],
        description=facts["description"],
        parameters=facts["parameters"],
        run=Remote(kind=facts["kind"], url=url, digest=facts["contentHash"]),
        version=facts["version"],
        display_name=facts["displayName"],
        output_schema=facts["output"],
        bundle=facts["bundle"],
        category=facts["category"],
        source_type=facts["sourceType"],
        behaviour=None if behaviour is None else Behaviour(behaviour),
        side_effects=None if side_effects is None else SideEffects(side_effects),
        idempotent=facts["idempotent"],
        requires_confirmation=facts["requiresConfirmation"],
        modes=None if modes is None else frozenset(modes),
        requires=frozenset(facts["requires"]),
        limits=_read_limits(facts),
        cost=None if cost is None else Cost(**{key: cost[key] for key in COST_KEYS}),
        tags=tuple(facts["tags"]),
        summary=facts["summary"],
        documentation=facts["documentation"],
        examples=tuple(facts["examples"]),
        metadata=facts["metadata"],
        deprecated=facts["deprecated"],
        warnings=tuple(facts["warnings"]),
    )


def _read_limits(facts: Document) -> Limits:
    own, retry = facts["ownLimits"], facts["retry"]
    return Limits(
        timeout_ms=own["timeoutMs"],
        latency_budget_ms=own["latencyBudgetMs"],
        calls_per_minute=own["callsPerMinute"],
        retry=None if retry is None else RetryPolicy(**{**retry, "backoff": Backoff(retry["backoff"])}),
    )
