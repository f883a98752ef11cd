"""Arguments that are declared twice, as a list of parameters and as a schema, must satisfy both."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    Schema = dict[str, object]

# Words that say something about a value and nothing about the words beside them.
ANNOTATIONS = frozenset({"default", "deprecated", "description", "examples", "title"})
INDEPENDENT = ANNOTATIONS | frozenset(
    {"const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maximum", "minItems"}
    | {"minLength", "minimum", "multipleOf", "pattern", "type", "uniqueItems"}
)


def merge_schemas(listed: Mapping[str, object], given: Mapping[str, object]) -> Schema:
    """One closed schema that accepts what both accept; a name that only one of them declares is judged by that one."""
    ours, theirs = _properties(listed), _properties(given)
    properties = {name: _merge(ours[name], theirs[name]) if name in theirs else ours[name] for name in ours}
    properties |= {name: schema for name, schema in theirs.items() if name not in ours}
    return {
        **given,
        "properties": properties,
        "required": list(dict.fromkeys((*_required(given), *_required(listed)))),
        "additionalProperties": False,
    }


def _merge(ours: object, theirs: object) -> object:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return {"allOf": [ours, theirs]}
    shared = ours.keys() & theirs.keys()
    is_independent = ours.keys() <= INDEPENDENT or theirs.keys() <= INDEPENDENT
    if is_independent and all(name in ANNOTATIONS or ours[name] == theirs[name] for name in shared):
        return {**theirs, **ours}
    # Defaults are looked for at the top of a property.
    notes = {name: value for name, value in {**theirs, **ours}.items() if name in ANNOTATIONS}
    return {**notes, "allOf": [_bare(ours), _bare(theirs)]}


def _bare(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name not in ANNOTATIONS}


def _properties(schema: Mapping[str, object]) -> dict[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Mapping[str, object]) -> list[str]:
    required = schema.get("required")
    return required if isinstance(required, list) else []
