"""Runners that stand for others: made when the first tool needs them, or chosen by what a tool runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Bound, Plugins, Runner
    from toolcrib.model.tool import Tool


# MERGED toolcrib.compat.plugins

# Plug-ins of installed packages.


def find_plugins(group: str) -> list[Callable[[], Callable[[Plugins], None]]]:
    """How to load each plug-in that an installed package names under the group.

    Asking importlib.metadata costs more than the rest of the start, so it is asked only if a file mentions the group.
    """
    needle = f"[{group}]".encode()
    folders = (Path(folder) for folder in sys.path if folder)
    files = (file for folder in folders for file in folder.glob("*.dist-info/entry_points.txt"))
    if not any(needle in file.read_bytes() for file in files):
        return []
    from importlib.metadata import entry_points

    return [point.load for point in entry_points(group=group)]


class Later:
    """Stands in for a runner until it is needed."""

    def __init__(self, kind: str, make: Callable[[], Runner]) -> None:
        self.kind = kind
        self._make = make
        self._runner: Runner | None = None

    def bind(self, tool: Tool) -> Bound:
        """As the runner does."""
        if self._runner is None:
            self._runner = self._make()
        return self._runner.bind(tool)

    async def close(self) -> None:
        """End what was started, if anything was."""
        if self._runner is not None:
            await self._runner.close()


class Either:
    """Leaves tools that run one thing to one runner, and all others of the kind to another."""

    def __init__(self, run: type, first: Runner, second: Runner) -> None:
        self.kind = first.kind
        self._run = run
        self._first = first
        self._second = second

    def bind(self, tool: Tool) -> Bound:
        """As the one does that is meant."""
        return (self._first if isinstance(tool.run, self._run) else self._second).bind(tool)

    async def close(self) -> None:
        """End what either started."""
        await self._first.close()
        await self._second.close()
