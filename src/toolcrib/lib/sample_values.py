"""Generate sample arguments from a schema, for checks that need arguments without running a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.lib.schema_structure import properties_of, types_of

if TYPE_CHECKING:
    from collections.abc import Mapping

BY_TYPE: dict[str, Any] = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
BY_FORMAT = {
    "uri": "https://example.com/",
    "email": "ada@example.com",
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A sample value for every declared parameter."""
    return {name: _sample(schema, parameters) for name, schema in properties_of(parameters).items()}


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    found = types_of(schema, root)
    kind = next((name for name in BY_TYPE if name in found), "string")
    if kind == "string":
        return BY_FORMAT.get(schema.get("format", ""), "x" * max(1, min(schema.get("minLength", 1), 1_000)))
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1)
    return BY_TYPE[kind]
