"""Everything that is wrong with a schema at once, each with its place, for authors who would rather not ask again and again.

The engine can list errors of a schema itself, but it takes time that grows exponentially with the depth. So each subschema is
shown to it alone, without those inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.schema.check import compile_schema, describe_error, refuse_to_fetch, structural_faults
from toolcrib.pure.schema.graph import KEYWORDS, MAPPINGS, REFERENCES, Graph, look_up, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.pure.schema.check import Fault, Validator
    from toolcrib.pure.schema.graph import Place

CURRENT = "https://json-schema.org/draft/2020-12/schema"
PLACE = "schema"


def schema_problems(schema: object) -> list[Fault]:
    """The place and the words of every problem; none for a schema that `check_schema` lets in."""
    found = [*structural_faults(schema)]
    if isinstance(schema, Mapping) and not any(place == () for place, _ in found):
        found += _refused_by_engine(schema)
    return list(dict.fromkeys(found))


def misfitting_defaults(schema: Mapping[str, object]) -> Iterator[tuple[Place, object, list[str]]]:
    """The place of each default that its own schema refuses, the default, and why; of a schema that is let in."""
    for place, node in Graph(schema).nodes.items():
        if "default" not in node.schema:
            continue
        from toolcrib.pure.schema.explain import explain_part

        if reasons := explain_part(schema, place, node.schema["default"]):
            yield (*place, "default"), node.schema["default"], reasons


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


def _refused_by_engine(schema: Mapping[str, object]) -> Iterator[Fault]:
    try:
        compile_schema(schema, PLACE)
    except ToolError as error:
        first = _fault_of(error)
    else:
        return
    draft = schema.get("$schema", CURRENT)
    if unknown := _unknown_draft(draft):
        yield ("$schema",), unknown
        draft = CURRENT
    judge = _judge_of_schemas(draft)
    found = [fault for place, node in Graph(schema).nodes.items() for fault in _node_faults(judge, place, node.schema)]
    yield from found
    # What only the whole schema shows.
    if not found and not unknown:
        yield first


def _node_faults(judge: Judge, place: Place, schema: Mapping[str, object]) -> Iterator[Fault]:
    import jsonschema_rs

    for error in judge.iter_errors(_alone(schema)):
        if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):
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
        return {name: {} if isinstance(inner, Mapping) else inner for name, inner in value.items()} if is_mapping else {}
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
