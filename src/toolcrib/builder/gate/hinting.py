"""Whether a hint in the code and a type of the request can both be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Schema = Mapping[str, object]

NAMES = {"array": "list", "null": "null"}
EVERY = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
OF_VALUES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
MAX_DEPTH = 8


def contradicts(hint: Schema, declared: Schema, depth: int = 0) -> bool:
    """Whether the hint leaves out a type that the request declares, or does so for the items of a list.

    A hint that is narrower within a type says more and nothing else; the calls will show whether it holds.
    """
    allowed = _types(hint)
    wanted = _types(declared)
    if wanted == EVERY:
        return False
    if "number" in allowed:
        allowed |= {"integer"}
    if not wanted <= allowed:
        return True
    inner = hint.get("items"), declared.get("items")
    if depth >= MAX_DEPTH or not all(isinstance(part, Mapping) and part for part in inner):
        return False
    return contradicts(inner[0], inner[1], depth + 1)  # type: ignore[arg-type]  # both are mappings, as was just seen


def describe_type(schema: Schema) -> str:
    """The type in the words of a request."""
    types = _types(schema)
    if types == EVERY:
        return "anything"
    return " | ".join(NAMES.get(name, name) for name in sorted(types, key=lambda name: (name == "null", name)))


def _types(schema: Schema) -> frozenset[str]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, list):
        return frozenset(map(str, kinds))
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        return frozenset().union(*(_types(branch) for branch in branches if isinstance(branch, Mapping)))
    choices = schema.get("enum")
    if isinstance(choices, list):
        return frozenset(OF_VALUES.get(type(choice), "null") for choice in choices)
    return EVERY
