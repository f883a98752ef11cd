"""Runners that stand for others: made when the first tool needs them, or chosen by what a tool runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Bound, Runner
    from toolcrib.model.tool import Tool


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
