"""The graph of subschemas of a JSON Schema, with resolved `$ref`, and functions that build and inspect small schemas."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Place = tuple[str, ...]
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
MAPPINGS = frozenset({"dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"})
SHOWN = 80
# Look-around, back-references and atomic groups, which need a backtracking engine.
BACKTRACKS = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\[1-9]|\\k[<{']|\(\?P=|\(\?>)")
MAX_TEXT = 200
MAX_BITS = 63
MAX_DEPTH = 16
# The limit of references and alternatives that are followed to find a type, because a schema may refer to itself.
MAX_STEPS = 8
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


class Way(Enum):
    """How a subschema applies to the value of its schema."""

    SAME = "to the same value"
    INSIDE = "to a part of the value"
    HELD = "only through a $ref"


# Every keyword whose value is a subschema, a list of them, or a mapping of names to them.
KEYWORDS = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"), Way.SAME),
    **dict.fromkeys(("dependentSchemas", "dependencies"), Way.SAME),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames"), Way.INSIDE),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "contains", "contentSchema"), Way.INSIDE),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), Way.INSIDE),
    **dict.fromkeys(("$defs", "definitions"), Way.HELD),
}


@record(kw_only=False)
class Node:
    """One subschema, and the places of the subschemas that apply to the same value and to parts of it."""

    schema: Mapping[str, object]
    depth: int
    same: list[Place] = field(default_factory=list)
    inside: list[Place] = field(default_factory=list)


class UnresolvedReferenceError(Exception):
    """A `$ref` that is not local or has no target."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place
        self.problem = problem


class Graph:
    """Every reachable subschema by its place; `unresolved` are the references without a target."""

    def __init__(self, root: object) -> None:
        self.root = root
        self.nodes: dict[Place, Node] = {}
        self.unresolved: list[UnresolvedReferenceError] = []
        self._anchors: dict[str, Place] = {}
        self._add(((), root, 0))
        self._follow(list(self.nodes))

    def has_references(self) -> bool:
        """Whether any subschema refers to another one."""
        return any(keyword in node.schema for node in self.nodes.values() for keyword in REFERENCES)

    def target(self, place: Place, reference: object) -> Place:
        """The place of the target of a reference; raises UnresolvedReferenceError."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            problem = f"{reference!r:.80} is not local; copy what it means under $defs and write #/$defs/NAME"
            raise UnresolvedReferenceError(place, problem)
        found = self._anchors.get(reference[1:]) if reference[1:2] not in ("", "/") else parse_pointer(reference)
        if found is None or not is_schema(look_up(self.root, found)):
            problem = f"{reference!r:.80} leads to no schema; add it under $defs"
            raise UnresolvedReferenceError(place, problem)
        return found

    def _add(self, first: tuple[Place, object, int]) -> list[Place]:
        added = []
        waiting = [first]
        while waiting:
            place, schema, depth = waiting.pop()
            if place in self.nodes or not isinstance(schema, Mapping):
                continue
            node = self.nodes[place] = Node(schema, depth)
            added.append(place)
            for anchor in ANCHORS:
                if anchor in schema:
                    self._anchors[str(schema[anchor])] = place
            for way, steps, child in children(schema):
                if way is not Way.HELD:
                    (node.same if way is Way.SAME else node.inside).append(place + steps)
                waiting.append((place + steps, child, depth + 1))
        return added

    def _follow(self, waiting: list[Place]) -> None:
        """Add the targets of the references of these places, transitively."""
        while waiting:
            place = waiting.pop()
            node = self.nodes[place]
            for keyword in REFERENCES:
                if keyword not in node.schema:
                    continue
                try:
                    target = self.target((*place, keyword), node.schema[keyword])
                except UnresolvedReferenceError as error:
                    self.unresolved.append(error)
                    continue
                node.same.append(target)
                waiting.extend(self._add((target, look_up(self.root, target), node.depth)))


def children(schema: Mapping[str, object]) -> Iterator[tuple[Way, Place, object]]:
    """The subschemas of a schema, each with its relative path."""
    for keyword, value in schema.items():
        way = KEYWORDS.get(keyword)
        if way is None:
            continue
        if keyword in MAPPINGS:
            named = value.items() if isinstance(value, Mapping) else ()
            yield from ((way, (keyword, name), child) for name, child in named if is_schema(child))
        elif isinstance(value, list):
            yield from ((way, (keyword, str(index)), child) for index, child in enumerate(value))
        else:
            yield way, (keyword,), value


def is_schema(value: object) -> bool:
    """Whether a value has the type of a schema: an object or a boolean."""
    return isinstance(value, Mapping | bool)


def look_up(root: object, place: Place) -> object:
    """The value at a place; None if there is none."""
    found = root
    for step in place:
        if isinstance(found, Mapping):
            found = found.get(step)
        elif isinstance(found, list) and step in map(str, range(len(found))):
            found = found[int(step)]
        else:
            return None
    return found


def parse_pointer(reference: str) -> Place:
    """Parse a JSON pointer such as `#/a/b`."""
    pointer = reference.removeprefix("#")
    if "%" in pointer:
        from urllib.parse import unquote

        pointer = unquote(pointer)
    steps = pointer.split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def write_pointer(place: Place) -> str:
    """The place as a JSON pointer: `#/a/b`."""
    return "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in place)


def explain_pattern(pattern: str) -> str:
    """Why a pattern is refused, with the position in it where that is known."""
    shown = f"{pattern!r:.{SHOWN}}"
    if BACKTRACKS.search(pattern):
        return f"pattern not supported (linear-time engine): {shown}; write it without look-around and back-references"
    if fault := _fault(pattern):
        return f"{shown} is not a regular expression: {fault}; correct it"
    return f"pattern not supported (linear-time engine): {shown}; write a simpler one"


def object_schema(
    properties: Mapping[str, object], required: Iterable[str] = (), *, closed: bool = True
) -> dict[str, object]:
    """The schema of an object; a closed one refuses other properties."""
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
    """The schema of a value that one of these accepts, in its shortest form."""
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
    """Whether the value can be a default or in an enum, so that every JSON library can serialise it."""
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


def holds_text(schema: Mapping[str, object]) -> bool:
    """Whether arguments of this schema could contain anything but numbers, booleans and nulls; when in doubt, yes."""
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return True
    return not isinstance(properties, dict) or not all(_is_bare(entry) for entry in properties.values())


def bound_integers(schema: dict[str, object]) -> dict[str, object]:
    """The schema of an object, with its integer properties limited to 64 bits."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _bound(entry) for name, entry in properties.items()}}


def properties_of(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The declared properties; a property whose schema is not an object gets an empty one."""
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: part if isinstance(part, dict) else {} for name, part in found.items()}


def types_of(schema: Mapping[str, object], root: Mapping[str, object]) -> frozenset[str]:
    """The JSON types that a schema declares, directly or in references and alternatives; empty if it declares none."""
    return frozenset(_types(schema, root, MAX_STEPS))


def _fault(pattern: str) -> str:
    """The syntax error that `re` reports; it accepts nearly the same patterns as the engine, and its messages say more."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        return f"{error.msg} at position {error.pos or 0}"
    except (OverflowError, RecursionError):
        return "it is too large"
    return ""


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
    """Split at each `|` outside of brackets."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _is_bare(schema: object) -> bool:
    if schema is False:
        return True
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return isinstance(kinds, list) and bool(kinds) and all(kind in BARE_TYPES for kind in kinds)


def _bound(schema: object) -> object:
    if not isinstance(schema, dict) or "integer" not in (schema.get("type"), *_as_list(schema.get("type"))):
        return schema
    return {"minimum": -(2**MAX_BITS), "maximum": 2 ** (MAX_BITS + 1) - 1, **schema}


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


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
    """The target of a reference into the schema's own definitions."""
    definitions = root.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return []
    return _parts([definitions.get(reference.removeprefix("#/$defs/"))])
