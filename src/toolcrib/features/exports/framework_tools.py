"""Convert tools to those of other agent frameworks: LangChain, openai-agents, pydantic-ai and smolagents.

Every call runs through the pipeline with all its guards, and arguments are validated against the tool's own schema. A failure
is raised or returned as the framework expects errors, never as a value. The packages of the frameworks are imported only here,
when the tools are converted.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any

from toolcrib.features.exports.chat import Adapter, Asked, make_calls
from toolcrib.features.exports.providers import tell, value_of
from toolcrib.lib.export_schemas import Provider
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolcrib.features.exports.chat import Host

EXTRAS = {
    "langchain_core": "toolcrib[langchain]",
    "agents": "toolcrib[openai-agents]",
    "pydantic_ai": "toolcrib[pydantic-ai]",
    "smolagents": "toolcrib[smolagents]",
}
# The types that smolagents supports; anything else in a schema becomes `any` there, and is validated by the crib.
SMOLAGENTS_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object"})
NOT_IN_A_NAME = re.compile(r"\W")


class HandedTools(Adapter):
    """The converted tools, each called by its name in the framework."""

    provider = Provider.OPENAI
    marks = ()
    replies = "calls by name"

    async def call(self, name: str, arguments: object) -> Result:
        """Make one call; the arguments are an object or the JSON of one."""
        made = self._call_of(Asked(id="", name=name, arguments=arguments))
        if isinstance(made, ToolError):
            return Result(error=made)
        (result,) = await make_calls(self._crib, [made], self._confirm)
        return result

    def call_sync(self, name: str, arguments: object) -> Result:
        """`call` for synchronous code."""
        return self._crib.run_sync(self.call(name, arguments))

    def functions(self) -> list[tuple[str, str, dict[str, Any]]]:
        """The name, the description and the parameters of each."""
        written: list[Any] = [definition["function"] for definition in self.definitions]
        return [(each["name"], each.get("description", ""), each["parameters"]) for each in written]

    def _read(self, reply: object) -> list[Asked]:
        return []

    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        return []


def hand_over(framework: str, crib: Host, options: Mapping[str, Any]) -> list[Any]:
    """The tools as objects of a framework; raises ToolError with the extra to install if its package is missing."""
    try:
        return MAKERS[framework](HandedTools(crib, **options))
    except ModuleNotFoundError as problem:
        extra = EXTRAS.get((problem.name or "").partition(".")[0])
        if extra is None:
            raise
        message = f"the package {problem.name} is not installed; install it: pip install '{extra}'"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message) from None


def _langchain(handed: HandedTools) -> list[Any]:
    """As `StructuredTool`s: a failure is a ToolException, which becomes a ToolMessage with the status `error`."""
    from langchain_core.tools import StructuredTool, ToolException

    def answer(result: Result) -> tuple[str, object]:
        if not result.ok:
            raise ToolException(tell(result))
        return tell(result), result.value

    def make(name: str, description: str, parameters: dict[str, Any]) -> Any:
        def run(**arguments: object) -> tuple[str, object]:
            return answer(handed.call_sync(name, arguments))

        async def run_async(**arguments: object) -> tuple[str, object]:
            return answer(await handed.call(name, arguments))

        return StructuredTool(
            name=name,
            description=description,
            args_schema=parameters,
            func=run,
            coroutine=run_async,
            handle_tool_error=True,
            response_format="content_and_artifact",
        )

    return [make(*function) for function in handed.functions()]


def _openai_agents(handed: HandedTools) -> list[Any]:
    """As `FunctionTool`s: a failure is returned as text, as the SDK's own tools do."""
    from agents import FunctionTool

    def make(name: str, description: str, parameters: dict[str, Any]) -> Any:
        async def run(_: object, arguments: str) -> str:
            return tell(await handed.call(name, arguments))

        return FunctionTool(
            name=name,
            description=description,
            params_json_schema=parameters,
            on_invoke_tool=run,
            strict_json_schema=False,
        )

    return [make(*function) for function in handed.functions()]


def _pydantic_ai(handed: HandedTools) -> list[Any]:
    """As `Tool`s: a retryable failure or invalid arguments are a ModelRetry, anything else a ToolFailed, if the version has it."""
    import pydantic_ai
    from pydantic_ai import ModelRetry, Tool

    failed = getattr(pydantic_ai, "ToolFailed", None) or getattr(pydantic_ai.exceptions, "ToolFailed", ModelRetry)

    def make(name: str, description: str, parameters: dict[str, Any]) -> Any:
        async def run(**arguments: object) -> object:
            result = await handed.call(name, arguments)
            if result.error is not None:
                is_curable = result.error.retryable or result.error.kind is Kind.VALIDATION
                raise (ModelRetry if is_curable else failed)(tell(result))
            return value_of(result)

        return Tool.from_schema(run, name=name, description=description, json_schema=parameters)

    return [make(*function) for function in handed.functions()]


def _smolagents(handed: HandedTools) -> list[Any]:
    """As `Tool`s: a failure is raised, and the agent reports it to its model."""
    from smolagents import Tool

    def make(name: str, description: str, parameters: dict[str, Any]) -> Any:
        order = list(parameters.get("properties", {}))

        def forward(_: object, *given: object, **arguments: object) -> object:
            result = handed.call_sync(name, {**dict(zip(order, given, strict=False)), **arguments})
            if result.error is not None:
                raise RuntimeError(tell(result))
            return value_of(result)

        body = {
            "name": _identifier(name),
            "description": description,
            "inputs": _inputs(parameters),
            "output_type": "any",
            "skip_forward_signature_validation": True,
            "forward": forward,
        }
        return type("ToolcribTool", (Tool,), body)()

    return [make(*function) for function in handed.functions()]


def _identifier(name: str) -> str:
    """The name as a Python identifier, since agents of smolagents call tools from Python code."""
    plain = NOT_IN_A_NAME.sub("_", name)
    return f"{plain}_" if keyword.iskeyword(plain) or plain[:1].isdigit() else plain


def _inputs(parameters: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    required = parameters.get("required", [])
    inputs: dict[str, dict[str, object]] = {}
    for name, schema in parameters.get("properties", {}).items():
        written = schema.get("type") if isinstance(schema, dict) else None
        rest = {word: value for word, value in schema.items() if word != "type"} if isinstance(schema, dict) else {}
        inputs[name] = {
            "description": name.replace("_", " "),
            **rest,
            "type": written if written in SMOLAGENTS_TYPES else "any",
            **({} if name in required else {"nullable": True}),
        }
    return inputs


MAKERS: dict[str, Callable[[HandedTools], list[Any]]] = {
    "langchain": _langchain,
    "openai_agents": _openai_agents,
    "pydantic_ai": _pydantic_ai,
    "smolagents": _smolagents,
}
