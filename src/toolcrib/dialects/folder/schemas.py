"""The schemas of `schema.json`: what is refused in them, and what their author should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.report import guesses, show, spell
from toolcrib.pure.schema import compile_schema, schema_problems
from toolcrib.pure.schema.graph import Graph
from toolcrib.pure.schema.problems import misfitting_choices, misfitting_defaults

if TYPE_CHECKING:
    from toolcrib.dialects.folder.positions import Steps
    from toolcrib.dialects.folder.report import SchemaFile
    from toolcrib.pure.schema.graph import Place

    Part = tuple[Steps, Mapping[str, object]]

INVALID = "Invalid JSON Schema"
FORMATS = ("email", "date-time", "uri", "uuid", "ipv4", "ipv6")
KEYWORDS = frozenset(
    {"$schema", "$id", "$ref", "$defs", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$comment"}
    | {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "properties", "patternProperties"}
    | {"additionalProperties", "propertyNames", "items", "prefixItems", "contains", "unevaluatedItems"}
    | {"unevaluatedProperties", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"}
    | {"exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains"}
    | {"minContains", "maxProperties", "minProperties", "required", "dependentRequired", "title", "description"}
    | {"default", "deprecated", "readOnly", "writeOnly", "examples", "format", "contentEncoding"}
    | {"contentMediaType", "contentSchema", "definitions"}
)
# Words of older drafts, which count where "$schema" names one.
OLDER = frozenset({"id", "dependencies", "additionalItems", "$recursiveRef", "$recursiveAnchor"})
CURRENT = "2020-12"
MAX_REASONS = 3


def read_schema(file: SchemaFile, name: str) -> dict[str, object]:
    """The schema that a field holds; empty if there is none or it is refused."""
    if name not in file.fields:
        return {}
    schema = file.fields[name]
    if not isinstance(schema, dict):
        file.refuse((name,), f'{INVALID}: {name}: {show(schema)} is no schema; write {{"type": "object"}}')
        return {}
    problems = schema_problems(schema)
    for place, problem in problems:
        at = (name, *_steps(schema, place))
        cure = "" if ";" in problem else "; correct it"
        file.refuse(at, f"{INVALID}: {spell(at)}: {problem}{cure}")
    return {} if problems else schema


def read_parameters(file: SchemaFile, name: str) -> dict[str, object]:
    """The schema of the arguments, which is a closed object and holds only formats that every agent can check."""
    schema = read_schema(file, name)
    written = file.fields.get(name)
    if not isinstance(written, dict):
        return {}
    if written.get("type") != "object":
        file.refuse((name, "type"), f'{INVALID}: {name}: the arguments are an object; write "type": "object"')
    if written.get("additionalProperties") is not False:
        problem = 'unknown arguments would pass; write "additionalProperties": false'
        file.refuse((name, "additionalProperties"), f"{INVALID}: {name}: {problem}")
    nodes = Graph(written).nodes.items()
    parts = [((name, *_steps(written, place)), node.schema) for place, node in nodes]
    for at, part in parts:
        _check_format(file, at, part)
    if schema:
        _check_defaults(file, name, schema)
        _warn_of_choices(file, name, schema)
        _warn_of_keywords(file, parts, schema)
        for at, part in parts:
            _warn_of_properties(file, at, part)
            _warn_of_undefined(file, at, part)
    return schema


def _check_format(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    written = schema.get("format")
    if isinstance(written, str) and written not in FORMATS:
        at = (*at, "format")
        file.refuse(at, f"{INVALID}: {spell(at)}: {show(written)} is not supported; write one of {', '.join(FORMATS)}")


def _check_defaults(file: SchemaFile, name: str, schema: dict[str, object]) -> None:
    """Refuse a default that its own schema refuses: every call that leaves it to the platform would fail."""
    for place, default, reasons in misfitting_defaults(schema):
        at, shown = (name, *_steps(schema, place)), show(default)
        told = (
            reasons[0] if reasons[0].startswith(shown) else f"{shown} is refused ({'; '.join(reasons[:MAX_REASONS])})"
        )
        file.refuse(at, f"{INVALID}: {spell(at)}: the default {told}; write one that fits, or remove it")


def _warn_of_choices(file: SchemaFile, name: str, schema: dict[str, object]) -> None:
    for place, value in misfitting_choices(schema):
        at = (name, *_steps(schema, place))
        file.warn(
            at, f"{spell(at)}: {show(value)} is not of the type beside it, so it is never taken; correct one of the two"
        )


def _warn_of_keywords(file: SchemaFile, parts: list[Part], root: Mapping[str, object]) -> None:
    known = KEYWORDS if CURRENT in str(root.get("$schema", CURRENT)) else KEYWORDS | OLDER
    strangers = [(at, word) for at, part in parts for word in part if word not in known]
    meant = guesses([word for _, word in strangers], KEYWORDS)
    for at, word in strangers:
        cure = f"write {meant[word]}" if word in meant else "remove it, since nothing checks it"
        file.warn((*at, word), f"{spell(at)}: unknown keyword {show(word)}; {cure}")


def _warn_of_properties(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, entry in properties.items():
        if isinstance(entry, Mapping) and not entry.get("description") and "$ref" not in entry:
            here = (*at, "properties", name)
            file.warn(here, f"{spell(here)}: has no description; write what it means")


def _warn_of_undefined(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    """Warn of what is required and yet not allowed: nothing can satisfy such a schema."""
    required = schema.get("required")
    if schema.get("additionalProperties") is not False or not isinstance(required, list):
        return
    properties = _mapping(schema.get("properties"))
    for index, name in enumerate(required):
        if name not in properties and not _matches_a_pattern(schema, name):
            here = (*at, "required", index)
            cure = "define it under properties, or every call is refused"
            file.warn(here, f"{spell(here)}: required but undefined: {name}; {cure}")


def _matches_a_pattern(schema: Mapping[str, object], name: str) -> bool:
    patterns = _mapping(schema.get("patternProperties"))
    lone = {"patternProperties": dict.fromkeys(patterns, True), "additionalProperties": False}
    return bool(patterns) and compile_schema(lone).is_valid({name: None})


def _steps(schema: object, place: Place) -> Steps:
    """The place with the index of an item as a number."""
    steps: list[str | int] = []
    for step in place:
        index = int(step) if isinstance(schema, list) and step.isdecimal() else None
        steps.append(step if index is None else index)
        if isinstance(schema, list):
            schema = schema[index] if index is not None and index < len(schema) else None
        else:
            schema = schema.get(step) if isinstance(schema, Mapping) else None
    return tuple(steps)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
