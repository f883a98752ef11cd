"""Several schemas that judge the same value, read as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolcrib.pure.schema.graph import Place

Schema = Mapping[str, object]

LARGEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
SMALLEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
# What a keyword says about the type of the values it was written for.
HINTS = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), "object"),
    **dict.fromkeys(("unevaluatedProperties", "dependencies"), "object"),
    **dict.fromkeys(("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("unevaluatedItems", "additionalItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


class Part(NamedTuple):
    """One of the schemas that judge a value, and where it stands."""

    place: Place
    schema: Schema


def common_types(parts: Sequence[Part]) -> list[str] | None:
    """The types that all of them accept; None where none of them speaks of types."""
    common: list[str] | None = None
    for part in parts:
        declared = part.schema.get("type")
        if declared is None:
            continue
        names = [declared] if isinstance(declared, str) else _without_repeats(declared)
        common = names if common is None else _intersection(common, names)
    return common


def hinted_types(parts: Sequence[Part]) -> list[str]:
    """The types that the keywords of untyped schemas were written for."""
    return list(dict.fromkeys(HINTS[keyword] for part in parts for keyword in part.schema if keyword in HINTS))


def listed_values(parts: Sequence[Part]) -> list[object] | None:
    """The values that all of them list; None where none of them lists values."""
    common: list[object] | None = None
    for part in parts:
        for values in _lists(part.schema):
            if common is None:
                common = values
            else:
                known = {identity(value) for value in values}
                common = [value for value in common if identity(value) in known]
    return common


def strictest(parts: Iterable[Part], keyword: str) -> list[tuple[Part, object]]:
    """Who says what under a keyword, the one that decides first; of bounds only one decides."""
    said = [(part, value) for part in parts if (value := _value(part.schema, keyword)) is not None]
    if keyword not in LARGEST | SMALLEST:
        return said
    return sorted(said, key=lambda entry: cast("float", entry[1]), reverse=keyword in LARGEST)


def type_of(value: object) -> str:
    """The JSON type of a value; a number without a fraction is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def is_of(value: object, name: str) -> bool:
    """Whether a value is of a type."""
    found = type_of(value)
    return found == name or (found, name) == ("integer", "number")


def identity(value: object) -> object:
    """What is equal for equal JSON values: 1 is 1.0, and no number is a boolean."""
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(inner)) for name, inner in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(map(identity, value)))
    return (isinstance(value, bool), value)


def _lists(schema: Schema) -> Iterator[list[object]]:
    values = schema.get("enum")
    if isinstance(values, list):
        yield values
    if "const" in schema:
        yield [schema["const"]]


def _value(schema: Schema, keyword: str) -> object:
    """What a schema says under a keyword that bounds a value; draft 4 writes exclusive bounds as a flag beside the bound."""
    value = schema.get(keyword)
    if keyword in {"minimum", "maximum"} and schema.get(f"exclusive{keyword.capitalize()}") is True:
        return None
    if keyword in {"exclusiveMinimum", "exclusiveMaximum"} and isinstance(value, bool):
        value = schema.get(keyword.removeprefix("exclusive").lower()) if value else None
    if keyword in LARGEST | SMALLEST | {"multipleOf"} and (
        isinstance(value, bool) or not isinstance(value, int | float)
    ):
        return None
    return value


def _without_repeats(names: object) -> list[str]:
    known = list(dict.fromkeys(map(str, names))) if isinstance(names, list | tuple) else []
    return [name for name in known if name != "integer" or "number" not in known]


def _intersection(some: list[str], others: list[str]) -> list[str]:
    common = [name for name in some if name in others or (name == "integer" and "number" in others)]
    return common + ["integer"] * ("number" in some and "integer" in others)
