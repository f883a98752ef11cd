"""What a Crib does with scripts besides calling them: check their chains, install what they need, open sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.call_state import missing_grants
from toolcrib.features.scripts.preparation import chain_problem, prepare_tool
from toolcrib.features.scripts.sink import open_sink
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.features.scripts.sink import Sink
    from toolcrib.model.tool import Entry, Tool


class Scripts:
    """The scripts of one Crib."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def chain_problem(self, tool: Tool) -> str:
        """What keeps every call of the tool from reaching a primitive; empty if nothing does."""
        return chain_problem(tool, self._resources.find_below)

    def prepare(self, tool: Tool, say: Callable[[str], None] | None) -> Path | None:
        """Install what a Python file declares; the Python that has it, None if it declares nothing."""
        return prepare_tool(tool, self._resources.get("environments"), self._resources.environment.get("PATH", ""), say)

    def open_sink(self, entry: Entry, arguments: Mapping[str, object]) -> AbstractAsyncContextManager[Sink]:
        """Open a sink to write events to."""
        if not entry.enabled:
            raise ToolError(Kind.DISABLED, f"{entry.tool.name} is switched off: {entry.reason}")
        resources = self._resources
        return open_sink(
            entry.tool,
            arguments,
            sandbox=resources.get("sandbox"),
            premises=resources.get("premises"),
            jail=resources.get("jail"),
            egress=lambda: resources.get("egress"),
            missing=lambda required: missing_grants(required, resources.settings.grants),
        )
