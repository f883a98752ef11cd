"""Everything that is wrong with a schema at once, each with its place, for authors who would rather not ask again and again.

Each subschema is held against its draft alone, without those inside: where the draft offers alternatives, as for `items`, the
engine would only say that a whole does not fit, and not which part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.schema.check import compile_schema, describe_error, refuse_to_fetch, size_fault, structural_faults
from toolcrib.pure.schema.graph import KEYWORDS, MAPPINGS, REFERENCES, Graph, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jsonschema_rs

    from toolcrib.pure.schema.check import Fault
    from toolcrib.pure.schema.graph import Place

CURRENT = "https://json-schema.org/draft/2020-12/schema"
PLACE = "schema"


def schema_problems(schema: object) -> list[Fault]:
    """The place and the words of every problem; none for a schema that `check_schema` lets in."""
    found = [*structural_faults(schema)]
    if not isinstance(schema, Mapping) or size_fault(schema):
        return found
    last: list[Fault] = []
    if not found:
        try:
            compile_schema(schema, PLACE)
        except ToolError as error:
            last = [_fault_of(error)]
        else:
            return []
    # The draft may name the same thing by several ways.
    return list(dict.fromkeys((*found, *_refused_by_draft(schema)))) or last


def misfitting_defaults(schema: Mapping[str, object]) -> Iterator[tuple[Place, object, list[str]]]:
    """The place of each default that its own schema refuses, the default, and why; of a schema that is let in."""
    nodes = Graph(schema).nodes
    defaults = {place: node.schema["default"] for place, node in nodes.items() if "default" in node.schema}
    if not defaults:
        return
    from toolcrib.pure.schema.explain import explain_parts

    for place, reasons in explain_parts(schema, defaults):
        yield (*place, "default"), defaults[place], reasons


def misfitting_choices(schema: Mapping[str, object]) -> Iterator[tuple[Place, object]]:
    """The place of each value that an `enum` or a `const` names although the type beside it refuses it."""
    for place, node in Graph(schema).nodes.items():
        named = _named_values(node.schema)
        if not named or "type" not in node.schema:
            continue
        judge = compile_schema({"type": node.schema["type"]})
        yield from (((*place, *steps), value) for steps, value in named if not judge.is_valid(value))


def _named_values(schema: Mapping[str, object]) -> list[tuple[Place, object]]:
    choices = schema.get("enum")
    named: list[tuple[Place, object]] = [(("const",), schema["const"])] if "const" in schema else []
    if isinstance(choices, list):
        named += [(("enum", str(index)), value) for index, value in enumerate(choices)]
    return named


def _refused_by_draft(schema: Mapping[str, object]) -> Iterator[Fault]:
    """What the draft that a schema is written in, and the engine, have against each subschema."""
    draft = schema.get("$schema", CURRENT)
    if unknown := _unknown_draft(draft):
        yield ("$schema",), unknown
        schema, draft = {**schema, "$schema": CURRENT}, CURRENT
    judge = _judge_of_schemas(str(draft))
    for place, node in Graph(schema).nodes.items():
        yield from _node_faults(judge, place, node.schema)


def _judge_of_schemas(draft: str) -> jsonschema_rs.Validator:
    """A compiled schema of schemas."""
    import jsonschema_rs

    return jsonschema_rs.validator_for({"$schema": draft, "$ref": draft}, retriever=refuse_to_fetch)


def _node_faults(judge: jsonschema_rs.Validator, place: Place, schema: Mapping[str, object]) -> Iterator[Fault]:
    for error in judge.iter_errors(_alone(schema)):
        yield (*place, *map(str, error.instance_path)), describe_error(error)
    # The draft knows what a pattern is, and the engine which of them it can keep to.
    for steps, pattern in _patterns(schema):
        try:
            compile_schema({"pattern": pattern}, PLACE)
        except ToolError as error:
            yield (*place, *steps), _fault_of(error)[1]


def _patterns(schema: Mapping[str, object]) -> Iterator[tuple[Place, str]]:
    pattern, properties = schema.get("pattern"), schema.get("patternProperties")
    if isinstance(pattern, str):
        yield ("pattern",), pattern
    if isinstance(properties, Mapping):
        yield from ((("patternProperties", name), name) for name in properties)


def _alone(schema: Mapping[str, object]) -> dict[str, object]:
    """The schema with nothing in its subschemas, and without references, which have been followed."""
    return {keyword: _emptied(keyword, value) for keyword, value in schema.items() if keyword not in REFERENCES}


def _emptied(keyword: str, value: object) -> object:
    if keyword not in KEYWORDS:
        return value
    if isinstance(value, list):
        return [{} if isinstance(inner, Mapping) else inner for inner in value]
    if isinstance(value, Mapping):
        is_mapping = keyword in MAPPINGS
        return (
            {name: {} if isinstance(inner, Mapping) else inner for name, inner in value.items()} if is_mapping else {}
        )
    return value


def _unknown_draft(draft: object) -> str:
    try:
        compile_schema({"$schema": draft}, PLACE)
    except ToolError as error:
        return _fault_of(error)[1]
    return ""


def _fault_of(error: ToolError) -> Fault:
    pointer = str(error.details.get("pointer", "#"))
    return parse_pointer(pointer), error.message.removeprefix(f"{PLACE}: ").removeprefix(f"{pointer}: ")
