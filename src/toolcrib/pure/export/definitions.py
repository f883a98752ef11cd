"""Definitions as they go over the wire, in the shape of each provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import SideEffects
from toolcrib.pure.export import sayings
from toolcrib.pure.export.model import Export, Loss, Provider
from toolcrib.pure.export.parameters import write_parameters
from toolcrib.pure.names import function_name, function_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.tool import Tool
    from toolcrib.pure.export.model import Json
    from toolcrib.pure.export.parameters import Parameters

WITH_STRICT_MODE = frozenset((Provider.OPENAI, Provider.OPENAI_RESPONSES, Provider.ANTHROPIC))


def export_tools(tools: Iterable[Tool], provider: Provider, *, strict: bool = False) -> list[Export]:
    """Every tool as the provider takes it; two that would have one name are refused."""
    offered = list(tools)
    known = function_names(tool.name for tool in offered)
    if len(known) < len(offered):
        names = [tool.name for tool in offered]
        twice = next(tool for tool in offered if names.count(tool.name) > 1)
        addresses = " and ".join(tool.address for tool in offered if tool.name == twice.name)
        raise ToolError(
            Kind.CONFLICT, f"{addresses} would both be offered to models as {twice.name!r}; choose one of them"
        )
    return [export_tool(tool, provider, strict=strict) for tool in offered]


def export_tool(tool: Tool, provider: Provider, *, strict: bool = False) -> Export:
    """The tool as the provider takes it."""
    if strict and provider not in WITH_STRICT_MODE:
        raise ToolError(Kind.VALIDATION, f"{provider} has no strict mode; export without it")
    try:
        written = write_parameters(tool.parameters, provider, strict=strict)
    except ToolError as error:
        raise ToolError(error.kind, f"{tool.name}: {error.message}") from None
    name = function_name(tool.name)
    definition, losses = _SHAPES[provider](tool, name, written, strict=strict)
    return Export(
        tool=tool,
        name=name,
        definition=definition,
        losses=(*written.losses, *losses),
        parameters=written.schema,
        absent=written.absent,
        renamed=written.renamed,
    )


def to_openai(tool: Tool) -> Json:
    """The definition that a chat completion takes in `tools`."""
    return export_tool(tool, Provider.OPENAI).definition


def _openai(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    function: Json = {"name": name, "description": sayings.clean(tool.description), "parameters": written.schema}
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}, _hidden_examples(tool)


def _openai_responses(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    definition: Json = {
        "type": "function",
        "name": name,
        "description": sayings.clean(tool.description),
        "parameters": written.schema,
        "strict": strict,
    }
    return definition, _hidden_examples(tool)


def _anthropic(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    definition: Json = {
        "name": name,
        "description": sayings.clean(tool.description),
        "input_schema": written.schema,
    }
    if strict:
        definition["strict"] = True
    if not tool.examples:
        return definition, []
    from toolcrib.pure.schema import compile_schema

    # A single example that does not fit makes the provider refuse the request.
    validator = compile_schema(written.schema)
    spelled = {theirs: ours for ours, theirs in written.renamed.items()}
    examples = [{spelled.get(key, key): value for key, value in example.items()} for example in tool.examples]
    fitting = [sayings.copy(example) for example in examples if validator.is_valid(example)]
    if fitting:
        definition["input_examples"] = fitting
    hidden = len(examples) - len(fitting)
    return definition, [
        _examples_loss(f"{hidden} of them are not shown to the model; they do not fit")
    ] if hidden else []


def _gemini(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    del strict
    definition: Json = {"name": name, "description": sayings.clean(tool.description)}
    # An object must have properties there; a function without arguments has no parameters.
    if "properties" not in written.schema:
        return definition, _hidden_examples(tool)
    definition["parameters"] = written.schema
    if not tool.examples:
        return definition, []
    spelled = {theirs: ours for ours, theirs in written.renamed.items()}
    example = {spelled.get(key, key): value for key, value in tool.examples[0].items()}
    written.schema["example"] = sayings.copy(example)
    if len(tool.examples) == 1:
        return definition, []
    return definition, [_examples_loss("only the first is shown to the model; there is room for one")]


def _mcp(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    del strict
    losses = _hidden_examples(tool)
    definition: Json = {"name": name, "description": sayings.clean(tool.description), "inputSchema": written.schema}
    if tool.display_name:
        definition["title"] = sayings.clean(tool.display_name)
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = sayings.copy(tool.output_schema)
    elif tool.output_schema is not None:
        text = "clients of protocol versions up to 2025-11-25 take only objects as results; it is left out"
        losses.append(Loss(path="#", keyword="outputSchema", text=text))
    annotations = _annotations(tool)
    if annotations:
        definition["annotations"] = annotations
    return definition, losses


def _annotations(tool: Tool) -> Json:
    """What the tool declares about its effects; what it does not declare is not guessed."""
    hints: Json = {"title": sayings.clean(tool.display_name)} if tool.display_name else {}
    if tool.side_effects is not None:
        hints["readOnlyHint"] = tool.side_effects is not SideEffects.WRITES
        hints["destructiveHint"] = tool.side_effects is SideEffects.WRITES
    if tool.idempotent or tool.side_effects is not None:
        hints["idempotentHint"] = tool.idempotent
    if any(capability.split(".")[0] == "net" for capability in tool.requires):
        hints["openWorldHint"] = True
    elif tool.side_effects is SideEffects.NONE:
        hints["openWorldHint"] = False
    return hints


def _hidden_examples(tool: Tool) -> list[Loss]:
    return (
        [_examples_loss("they are not shown to the model; the provider has no place for them")] if tool.examples else []
    )


def _examples_loss(text: str) -> Loss:
    return Loss(path="#", keyword="examples", text=text)


_SHAPES = {
    Provider.OPENAI: _openai,
    Provider.OPENAI_RESPONSES: _openai_responses,
    Provider.GEMINI: _gemini,
    Provider.ANTHROPIC: _anthropic,
    Provider.MCP: _mcp,
}
