"""Make Tools of the instances, registries and classes that existing agent code consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.agent_classes.classes import BaseTool, ToolRegistry, tool_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from toolcrib.model.tool import Tool


class AgentClassConverter:
    """Takes instances of BaseTool, and classes that nobody made an instance of."""

    def converts(self, value: object) -> bool:
        """Whether it is an instance of BaseTool or a class of such."""
        return isinstance(value, BaseTool) or (isinstance(value, type) and issubclass(value, BaseTool))

    def convert(self, value: object) -> Tool:
        """The Tool of an instance, or of the instance that is made of a class."""
        return tool_from(value() if isinstance(value, type) else value)  # type: ignore[arg-type]  # tool_from refuses others

    def is_tool(self, value: object) -> bool:
        """Whether it is an instance of BaseTool."""
        return isinstance(value, BaseTool)

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """Instances of agent-side tools, and their classes that nobody made an instance of."""
        values = list(values)
        registered = [tool for value in values if isinstance(value, ToolRegistry) for tool in value.instances]
        instances = [value for value in (*registered, *values) if isinstance(value, BaseTool)]
        classes = [value for value in values if isinstance(value, type) and issubclass(value, BaseTool)]
        own = [kind for kind in classes if kind.__module__ == module.__name__]
        return [*instances, *(kind for kind in own if not _is_used(kind, instances, classes))]

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """None: agent code names no functions for bundles."""
        return {}


def _is_used(kind: type, instances: Sequence[object], classes: Sequence[type]) -> bool:
    """Whether the module makes an instance of the class, or another class of it."""
    is_made = any(isinstance(instance, kind) for instance in instances)
    return is_made or any(other is not kind and issubclass(other, kind) for other in classes)
