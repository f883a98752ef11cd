"""Schemas in few words: an object of properties, and the type names that people write."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_TEXT = 200
MAX_BITS = 63
MAX_DEPTH = 16
BARE_TYPES = frozenset({"number", "integer", "boolean", "null"})
NAMES = {
    **{name: name for name in ("array", "boolean", "integer", "null", "number", "object", "string")},
    "list": "array",
    "float": "number",
    "int": "integer",
    "str": "string",
    "bool": "boolean",
    "dict": "object",
}


def object_schema(
    properties: Mapping[str, object], required: Iterable[str] = (), *, closed: bool = True
) -> dict[str, object]:
    """The schema of an object; a closed one refuses properties that it does not name."""
    schema: dict[str, object] = {"type": "object", "properties": dict(properties), "required": list(required)}
    if closed:
        schema["additionalProperties"] = False
    return schema


def type_alias(text: str) -> dict[str, object]:
    """The schema that a type name means: `int`, `list[str]`, `string | null`."""
    if len(text) > MAX_TEXT:
        raise ToolError(Kind.VALIDATION, f"type {text[:40]!r}…: longer than {MAX_TEXT} characters")
    members = [_member(part.strip(), text) for part in _alternatives(text)]
    return any_of(members)


def any_of(members: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """The schema of a value that fits one of these, as short as it can be written."""
    schemas: list[dict[str, object]] = []
    for member in members:
        if member not in schemas:
            schemas.append(dict(member))
    if {} in schemas:
        return {}
    if len(schemas) == 1:
        return schemas[0]
    if all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def is_json(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a schema can hold the value, as a default or in an enum, and every JSON library can write it."""
    if isinstance(value, list | dict) and depth == 0:
        return False
    if isinstance(value, list):
        return all(is_json(inner, depth - 1) for inner in value)
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_json([name, value[name]], depth) for name in value)
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    if type(value) is int:
        return value.bit_length() <= MAX_BITS
    return value is None or type(value) is bool or (type(value) is float and math.isfinite(value))


def _member(word: str, text: str) -> dict[str, object]:
    name, bracket, inner = word.partition("[")
    kind = NAMES.get(name.strip().lower())
    if kind is not None and not bracket:
        return {"type": kind}
    if kind == "array" and inner.endswith("]"):
        return {"type": "array", "items": type_alias(inner[:-1])}
    known = ", ".join(NAMES)
    raise ToolError(Kind.VALIDATION, f"type {text!r} is unknown; write one of {known}, list[TYPE] or TYPE | null")


def _alternatives(text: str) -> list[str]:
    """Split at each `|` that stands outside of brackets."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def holds_text(schema: Mapping[str, object]) -> bool:
    """Whether arguments of this schema could hold anything but numbers, booleans and nulls; when in doubt, yes."""
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return True
    return not isinstance(properties, dict) or not all(_is_bare(entry) for entry in properties.values())


def _is_bare(schema: object) -> bool:
    if schema is False:
        return True
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return isinstance(kinds, list) and bool(kinds) and all(kind in BARE_TYPES for kind in kinds)


def bound_integers(schema: dict[str, object]) -> dict[str, object]:
    """The schema of an object, with the integers among its properties kept to what 64 bits can hold."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _bound(entry) for name, entry in properties.items()}}


def _bound(schema: object) -> object:
    if not isinstance(schema, dict) or "integer" not in (schema.get("type"), *_as_list(schema.get("type"))):
        return schema
    return {"minimum": -(2**MAX_BITS), "maximum": 2 ** (MAX_BITS + 1) - 1, **schema}


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
