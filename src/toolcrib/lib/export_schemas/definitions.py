"""Write tool definitions in the form of each provider."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, cast

from toolcrib.lib.export_schemas import (
    ANTHROPIC_NAME,
    ANTHROPIC_STRICT,
    ARGUMENT_NAMES,
    GEMINI,
    GEMINI_NAME,
    OPENAI_NAME,
    OPENAI_STRICT,
    Export,
    Loss,
    Provider,
    Target,
    phrases,
    to_gemini,
    to_strict,
)
from toolcrib.lib.export_schemas.objects import check_references, open_root
from toolcrib.lib.export_schemas.writer import Writer
from toolcrib.lib.hidden_text import escaped_in, show_hidden_in
from toolcrib.lib.names import function_name, function_names
from toolcrib.lib.schema import compile_schema
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import SideEffects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.lib.export_schemas import Json
    from toolcrib.lib.export_schemas.subschemas import Losses
    from toolcrib.lib.schema_structure import Place
    from toolcrib.model.tool import Tool

HASH_LETTERS = 8
SHOWN_LETTERS = 50
LABELS = {
    Provider.OPENAI: OPENAI_NAME,
    Provider.OPENAI_RESPONSES: OPENAI_NAME,
    Provider.ANTHROPIC: ANTHROPIC_NAME,
    Provider.GEMINI: GEMINI_NAME,
}
WITH_STRICT_MODE = frozenset((Provider.OPENAI, Provider.OPENAI_RESPONSES, Provider.ANTHROPIC))


def export_tools(tools: Iterable[Tool], provider: Provider, *, strict: bool = False) -> list[Export]:
    """Every tool in the form of the provider; raises ToolError if two would have the same name."""
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
    """The tool in the form of the provider."""
    if strict and provider not in WITH_STRICT_MODE:
        raise ToolError(Kind.VALIDATION, f"{provider} has no strict mode; export without it")
    try:
        written = write_parameters(tool.parameters, provider, strict=strict)
    except ToolError as error:
        raise error.replace(reason=f"{tool.name}: {error.reason}") from None
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
        escaped=escaped_in(tool.parameters),
    )


def to_openai(tool: Tool) -> Json:
    """The definition for `tools` of a chat completion."""
    return export_tool(tool, Provider.OPENAI).definition


class Parameters(NamedTuple):
    """The schema in the form of the provider, its losses, and what is needed to restore the arguments."""

    schema: Json
    losses: tuple[Loss, ...]
    absent: frozenset[Place] = frozenset()
    renamed: Mapping[str, str] = {}


def write_parameters(source: Mapping[str, object], provider: Provider, *, strict: bool) -> Parameters:
    """The parameters in the form of the provider; the source is not changed."""
    if provider is Provider.MCP:
        return Parameters(cast("Json", phrases.copy(source if "type" in source else {"type": "object", **source})), ())
    opened = open_root(source, LABELS[provider])
    target = _target(provider, strict=strict)
    if target is None:
        if opened.schema is not source:
            check_references(opened.schema)
        form = cast("Json", phrases.copy(opened.schema))
    else:
        form = cast("Json", show_hidden_in(Writer(target, source, opened.losses).write_root(opened.schema)))
    form, renamed = _rename(form, LABELS[provider], opened.losses)
    absent: frozenset[Place] = frozenset()
    if target is OPENAI_STRICT:
        form, absent = to_strict(form)
    if target is GEMINI:
        form = to_gemini(form)
    return Parameters(form, opened.losses.all(), absent, renamed)


def _anthropic(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    definition: Json = {
        "name": name,
        "description": phrases.clean(tool.description),
        "input_schema": written.schema,
    }
    if strict:
        definition["strict"] = True
    if not tool.examples:
        return definition, []
    # The provider refuses the whole request for a single invalid example.
    validator = compile_schema(written.schema)
    spelled = {theirs: ours for ours, theirs in written.renamed.items()}
    shown = cast("list[Json]", phrases.copy(tool.examples))
    examples = [{spelled.get(key, key): value for key, value in example.items()} for example in shown]
    fitting = [example for example in examples if validator.is_valid(example)]
    if fitting:
        definition["input_examples"] = fitting
    hidden = len(examples) - len(fitting)
    return definition, [
        _examples_loss(f"{hidden} of them are not shown to the model; they do not fit")
    ] if hidden else []


def _gemini(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    del strict
    definition: Json = {"name": name, "description": phrases.clean(tool.description)}
    # Gemini requires properties in an object; a function without arguments has no parameters.
    if "properties" not in written.schema:
        return definition, _hidden_examples(tool)
    definition["parameters"] = written.schema
    if not tool.examples:
        return definition, []
    spelled = {theirs: ours for ours, theirs in written.renamed.items()}
    shown = cast("Json", phrases.copy(tool.examples[0]))
    written.schema["example"] = {spelled.get(key, key): value for key, value in shown.items()}
    if len(tool.examples) == 1:
        return definition, []
    return definition, [_examples_loss("only the first is shown to the model; the format has one")]


def _mcp(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    del strict
    losses = _hidden_examples(tool)
    definition: Json = {"name": name, "description": phrases.clean(tool.description), "inputSchema": written.schema}
    if tool.display_name:
        definition["title"] = phrases.clean(tool.display_name)
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = phrases.copy(tool.output_schema)
    elif tool.output_schema is not None:
        text = "clients of protocol versions up to 2025-11-25 take only objects as results; it is left out"
        losses.append(Loss(path="#", keyword="outputSchema", text=text))
    annotations = _annotations(tool)
    if annotations:
        definition["annotations"] = annotations
    return definition, losses


def _openai(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    function: Json = {"name": name, "description": phrases.clean(tool.description), "parameters": written.schema}
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}, _hidden_examples(tool)


def _openai_responses(tool: Tool, name: str, written: Parameters, *, strict: bool) -> tuple[Json, list[Loss]]:
    definition: Json = {
        "type": "function",
        "name": name,
        "description": phrases.clean(tool.description),
        "parameters": written.schema,
        "strict": strict,
    }
    return definition, _hidden_examples(tool)


_SHAPES = {
    Provider.OPENAI: _openai,
    Provider.OPENAI_RESPONSES: _openai_responses,
    Provider.GEMINI: _gemini,
    Provider.ANTHROPIC: _anthropic,
    Provider.MCP: _mcp,
}


def _target(provider: Provider, *, strict: bool) -> Target | None:
    """The restricted subset; None if the provider accepts any schema below the root."""
    if provider is Provider.GEMINI:
        return GEMINI
    if not strict:
        return None
    return ANTHROPIC_STRICT if provider is Provider.ANTHROPIC else OPENAI_STRICT


def _rename(form: Json, label: str, losses: Losses) -> tuple[Json, dict[str, str]]:
    """Rename arguments to names that the provider accepts; the mapping leads back to the tool's own."""
    taken = ARGUMENT_NAMES.get(label)
    properties = form.get("properties")
    if taken is None or not isinstance(properties, dict) or all(map(taken.fullmatch, properties)):
        return form, {}
    spelled = {name: name if taken.fullmatch(name) else _spell(name) for name in properties}
    if len(set(spelled.values())) < len(spelled):
        raise ToolError(
            Kind.CONFLICT, f"parameters: two names are alike in the spelling of {label}; rename one of them"
        )
    renamed = {ours: name for name, ours in spelled.items() if ours != name}
    for ours, name in renamed.items():
        text = f"{label} does not take {name!r:.80} as a name; it is offered as {ours!r} and led back"
        losses.add(("properties", name), "properties", text)
    written: Json = {
        **form,
        "properties": {spelled[name]: _introduce(inner, name, spelled) for name, inner in properties.items()},
    }
    if isinstance(form.get("required"), list):
        written["required"] = [spelled.get(name, name) for name in cast("list[str]", form["required"])]
    return written, renamed


def _spell(name: str) -> str:
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    return f"_{re.sub(r'[^a-zA-Z0-9_]', '_', name)[:SHOWN_LETTERS]}_{digest}"


def _introduce(schema: object, name: str, spelled: Mapping[str, str]) -> object:
    if spelled[name] == name or not isinstance(schema, dict):
        return schema
    text = str(schema.get("description", ""))
    return {**schema, "description": phrases.join(text, [f"named {phrases.clean(name)}"])}


def _annotations(tool: Tool) -> Json:
    """The annotations for the effects that the tool declares; undeclared ones are omitted."""
    hints: Json = {"title": phrases.clean(tool.display_name)} if tool.display_name else {}
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
