"""The classes of existing agent code (BaseTool, ToolRegistry, ToolCall, ToolResult), and their conversion to Tools."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.core.call_state import Policy
from toolcrib.core.catalog import Catalog
from toolcrib.core.confirmations import Confirmations
from toolcrib.core.journal import MemoryJournal
from toolcrib.core.pipeline import Pipeline
from toolcrib.core.rules import RuleEngine
from toolcrib.features.functions.runner import FunctionRunner
from toolcrib.infra.secrets.lookup import new_key
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.expiring import KeptResults
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.lib.export_schemas.definitions import to_openai
from toolcrib.lib.names import function_names
from toolcrib.lib.presentation import to_text
from toolcrib.lib.python_declarations import is_generator
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Function, Origin, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from toolcrib.model.result import Result


BUNDLE = "host"
MEMBERS = ("name", "description", "parameters", "execute")
ROOT_RULE = 'parameters.type must be "object"'


@dataclass
class ToolCall:
    """A call that a model asks for."""

    id: str
    name: str
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass
class ToolResult:
    """The result that the model gets."""

    tool_call_id: str
    output: object = ""
    error: str | None = None
    success: bool = True

    def to_message(self) -> dict[str, object]:
        """The result as a message of the conversation."""
        content = to_text(self.output)
        if not self.success:
            content = f"Error: {self.error}" + (f"\n{content}" if content else "")
        return {"role": "tool", "tool_call_id": self.tool_call_id, "content": content}


def create_json_schema(properties: Mapping[str, object], required: Iterable[str] | None = None) -> dict[str, object]:
    """The parameters of a tool: an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required or ())}


class DuplicateToolError(ToolError, ValueError):
    """A name that is taken; agents written for the original registry catch ValueError."""

    def __init__(self, message: str) -> None:
        super().__init__(Kind.CONFLICT, message)


class BaseTool(ABC):
    """A tool written as a class: name, description, parameters and an async `execute`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model calls it."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it does."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, object]:
        """Its arguments as a JSON Schema of type object."""

    @abstractmethod
    async def execute(self, arguments: dict[str, object]) -> ToolResult:
        """Do the work."""

    async def call(self, tool_call: ToolCall) -> ToolResult:
        """Call this tool through the pipeline, without a registry; errors are in the result."""
        registry = ToolRegistry()
        try:
            registry.register(self)
        except Exception as problem:  # noqa: BLE001 - the border to foreign code: its properties may do anything
            error = f"{type(self).__qualname__} cannot be used: {problem}"
            return ToolResult(tool_call.id, error=error, success=False)
        return await registry.execute(tool_call)


class ToolRegistry:
    """Tools by name, called through the pipeline."""

    def __init__(self, rules: RuleEngine | None = None) -> None:
        self._tools: dict[str, tuple[BaseTool, Tool]] = {}
        self._catalog = Catalog()
        store = MemoryStore()
        ledger = UsageLedger(None)
        confirmations, kept = Confirmations(new_key, lambda: ledger), KeptResults(lambda: store)
        self._pipeline = Pipeline(
            find=self._catalog.find,
            known=self._catalog.known,
            cure_for=self._catalog.cure_for,
            rules=RuleEngine() if rules is None else rules,
            runners={Function.kind: FunctionRunner()},
            journal=MemoryJournal(),
            confirmations=lambda: confirmations,
            kept=lambda: kept,
            policy=Policy(),
        )

    def register(self, tool: BaseTool) -> None:
        """Add a tool; raises for a name that is taken or a schema that models refuse."""
        canonical = tool_from(tool)
        self._pipeline.check(canonical)
        try:
            self._catalog.add(canonical)
        except ToolError as problem:
            message = f"Tool {canonical.name!r} is already registered; unregister it first"
            raise DuplicateToolError(message) from problem
        self._tools[canonical.name] = (tool, canonical)

    def unregister(self, name: str) -> bool:
        """Remove a tool; False if there is none of that name."""
        found = self._tools.pop(name, None)
        if found is not None:
            self._catalog.remove(found[1])
        return found is not None

    def get(self, name: str) -> BaseTool | None:
        """The tool of that name."""
        found = self._tools.get(name)
        return None if found is None else found[0]

    def has(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return name in self._tools

    def list(self) -> list[str]:
        """The names, in the order of registration."""
        return [*self._tools]

    def clear(self) -> None:
        """Remove every tool."""
        for name in self.list():
            self.unregister(name)

    def count(self) -> int:
        """How many tools there are."""
        return len(self._tools)

    def definitions(self) -> Iterable[dict[str, object]]:
        """The definitions of the tools for a model."""
        function_names(self._tools)
        return [to_openai(tool) for _, tool in self._tools.values()]

    @property
    def instances(self) -> tuple[BaseTool, ...]:
        """The tools themselves."""
        return tuple(tool for tool, _ in self._tools.values())

    async def execute(self, tool_call: ToolCall) -> ToolResult:
        """Make one call; errors are in the result."""
        call = Call(name=tool_call.name, arguments=tool_call.arguments, id=tool_call.id)
        return to_tool_result(await self._pipeline.call(call), tool_call.id)

    async def execute_all(self, tool_calls: Iterable[ToolCall]) -> Iterable[ToolResult]:
        """Make the calls of one turn concurrently; results are in the order of the calls."""
        return await asyncio.gather(*(self.execute(tool_call) for tool_call in tool_calls))


def to_tool_result(result: Result, tool_call_id: str) -> ToolResult:
    """A result as the agent-side record: output as text, the error as its message."""
    output = to_text(result.value) + _say_if_cut(result.meta.get("kept"))
    if result.error is None:
        return ToolResult(tool_call_id=tool_call_id, output=output)
    error = result.error.message
    if result.error.kind is Kind.BLOCKED:
        error = f"Tool call blocked: {error}"
    return ToolResult(tool_call_id=tool_call_id, output=output, error=error, success=False)


def _say_if_cut(kept: object) -> str:
    return f"\n[cut: {kept['shown']} of {kept['letters']} letters]" if isinstance(kept, dict) else ""


def tool_from(tool: BaseTool) -> Tool:
    """The Tool of an instance; raises ToolError, with the property and what it lacks, for a schema that models refuse."""
    if not _is_agent_tool(tool):
        raise ToolError(Kind.VALIDATION, f"{tool!r:.80} is not an instance of BaseTool; write register(MyTool())")
    kind = type(tool)
    texts: tuple[object, ...] = (tool.name, tool.description)
    if not all(isinstance(text, str) for text in texts):
        raise ToolError(Kind.VALIDATION, f"tool {kind.__qualname__}: name and description must be texts")
    parameters = _check_parameters(f"tool {tool.name!r}", tool.parameters)

    async def execute(**arguments: object) -> object:
        answer: object = tool.execute(arguments)
        return await answer if inspect.isawaitable(answer) else answer

    yields = is_generator(kind.execute)
    # The hash covers the author's class, not this wrapper.
    execute.__wrapped__ = kind.execute  # type: ignore[attr-defined]  # functions take attributes
    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=parameters,
        bundle=BUNDLE,
        run=Function(
            call=execute,
            is_async=True,
            # The value of a generator is the list of its items.
            flatten=None if yields else lambda answer: _value_of(answer, tool.name),
            yields=yields,
        ),
        origin=_origin(kind),
        source_type="BaseTool",
    )


def _origin(kind: type[BaseTool]) -> Origin:
    # Not inspect.getsourcefile, which fails for a class that was typed in at a prompt.
    code = getattr(inspect.unwrap(kind.execute), "__code__", None)
    return Origin(place=kind.__module__) if code is None else Origin(place=code.co_filename, line=code.co_firstlineno)


def _check_parameters(place: str, parameters: object) -> dict[str, object]:
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        kind = parameters.get("type") if isinstance(parameters, dict) else type(parameters).__name__
        raise ToolError(Kind.VALIDATION, f"{place}: {ROOT_RULE}, not {kind!r}; use create_json_schema()")
    properties = parameters.get("properties", {})
    if not isinstance(properties, dict):
        raise ToolError(Kind.VALIDATION, f"{place}: properties must be an object")
    missing = [
        f"property {name!r} has no {key}"
        for name, schema in properties.items()
        for key in ("type", "description")
        if not isinstance(schema, dict) or not schema.get(key)
    ]
    if missing:
        raise ToolError(Kind.VALIDATION, f"{place}: {'; '.join(missing)}; each property needs type and description")
    return parameters


def _value_of(answer: object, name: str) -> object:
    if not isinstance(answer, ToolResult) and not _has_result_shape(answer):
        message = f"{name} returned a {type(answer).__name__}; execute must return a ToolResult"
        raise ToolError(Kind.INTERNAL, message, partial_side_effects=True)
    output, error = getattr(answer, "output", None), getattr(answer, "error", None)
    if not getattr(answer, "success", False):
        raise ToolError(Kind.PERMANENT, str(error or "the tool failed"), value=output or None)
    return output


def _has_result_shape(answer: object) -> bool:
    """Whether it is a ToolResult of a class that the project defines itself."""
    is_named = type(answer).__name__ == ToolResult.__name__
    return is_named and isinstance(getattr(answer, "success", None), bool) and hasattr(answer, "output")


def _is_agent_tool(value: object) -> bool:
    """Whether it is an instance of BaseTool, or of a class of the project with the same members."""
    return isinstance(value, BaseTool) or (not isinstance(value, type) and _is_agent_class(type(value)))


def _is_agent_class(kind: type) -> bool:
    if issubclass(kind, BaseTool):
        return True
    bases = {base.__name__ for base in kind.__mro__[1:]}
    return (
        BaseTool.__name__ in bases
        and all(hasattr(kind, name) for name in MEMBERS)
        and callable(getattr(kind, "execute", None))
    )


class AgentClassConverter:
    """Converts instances of BaseTool, and classes without an instance; also of a project's own BaseTool with the same members."""

    def converts(self, value: object) -> bool:
        """Whether it is an instance of BaseTool or a class of such."""
        return _is_agent_class(value) if isinstance(value, type) else _is_agent_tool(value)

    def convert(self, value: object) -> Tool:
        """The Tool of an instance, or of the instance that is made of a class."""
        return tool_from(value() if isinstance(value, type) else value)  # type: ignore[arg-type]  # tool_from refuses others

    def is_tool(self, value: object) -> bool:
        """Whether it is an instance of BaseTool."""
        return _is_agent_tool(value)

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """Instances of BaseTool, and subclasses of it without an instance."""
        values = list(values)
        registered = [tool for value in values for tool in _registered_in(value)]
        instances = [value for value in (*registered, *values) if _is_agent_tool(value)]
        classes = [value for value in values if isinstance(value, type) and _is_agent_class(value)]
        own = [kind for kind in classes if kind.__module__ == module.__name__ and not _is_base(kind)]
        return [*instances, *(kind for kind in own if not _is_used(kind, instances, classes))]

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """Always empty: agent code registers no functions for bundles."""
        return {}


def _registered_in(value: object) -> Iterable[object]:
    """The tools of a registry, of our class or of a project's own that stores them by name."""
    if isinstance(value, ToolRegistry):
        return value.instances
    if type(value).__name__ != ToolRegistry.__name__:
        return ()
    kept = getattr(value, "_tools", None) or getattr(value, "tools", None)
    return tuple(kept.values()) if isinstance(kept, dict) else ()


def _is_base(kind: type) -> bool:
    """Whether the class is only a base: abstract and without a name; one with a name is a tool, and its error is reported."""
    return inspect.isabstract(kind) and "name" not in vars(kind)


def _is_used(kind: type, instances: Sequence[object], classes: Sequence[type]) -> bool:
    """Whether the module has an instance or a subclass of the class."""
    is_made = any(isinstance(instance, kind) for instance in instances)
    return is_made or any(other is not kind and issubclass(other, kind) for other in classes)
