"""`crib list` and `crib show`: which tools there are, and everything about one of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.opening import mention_problems
from toolcrib.faces.cli.printing import complain, on_one_line, say, say_facts, say_json, say_table
from toolcrib.faces.cli.properties import describe_type, properties_of
from toolcrib.model.session import MODES
from toolcrib.pure.export import to_openai
from toolcrib.pure.names import function_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.crib import Crib
    from toolcrib.model.tool import Entry, Tool

COLUMNS = ("name", "state", "bundle", "requires", "description")
NOTHING = "-"


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


def offer_of(crib: Crib, entry: Entry) -> Offer:
    """How models see the tool."""
    tool = entry.tool
    name = function_name(tool.name)
    if not entry.enabled:
        return Offer(name=name, reason=f"it is switched off, {entry.reason}; {entry.cure}")
    first = crib.find(tool.name)
    if first is not None and first.tool.address != tool.address:
        return Offer(name=name, reason=f"{first.tool.address} comes first by this name; rename one of them")
    return Offer(name=name, modes=tuple(sorted(MODES if tool.modes is None else tool.modes)))


def list_tools(crib: Crib, *, as_json: bool) -> ExitCode:
    """`crib list`."""
    if as_json:
        say_json([_facts(crib, entry) for entry in crib.entries])
    else:
        say_tools(crib, crib.entries)
    mention_problems(crib)
    return ExitCode.DONE


def say_tools(crib: Crib, entries: Iterable[Entry]) -> None:
    """The table of tools."""
    rows = [_row(crib, entry) for entry in entries]
    if rows:
        say_table(COLUMNS, rows)
    else:
        complain("there are no tools here; make the first one with: crib init")


def show_tool(crib: Crib, name: str, *, as_json: bool) -> ExitCode:
    """`crib show NAME`."""
    entry = crib.find(name)
    if entry is None:
        return complain_unknown(crib, name)
    if as_json:
        say_json({**_facts(crib, entry), "definition": to_openai(entry.tool)})
        return ExitCode.DONE
    tool = entry.tool
    say_facts([("tool", tool.name), ("does", tool.description), ("state", _state(entry))])
    say("")
    rows = list(_parameter_rows(tool))
    if rows:
        say_table(("parameter", "type", "default", "description"), rows)
    else:
        say("It takes no parameters.")
    say("")
    say_facts(_describe(crib, entry))
    return ExitCode.DONE


def complain_unknown(crib: Crib, name: str) -> ExitCode:
    """Say that there is no such tool, and what was perhaps meant."""
    hint = crib.suggest(name) or "list the tools with: crib list"
    complain(f"Tool {name[:200]!r} not found; {hint}")
    mention_problems(crib)
    return ExitCode.UNKNOWN_TOOL


def place_of(crib: Crib, tool: Tool) -> str:
    """Where a tool is written down, relative to the project if it lies in it."""
    if tool.origin is None:
        return ""
    path, root = Path(tool.origin.place), crib.settings.root
    inside = root is not None and path.is_absolute() and path.is_relative_to(root)
    return f"{path.relative_to(root) if inside and root else path}:{tool.origin.line}"


def _row(crib: Crib, entry: Entry) -> tuple[str, ...]:
    tool = entry.tool
    first = crib.find(tool.name)
    # A name that means another tool would be no name to call this one by.
    is_first = first is not None and first.tool.address == tool.address
    return (
        tool.name if is_first else tool.address,
        "on" if entry.enabled else "off",
        tool.bundle,
        ", ".join(sorted(tool.requires)) or NOTHING,
        (tool.description.splitlines() or [""])[0],
    )


def _state(entry: Entry) -> str:
    return "on" if entry.enabled else f"off: {entry.reason}; {entry.cure}"


def _parameter_rows(tool: Tool) -> Iterator[tuple[str, ...]]:
    required = tool.parameters.get("required")
    names = required if isinstance(required, list) else []
    for name, schema in properties_of(tool.parameters).items():
        default = "required" if name in names else NOTHING
        if "default" in schema:
            default = json.dumps(schema["default"], ensure_ascii=False)
        yield name, describe_type(schema, tool.parameters), default, str(schema.get("description", ""))


def _describe(crib: Crib, entry: Entry) -> Iterator[tuple[str, str]]:
    tool = entry.tool
    output = tool.output_schema
    yield "returns", "anything" if output is None else describe_type(output, output)
    yield "requires", ", ".join(sorted(tool.requires)) or "nothing"
    yield "side effects", "not declared" if tool.side_effects is None else str(tool.side_effects)
    yield "asks first", "yes" if tool.requires_confirmation else "no"
    yield "limits", ", ".join(_limits(crib, tool))
    yield "offered to models", str(offer_of(crib, entry))
    yield "address", tool.address
    yield "same name", ", ".join(crib.same_name(tool))
    yield "runs as", tool.kind
    yield "written in", place_of(crib, tool)
    yield "content", tool.content_hash
    for warning in tool.warnings:
        yield "warning", warning


def _limits(crib: Crib, tool: Tool) -> Iterator[str]:
    limits = tool.limits
    own = limits.timeout_ms
    yield f"{(own or crib.settings.timeout_ms) / 1000:g} s" + ("" if own else f" ({crib.settings.where('timeout_ms')})")
    if limits.latency_budget_ms is not None:
        yield f"meant to take {limits.latency_budget_ms} ms"
    if limits.calls_per_minute is not None:
        yield f"{limits.calls_per_minute} calls a minute"
    if limits.retry is not None:
        yield f"{limits.retry.max_attempts} attempts"


def _facts(crib: Crib, entry: Entry) -> dict[str, object]:
    tool = entry.tool
    return {
        "name": tool.name,
        "address": tool.address,
        "description": tool.description,
        "bundle": tool.bundle,
        "version": tool.version,
        "enabled": entry.enabled,
        "reason": entry.reason,
        "models": offer_of(crib, entry).to_json(),
        "sameName": crib.same_name(tool),
        "parameters": tool.parameters,
        "output": tool.output_schema,
        "requires": sorted(tool.requires),
        "sideEffects": tool.side_effects,
        "requiresConfirmation": tool.requires_confirmation,
        "limits": on_one_line(", ".join(_limits(crib, tool))),
        "kind": tool.kind,
        "origin": place_of(crib, tool),
        "contentHash": tool.content_hash,
        "warnings": list(tool.warnings),
    }
