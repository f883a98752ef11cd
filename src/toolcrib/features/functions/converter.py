"""Make Tools of functions that the host program hands over or that its modules hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.functions.decorators import functions_among, is_tool
from toolcrib.features.functions.definition import tool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from toolcrib.model.tool import Tool


class FunctionConverter:
    """Takes any function that is handed over, and of those in a module the ones with `@tool`."""

    def converts(self, value: object) -> bool:
        """Whether it can be called."""
        return callable(value)

    def convert(self, value: object) -> Tool:
        """The Tool of a function."""
        return tool_of(value)

    def is_tool(self, value: object) -> bool:
        """Whether `@tool` stands above it."""
        return is_tool(value)

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """The values with `@tool`."""
        return [value for value in values if is_tool(value)]

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """The functions that tools of bundles name, by their keys."""
        return functions_among(values)
