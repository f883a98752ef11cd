"""Which tools a model is told of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.model.tool import Entry, Tool

# Kinds that other tools use and nobody calls.
NOT_OFFERED = {
    "library": "it is a library, which other tools use",
    "runtime": "it is a runtime, which runs other tools",
    "sink": "it is a sink, which other tools write to",
}


def offered_tools(entries: Iterable[Entry], find: Callable[[str], Entry | None], mode: str | None) -> tuple[Tool, ...]:
    """Those that are switched on, that can be called, by their bare name, and in the mode if one is given."""
    return tuple(entry.tool for entry in entries if _is_offered(entry, find, mode))


def without_failing(tools: Iterable[Tool], failing: Mapping[str, list[dict[str, object]]]) -> tuple[Tool, ...]:
    """The tools without the examples that failed when they were last tried, by the content hashes of their tools."""
    if not failing:
        return tuple(tools)
    return tuple(_without(tool, failing.get(tool.content_hash, [])) if tool.examples else tool for tool in tools)


def _without(tool: Tool, failing: list[dict[str, object]]) -> Tool:
    if not failing:
        return tool
    return replace(tool, examples=tuple(example for example in tool.examples if example not in failing))


def _is_offered(entry: Entry, find: Callable[[str], Entry | None], mode: str | None) -> bool:
    tool = entry.tool
    if not entry.enabled or tool.kind in NOT_OFFERED:
        return False
    if mode is not None and tool.modes is not None and mode not in tool.modes:
        return False
    meant = find(tool.name)
    return meant is not None and meant.tool is tool
