"""Reading a schema for export: what references and `allOf` bring together, and what gets lost on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.export.merging import Part
from toolcrib.pure.export.model import Loss
from toolcrib.pure.schema.graph import (
    REFERENCES,
    Graph,
    UnresolvedReferenceError,
    look_up,
    parse_pointer,
    write_pointer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib.pure.schema.graph import Place

Node = tuple["Place", object]

ANNOTATIONS = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"))
# What neither judges a value nor speaks to a reader.
SILENT = frozenset(("$defs", "definitions", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))
JOINING = frozenset((*REFERENCES, "allOf"))
SILENT |= {"$comment", "$vocabulary", "contentSchema", *JOINING}


class Gathered(NamedTuple):
    """Every schema that judges the same value, and whether a reference was followed to find them."""

    parts: list[Part]
    followed: bool


class Losses:
    """What was lost so far, each thing once; `moved` leads from places that were rearranged to where they stood."""

    def __init__(self, moved: Mapping[Place, Sequence[Place]] | None = None) -> None:
        self._moved = {} if moved is None else moved
        self._found: dict[tuple[str, str], Loss] = {}

    def add(self, place: Place, keyword: str, text: str) -> None:
        """Note a loss at a place."""
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


class Reading:
    """Follows the references of one schema."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self.root = root
        # Up to draft 7 nothing counts beside a reference.
        self._lone_references = any(f"draft-0{number}" in str(root.get("$schema")) for number in (3, 4, 6, 7))

    def gather(self, nodes: Iterable[Node]) -> Gathered | None:
        """All that judges the value together with these nodes; None if one of them refuses every value."""
        found: dict[Place, Part] = {}
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
                found[place] = Part(place, schema)
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


def listed(place: Place, schema: Mapping[str, object], keyword: str) -> list[Node]:
    """The subschemas that a keyword lists."""
    branches = schema.get(keyword)
    if not isinstance(branches, list):
        return []
    return [((*place, keyword, str(index)), branch) for index, branch in enumerate(branches)]
