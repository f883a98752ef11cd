"""`crib list` and `crib show`: which tools there are, and everything about one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.faces.cli.building import unbuilt_rows
from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.facts import describe, facts_of, marks_of, offer_of, place_of, shadow_of
from toolcrib.faces.cli.opening import mention_problems
from toolcrib.faces.cli.printing import complain, say, say_facts, say_json, say_table
from toolcrib.faces.cli.properties import describe_type, properties_of
from toolcrib.model.tool import Handler
from toolcrib.pure.export import to_openai

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.tool import Entry, Tool

    Unbuilt = tuple[str, str, str, str]

__all__ = ["complain_unknown", "list_tools", "offer_of", "place_of", "say_tools", "show_tool"]

COLUMNS = ("name", "state", "bundle", "kind", "requires", "description")
NOTHING = "-"
NOT_BUILT = "not built"


def list_tools(crib: Crib, *, as_json: bool, tags: Sequence[str] = (), executors: bool = False) -> ExitCode:
    """`crib list [--tag TAG…]`: all tools, or those with every one of the tags; or what executes them."""
    found = crib.executors if executors else crib.entries
    entries = [entry for entry in found if _has_tags(entry.tool, tags)]
    unbuilt = [] if executors or tags else list(unbuilt_rows(crib))
    if as_json:
        say_json([*(facts_of(crib, entry) for entry in entries), *map(_unbuilt_facts, unbuilt)])
    elif tags and not entries:
        known = sorted({tag for tool in crib.tools for tag in tool.tags})
        complain(f"no tool has the tag {' and '.join(tags)}; tags are {', '.join(known) or 'not used here'}")
    else:
        say_tools(crib, entries, unbuilt)
    mention_problems(crib)
    return ExitCode.DONE


def say_tools(crib: Crib, entries: Iterable[Entry], unbuilt: Iterable[Unbuilt] = ()) -> None:
    """The table of tools, those that are not built behind the others."""
    rows = [*(_row(crib, entry) for entry in entries), *map(_unbuilt_row, unbuilt)]
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
        say_json({**facts_of(crib, entry), "definition": to_openai(entry.tool)})
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
    say_facts(describe(crib, entry))
    return ExitCode.DONE


def complain_unknown(crib: Crib, name: str) -> ExitCode:
    """Say that there is no such tool, and what was perhaps meant."""
    hint = crib.suggest(name) or "list the tools with: crib list"
    complain(f"Tool {name[:200]!r} not found; {hint}")
    mention_problems(crib)
    return ExitCode.UNKNOWN_TOOL


def _has_tags(tool: Tool, tags: Iterable[str]) -> bool:
    return {tag.casefold() for tag in tags} <= {tag.casefold() for tag in tool.tags}


def _row(crib: Crib, entry: Entry) -> tuple[str, ...]:
    tool = entry.tool
    shadow = shadow_of(crib, tool)
    state = ["on" if entry.enabled else "off", *marks_of(tool), str(shadow)]
    return (
        # A name that means another tool would be no name to call this one by.
        tool.address if shadow.by else tool.name,
        ", ".join(filter(None, state)),
        tool.bundle,
        tool.kind,
        ", ".join(sorted(tool.requires)) or NOTHING,
        (tool.description.splitlines() or [""])[0],
    )


def _unbuilt_row(unbuilt: Unbuilt) -> tuple[str, ...]:
    name, bundle, folder, reason = unbuilt
    return (name, NOT_BUILT, bundle, Handler.kind, NOTHING, f"{folder}: {reason}; run: crib build")


def _unbuilt_facts(unbuilt: Unbuilt) -> dict[str, object]:
    name, bundle, folder, reason = unbuilt
    return {"name": name, "bundle": bundle, "enabled": False, "reason": f"{NOT_BUILT}: {reason}", "origin": folder}


def _state(entry: Entry) -> str:
    marks = ", ".join(["on" if entry.enabled else "off", *marks_of(entry.tool)])
    return marks if entry.enabled else f"{marks}: {entry.reason}; {entry.cure}"


def _parameter_rows(tool: Tool) -> Iterator[tuple[str, ...]]:
    required = tool.parameters.get("required")
    names = required if isinstance(required, list) else []
    for name, schema in properties_of(tool.parameters).items():
        default = "required" if name in names else NOTHING
        if "default" in schema:
            default = json.dumps(schema["default"], ensure_ascii=False)
        yield name, describe_type(schema, tool.parameters), default, str(schema.get("description", ""))
