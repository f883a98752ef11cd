"""Everything that is known about a tool: in lines for people, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.crib.offering import NOT_OFFERED
from toolcrib.faces.cli.hiding import hide_secrets
from toolcrib.faces.cli.printing import on_one_line
from toolcrib.faces.cli.properties import describe_type
from toolcrib.model.session import MODES
from toolcrib.model.tool import Chained, Handler
from toolcrib.pure.names import function_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.crib import Crib
    from toolcrib.model.limits import Cost, RetryPolicy
    from toolcrib.model.tool import Entry, Tool

EXPERIMENTAL = "experimental"
BROKEN_FILE = "a broken file"
SHORT_LINES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Whether and how models see a tool; without modes it is not offered, for the reason given."""

    name: str
    modes: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"no: {self.reason}"
        return f"yes, as {self.name}, in {' and '.join(self.modes)} mode"

    def to_json(self) -> dict[str, object]:
        """The offer as JSON."""
        return {"offered": not self.reason, "as": self.name, "modes": list(self.modes), "reason": self.reason}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shadow:
    """The other tools of a tool's name, and which of them, or what else, is meant by it."""

    others: tuple[str, ...] = ()
    by: str = ""

    @property
    def over(self) -> tuple[str, ...]:
        """The tools that only their address can call."""
        return () if self.by else self.others

    def __str__(self) -> str:
        if self.by:
            return f"shadowed by {self.by}"
        return f"shadows {', '.join(self.over)}" if self.over else ""


def shadow_of(crib: Crib, tool: Tool) -> Shadow:
    """How the tool stands among those of its name."""
    others = tuple(crib.same_name(tool))
    first = crib.find(tool.name)
    if first is None:
        return Shadow(others=others, by=BROKEN_FILE)
    return Shadow(others=others, by="" if first.tool.address == tool.address else first.tool.address)


def offer_of(crib: Crib, entry: Entry) -> Offer:
    """How models see the tool."""
    return _offer(entry, shadow_of(crib, entry.tool))


def _offer(entry: Entry, shadow: Shadow) -> Offer:
    tool = entry.tool
    name = function_name(tool.name)
    if not entry.enabled:
        return Offer(name=name, reason=f"it is switched off, {entry.reason}; {entry.cure}")
    if shadow.by:
        return Offer(name=name, reason=f"{shadow.by} comes first by this name; rename one of them")
    if tool.kind in NOT_OFFERED:
        return Offer(name=name, reason=NOT_OFFERED[tool.kind])
    return Offer(name=name, modes=tuple(sorted(MODES if tool.modes is None else tool.modes)))


def marks_of(tool: Tool) -> list[str]:
    """What to know before relying on the tool."""
    is_marked = {
        "deprecated": tool.deprecated,
        EXPERIMENTAL: tool.metadata.get(EXPERIMENTAL) is True,
        "asks first": tool.requires_confirmation,
        **{f"{mode} only": tool.modes == frozenset({mode}) for mode in sorted(MODES)},
    }
    return [mark for mark, is_set in is_marked.items() if is_set]


def place_of(crib: Crib, tool: Tool) -> str:
    """Where a tool is written down, relative to the project if it lies in it."""
    if tool.origin is None:
        return ""
    path, root = Path(tool.origin.place), crib.settings.root
    inside = root is not None and path.is_absolute() and path.is_relative_to(root)
    return f"{path.relative_to(root) if inside and root else path}:{tool.origin.line}"


def describe(crib: Crib, entry: Entry) -> Iterator[tuple[str, str]]:
    """What is known, besides name, description, state and parameters; what says nothing is empty."""
    tool = entry.tool
    output = tool.output_schema
    shadow = shadow_of(crib, tool)
    yield "returns", "anything" if output is None else describe_type(output, output)
    yield "requires", ", ".join(sorted(tool.requires)) or "nothing"
    yield "behaviour", "" if tool.behaviour is None else str(tool.behaviour)
    yield "side effects", "not declared" if tool.side_effects is None else str(tool.side_effects)
    yield "asks first", "yes" if tool.requires_confirmation else "no"
    yield "limits", ", ".join(_limits(crib, tool))
    yield "costs", "" if tool.cost is None else _price(tool.cost)
    yield "offered to models", str(_offer(entry, shadow))
    yield "address", tool.address
    yield "shadows", ", ".join(shadow.over)
    yield "shadowed by", shadow.by
    yield "category", tool.category
    yield "tags", ", ".join(tool.tags)
    yield "runs as", tool.kind
    yield "summary", tool.summary
    yield from _describe_run(tool)
    yield "documentation", _shown_documentation(tool)
    failing = crib.examples.failing().get(tool.content_hash, [])
    for example in tool.examples:
        yield "example", _text(example) + (" (fails; models are not shown it)" if example in failing else "")
    for name, value in tool.metadata.items():
        # Not as a line of its own name, which could be one of ours.
        yield "metadata", f"{name}: {value if isinstance(value, str) else _text(value)}"
    yield "written in", place_of(crib, tool)
    yield "content", tool.content_hash
    for warning in tool.warnings:
        yield "warning", warning


def _shown_documentation(tool: Tool) -> str:
    """The text, or for one that has structure where to read it."""
    lines = tool.documentation.strip().count("\n") + 1
    return tool.documentation if lines <= SHORT_LINES else f"{lines} lines; read it with: crib doc {tool.name}"


def facts_of(crib: Crib, entry: Entry) -> dict[str, object]:
    """What is known, as JSON."""
    tool = entry.tool
    shadow = shadow_of(crib, tool)
    return {
        "name": tool.name,
        "address": tool.address,
        "description": tool.description,
        "bundle": tool.bundle,
        "version": tool.version,
        "category": tool.category,
        "tags": list(tool.tags),
        "enabled": entry.enabled,
        "reason": entry.reason,
        "marks": marks_of(tool),
        "models": _offer(entry, shadow).to_json(),
        "sameName": list(shadow.others),
        "shadows": list(shadow.over),
        "shadowedBy": shadow.by or None,
        "parameters": tool.parameters,
        "output": tool.output_schema,
        "requires": sorted(tool.requires),
        "behaviour": tool.behaviour,
        "sideEffects": tool.side_effects,
        "requiresConfirmation": tool.requires_confirmation,
        "limits": on_one_line(", ".join(_limits(crib, tool))),
        "timeoutMs": tool.limits.timeout_ms or crib.settings.timeout_ms,
        "retry": None if tool.limits.retry is None else asdict(tool.limits.retry),
        "cost": None if tool.cost is None else {**asdict(tool.cost), "estimate": tool.cost.estimate()},
        "kind": tool.kind,
        **_facts_of_run(tool),
        "summary": tool.summary,
        "documentation": tool.documentation,
        "examples": list(tool.examples),
        "metadata": dict(tool.metadata),
        "origin": place_of(crib, tool),
        "contentHash": tool.content_hash,
        "warnings": list(tool.warnings),
    }


def _describe_run(tool: Tool) -> Iterator[tuple[str, str]]:
    run = tool.run
    if isinstance(run, Handler):
        yield "handler", f"{run.path} ({run.language})"
        yield "reaches", "" if run.hosts is None else ", ".join(run.hosts) or "no host"
        yield "registry", run.registry
    if not isinstance(run, Chained):
        return
    yield "type", run.tool_type
    yield "executor", run.executor or "none"
    yield "action", run.action
    yield "reaches", "" if run.hosts is None else ", ".join(run.hosts) or "no host"
    yield "config", _text(hide_secrets(run.config)) if run.config else ""


def _facts_of_run(tool: Tool) -> Mapping[str, object]:
    run = tool.run
    if isinstance(run, Handler):
        hosts = None if run.hosts is None else list(run.hosts)
        return {"handler": run.path, "language": run.language, "hosts": hosts, "registry": run.registry}
    if not isinstance(run, Chained):
        return {}
    return {
        "toolType": run.tool_type,
        "executor": run.executor,
        "action": run.action or None,
        "hosts": None if run.hosts is None else list(run.hosts),
        "config": hide_secrets(dict(run.config)),
    }


def _limits(crib: Crib, tool: Tool) -> Iterator[str]:
    limits = tool.limits
    own = limits.timeout_ms
    yield f"{(own or crib.settings.timeout_ms) / 1000:g} s" + ("" if own else f" ({crib.settings.where('timeout_ms')})")
    if limits.latency_budget_ms is not None:
        yield f"meant to take {limits.latency_budget_ms} ms"
    if limits.calls_per_minute is not None:
        yield f"{limits.calls_per_minute} calls a minute"
    if limits.retry is not None:
        yield f"{limits.retry.max_attempts} attempts{_waits(limits.retry)}"


def _waits(retry: RetryPolicy) -> str:
    """The pauses between attempts, for as many as can be read at a glance."""
    pauses = [f"{retry.delay_after(attempt):g} s" for attempt in range(1, min(retry.max_attempts, 5))]
    more = ", …" if retry.max_attempts > len(pauses) + 1 else ""
    return f" ({retry.backoff}: {', '.join(pauses)}{more})" if pauses else ""


def _price(cost: Cost) -> str:
    """The price in words; the estimate is for a call that takes as long as the author expects."""
    parts = [
        f"{amount:g} {cost.currency} a {unit}"
        for amount, unit in ((cost.per_invocation, "call"), (cost.per_minute, "minute"))
        if amount
    ]
    estimate = f"about {cost.estimate():g} {cost.currency} for a call of {cost.estimated_duration:g} s"
    return "; ".join([" and ".join(parts) or "nothing", estimate] if cost.estimated_duration else parts or ["nothing"])


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
