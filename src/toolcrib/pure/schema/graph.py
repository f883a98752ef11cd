"""A schema as a graph: which subschema leads to which, by which keyword, and where a `$ref` points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str, ...]

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")


class Way(Enum):
    """What a step from a schema to a subschema means for the value."""

    SAME = "the same value is judged again"
    INSIDE = "a part of the value is judged"
    HELD = "nothing is judged: the subschema only waits for a $ref"


# Every keyword whose value is a subschema, a list of them, or a mapping of names to them.
KEYWORDS = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"), Way.SAME),
    **dict.fromkeys(("dependentSchemas", "dependencies"), Way.SAME),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames"), Way.INSIDE),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "contains", "contentSchema"), Way.INSIDE),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), Way.INSIDE),
    **dict.fromkeys(("$defs", "definitions"), Way.HELD),
}
MAPPINGS = frozenset({"dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"})


@dataclass(slots=True)
class Node:
    """One subschema and the places that it leads to."""

    schema: Mapping[str, object]
    depth: int
    same: list[Place] = field(default_factory=list)
    inside: list[Place] = field(default_factory=list)


class UnresolvedReferenceError(Exception):
    """A `$ref` that is not local or leads nowhere."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place
        self.problem = problem


class Graph:
    """Every subschema that a check can come to, by its place; `unresolved` are the references that lead nowhere."""

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
        """The place that a reference means."""
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
        """Add where the references of these places lead, and where those lead in turn."""
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
    """The subschemas of a schema, each with the steps that lead to it."""
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
    """Whether a value can be a schema at all."""
    return isinstance(value, Mapping | bool)


def look_up(root: object, place: Place) -> object:
    """What stands at a place; None if nothing does."""
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
    """The steps of `#/a/b`."""
    pointer = reference.removeprefix("#")
    if "%" in pointer:
        from urllib.parse import unquote

        pointer = unquote(pointer)
    steps = pointer.split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def write_pointer(place: Place) -> str:
    """The place as people write it: `#/a/b`."""
    return "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in place)
