"""Find what keeps tools from running on this machine, without making a call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolcrib.lib.sample_values import sample_arguments
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.tool_facts import NOT_OFFERED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Tool

    FindObstacle = Callable[[Tool, dict[str, object]], ToolError | None]

# Errors of a runner that are the same for all arguments.
CERTAIN = frozenset({Kind.EXECUTOR_NOT_FOUND, Kind.SANDBOX_UNAVAILABLE, Kind.CAPABILITY_MISSING, Kind.AUTH})
# Errors about variables and secrets.
OF_VALUES = frozenset({Kind.VALIDATION, Kind.CAPABILITY_MISSING})

RUNS_IT = "something to run it"


class Readiness:
    """Asks what a call would ask before it runs anything; `find_obstacle` says why the runner of a tool would refuse."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def problems(self) -> list[ToolError]:
        """What is wrong with the project as a whole on this machine."""
        folder = self._resources.data.path
        problem = "" if folder is None else _data_problem(folder)
        return [ToolError(Kind.VALIDATION, problem)] if problem else []

    def obstacles(self, tool: Tool, find_obstacle: FindObstacle) -> list[str]:
        """What keeps the tool from running, each with its cure."""
        if problem := self._resources.get("scripts").chain_problem(tool):
            return [problem]
        if tool.kind in NOT_OFFERED:
            return []
        needs = [f"it needs {need}" for need in self._needs(tool)]
        return [*needs, *self._refused(tool, find_obstacle, is_known=bool(needs))]

    def missing(self, tool: Tool, find_obstacle: FindObstacle) -> list[str]:
        """What the tool needs and has not got, as `it needs …` goes on."""
        needs = self._needs(tool)
        return [*needs, *self._refused(tool, find_obstacle, is_known=bool(needs), what=f"{RUNS_IT}: ")]

    def _needs(self, tool: Tool) -> list[str]:
        return [need for owner in ("scripts", "valves") for need in self._resources.get(owner).missing(tool)]

    def _refused(self, tool: Tool, find_obstacle: FindObstacle, *, is_known: bool, what: str = "") -> list[str]:
        """What its runner would refuse for all arguments; not what `is_known` already, in words that say more."""
        refusal = find_obstacle(tool, sample_arguments(tool.parameters))
        if refusal is None:
            return []
        if refusal.lacks:
            return [lack for lack, kind in refusal.lacks.items() if not (is_known and kind in OF_VALUES)]
        if is_known and refusal.kind is not Kind.SANDBOX_UNAVAILABLE:
            return []
        return [f"{what}{refusal.message}"] if refusal.kind in CERTAIN or "slot" in refusal.details else []


def _data_problem(folder: Path) -> str:
    """Why nothing can be stored in our data folder; empty if it can."""
    place = folder
    # The folder is created on first use, so the nearest existing parent is checked.
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    cure = "set project.data_dir in toolcrib.toml to a folder outside the project that can be written"
    if not place.is_dir():
        return f"{place} is not a folder, so nothing can be kept there; move it away, or {cure}"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{place} cannot be written, so no call, token or result can be kept; make it writable, or {cure}"
    return ""
