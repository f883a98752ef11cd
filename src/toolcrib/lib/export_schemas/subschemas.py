"""Combine schemas that apply to the same value (`$ref`, `allOf`), and collect what a conversion loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from toolcrib.lib.export_schemas import Loss
from toolcrib.lib.schema_structure import (
    REFERENCES,
    Graph,
    UnresolvedReferenceError,
    look_up,
    parse_pointer,
    write_pointer,
)
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolcrib.lib.schema_structure import Place

Schema = Mapping[str, object]
LARGEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
SMALLEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
# The type that each keyword applies to.
HINTS = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    **dict.fromkeys(("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), "object"),
    **dict.fromkeys(("unevaluatedProperties", "dependencies"), "object"),
    **dict.fromkeys(("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("unevaluatedItems", "additionalItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}
Node = tuple["Place", object]
ANNOTATIONS = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"))
# Keywords that neither validate a value nor describe it.
SILENT = frozenset(("$defs", "definitions", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))
JOINING = frozenset((*REFERENCES, "allOf"))
SILENT |= {"$comment", "$vocabulary", "contentSchema", *JOINING}


class Subschema(NamedTuple):
    """One of the schemas that apply to a value, and its place."""

    place: Place
    schema: Schema


class Gathered(NamedTuple):
    """Every schema that applies to the same value, and whether a reference was followed to find them."""

    parts: list[Subschema]
    followed: bool


class Losses:
    """The losses so far, without repeats; `moved` maps new places of subschemas to their original ones."""

    def __init__(self, moved: Mapping[Place, Sequence[Place]] | None = None) -> None:
        self._moved = {} if moved is None else moved
        self._found: dict[tuple[str, str], Loss] = {}

    def add(self, place: Place, keyword: str, text: str) -> None:
        """Record a loss at a place."""
        for stood in self._stood((*place, keyword)):
            path = write_pointer(stood[:-1])
            self._found.setdefault((path, keyword), Loss(path=path, keyword=keyword, text=text))

    def all(self) -> tuple[Loss, ...]:
        """The losses in the order in which they were found."""
        return tuple(self._found.values())

    def _stood(self, place: Place) -> list[Place]:
        for length in range(len(place), 0, -1) if self._moved else ():
            if place[:length] in self._moved:
                return [stood + place[length:] for stood in self._moved[place[:length]]]
        return [place]


class References:
    """Resolves the references of one schema."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self.root = root
        # Up to draft 7, keywords beside a reference are ignored.
        self._lone_references = any(f"draft-0{number}" in str(root.get("$schema")) for number in (3, 4, 6, 7))

    def gather(self, nodes: Iterable[Node]) -> Gathered | None:
        """All schemas that apply to a value with these nodes; None if one of them refuses every value."""
        found: dict[Place, Subschema] = {}
        seen: set[Place] = set()
        waiting = list(nodes)[::-1]
        followed = False
        while waiting:
            place, schema = waiting.pop()
            if schema is False:
                return None
            if not isinstance(schema, dict) or place in seen:
                continue
            seen.add(place)
            if not JOINING.isdisjoint(schema):
                inner = [self._target(place, schema[keyword]) for keyword in REFERENCES if keyword in schema]
                if inner and self._lone_references:
                    schema = {keyword: schema[keyword] for keyword in schema.keys() & ANNOTATIONS}
                followed = followed or bool(inner)
                waiting.extend(reversed([*inner, *listed(place, schema, "allOf")]))
            if not schema.keys() <= SILENT:
                found[place] = Subschema(place, schema)
        return Gathered(list(found.values()), followed)

    def _target(self, place: Place, reference: object) -> Node:
        try:
            if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
                target = parse_pointer(reference)
            else:
                target = Graph(self.root).target(place, reference)
        except UnresolvedReferenceError as error:
            raise ToolError(Kind.VALIDATION, f"parameters: {write_pointer(error.place)}: {error.problem}") from None
        found = look_up(self.root, target)
        if not isinstance(found, dict | bool):
            problem = f"{reference!r:.80} leads to no schema; add it under $defs"
            raise ToolError(Kind.VALIDATION, f"parameters: {write_pointer(place)}: {problem}")
        return target, found


def common_types(parts: Sequence[Subschema]) -> list[str] | None:
    """The types that all of them accept; None if none of them has a type."""
    common: list[str] | None = None
    for part in parts:
        declared = part.schema.get("type")
        if declared is None:
            continue
        names = [declared] if isinstance(declared, str) else _without_repeats(declared)
        common = names if common is None else _intersection(common, names)
    return common


def hinted_types(parts: Sequence[Subschema]) -> list[str]:
    """The types that the keywords of untyped schemas apply to."""
    return list(dict.fromkeys(HINTS[keyword] for part in parts for keyword in part.schema if keyword in HINTS))


def listed_values(parts: Sequence[Subschema]) -> list[object] | None:
    """The values that all of them list; None if none of them has an enum or a const."""
    common: list[object] | None = None
    for part in parts:
        for values in _lists(part.schema):
            if common is None:
                common = values
            else:
                known = {identity(value) for value in values}
                common = [value for value in common if identity(value) in known]
    return common


def strictest(parts: Iterable[Subschema], keyword: str) -> list[tuple[Subschema, object]]:
    """The parts with a keyword and its values; for limits, the strictest comes first."""
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
    """A key that is equal for equal JSON values: 1 equals 1.0, and no number equals a boolean."""
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(inner)) for name, inner in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(map(identity, value)))
    return (isinstance(value, bool), value)


def listed(place: Place, schema: Mapping[str, object], keyword: str) -> list[Node]:
    """The subschemas that a keyword lists."""
    branches = schema.get(keyword)
    if not isinstance(branches, list):
        return []
    return [((*place, keyword, str(index)), branch) for index, branch in enumerate(branches)]


def _lists(schema: Schema) -> Iterator[list[object]]:
    values = schema.get("enum")
    if isinstance(values, list):
        yield values
    if "const" in schema:
        yield [schema["const"]]


def _value(schema: Schema, keyword: str) -> object:
    """The value of a keyword that limits a value; in draft 4 an exclusive limit is a flag beside the limit."""
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
