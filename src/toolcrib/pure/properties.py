"""What a parameter's schema says about its type: to read what was typed, and to show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEEPEST = 8


def properties_of(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The declared properties; what is not written as JSON Schema wants it is left out."""
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: part if isinstance(part, dict) else {} for name, part in found.items()}


def types_of(schema: Mapping[str, object], root: Mapping[str, object]) -> frozenset[str]:
    """The JSON types that a schema declares, here or behind references and alternatives; none if it declares none."""
    return frozenset(_types(schema, root, _DEEPEST))


def describe_type(schema: Mapping[str, object], root: Mapping[str, object]) -> str:
    """The type in a few words."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(map(str, choices))
    types = types_of(schema, root)
    words = " or ".join(sorted(types - {"null"})) or "anything"
    items = schema.get("items")
    if types == {"array"} and isinstance(items, dict):
        words = f"array of {describe_type(items, root)}"
    return f"{words} or null" if "null" in types else words


def _types(schema: Mapping[str, object], root: Mapping[str, object], depth: int) -> Iterator[str]:
    if depth == 0:
        return
    declared = schema.get("type")
    yield from [declared] if isinstance(declared, str) else _texts(declared)
    for part in (*_parts(schema.get("anyOf")), *_parts(schema.get("oneOf")), *_target(schema.get("$ref"), root)):
        yield from _types(part, root, depth - 1)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _parts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _target(reference: object, root: Mapping[str, object]) -> list[dict[str, object]]:
    """What a reference into the schema's own definitions means."""
    definitions = root.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return []
    return _parts([definitions.get(reference.removeprefix("#/$defs/"))])
