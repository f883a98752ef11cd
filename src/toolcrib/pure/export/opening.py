"""The root of a schema as providers take it: one object, nothing beside its properties that chooses or combines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.export import sayings
from toolcrib.pure.export.merging import LARGEST, SMALLEST, identity
from toolcrib.pure.export.parts import lose_doubtful, names_of, property_nodes
from toolcrib.pure.export.reading import SILENT, Losses, Reading, listed
from toolcrib.pure.schema.graph import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.pure.export.merging import Part
    from toolcrib.pure.export.model import Json
    from toolcrib.pure.export.reading import Node
    from toolcrib.pure.schema.graph import Place

ALTERNATIVES = ("anyOf", "oneOf")
REFUSED = frozenset((*ALTERNATIVES, "allOf", "not", "enum", "const", *REFERENCES))
HELD = ("$schema", "$defs", "definitions")
MERGED = frozenset((*REFUSED, *SILENT, "type", "properties", "required", "additionalProperties", "description"))


class Opened(NamedTuple):
    """A schema whose root is a plain object, and what was lost to make it one."""

    schema: Mapping[str, object]
    losses: Losses


def open_root(source: Mapping[str, object], label: str) -> Opened:
    """The schema itself if its root is a plain object, else the nearest one that is."""
    if source.get("type") == "object" and not source.keys() & REFUSED:
        return Opened(source, Losses())
    return _Opening(source, label).open()


def check_references(schema: object) -> None:
    """Refuse a reference into what was taken out of the root."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and f"{reference}/".startswith(tuple(f"#/{keyword}/" for keyword in REFUSED)):
                message = f"parameters: {reference!r:.80} leads into the choices at the root; move it under $defs"
                raise ToolError(Kind.VALIDATION, message)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


class _Opening:
    def __init__(self, source: Mapping[str, object], label: str) -> None:
        self.source = source
        self.label = label
        self.moved: dict[Place, list[Place]] = {}
        self.losses = Losses(self.moved)
        self.reading = Reading(source)
        self.parts: list[Part] = []
        self.schema: Json = {}
        self.notes: list[str] = []

    def open(self) -> Opened:
        gathered = self.reading.gather([((), self.source)])
        if gathered is None:
            self.losses.add((), "allOf", "no arguments fit, and an empty object is offered")
        parts = self.parts = [] if gathered is None else gathered.parts
        self.schema = {
            "type": "object",
            **{keyword: self.source[keyword] for keyword in HELD if keyword in self.source},
        }
        self._merge_properties(parts)
        self._merge_keywords(parts)
        for part in parts:
            for keyword in ALTERNATIVES:
                if isinstance(part.schema.get(keyword), list):
                    self._unite(part, keyword)
        texts = [str(part.schema["description"]) for part in parts if part.schema.get("description")]
        said = sayings.join(" ".join(texts), self.notes)
        if said:
            self.schema["description"] = said
        return Opened(self.schema, self.losses)

    def _merge_properties(self, parts: list[Part]) -> None:
        names = dict.fromkeys(name for part in parts for name in names_of(part, "properties"))
        nodes = {name: [node for part in parts for node in property_nodes(part, name)] for name in names}
        self.schema["properties"] = {name: self._place(("properties", name), "allOf", nodes[name]) for name in names}
        requiring = [part for part in parts if names_of(part, "required")]
        self.moved[("required",)] = [(*part.place, "required") for part in requiring] or [("required",)]
        self.schema["required"] = list(dict.fromkeys(name for part in parts for name in names_of(part, "required")))
        further = [
            ((*part.place, "additionalProperties"), part.schema["additionalProperties"])
            for part in parts
            if "additionalProperties" in part.schema
        ]
        lose_doubtful(self.losses, parts, names)
        if further:
            self.schema["additionalProperties"] = self._place(("additionalProperties",), "allOf", further)

    def _merge_keywords(self, parts: list[Part]) -> None:
        for part in parts:
            for keyword, value in part.schema.items():
                if keyword in {"not", "enum", "const"} or (keyword.startswith("unevaluated") and part.place):
                    self._lose(part, keyword)
                elif keyword not in MERGED:
                    self._merge_keyword(part, keyword, value)

    def _merge_keyword(self, part: Part, keyword: str, value: object) -> None:
        kept = self.schema.setdefault(keyword, value)
        if keyword in LARGEST | SMALLEST:
            bound = max if keyword in LARGEST else min
            self.schema[keyword] = bound(cast("float", kept), cast("float", value))
        elif identity(kept) != identity(value):
            self._lose(part, keyword)
            return
        self.moved.setdefault((keyword,), []).append((*part.place, keyword))

    def _unite(self, part: Part, keyword: str) -> None:
        """Offer the properties of all branches, and require what each of them requires."""
        self._lose(part, keyword)
        if "unevaluatedProperties" in self.schema:
            text = (
                f"it lets every property of the branches pass, because {self.label} takes one plain object at the root"
            )
            self.losses.add((), "unevaluatedProperties", text)
        gathered = [self.reading.gather([node]) for node in listed(part.place, part.schema, keyword)]
        branches = [branch.parts for branch in gathered if branch is not None]
        properties = self.schema["properties"]
        if not branches or not isinstance(properties, dict):
            return
        if self.schema.get("additionalProperties") is not False:
            self._add_properties(branches, properties)
        shared = [{name for each in branch for name in names_of(each, "required")} for branch in branches]
        required = self.schema["required"]
        if isinstance(required, list):
            required.extend(sorted(set.intersection(*shared) & properties.keys() - set(required)))
        if all(any(each.schema.get("additionalProperties") is False for each in branch) for branch in branches):
            self.schema.setdefault("additionalProperties", False)

    def _add_properties(self, branches: list[list[Part]], properties: Json) -> None:
        every = [each for branch in branches for each in branch]
        added = dict.fromkeys(name for each in every for name in names_of(each, "properties") if name not in properties)
        lose_doubtful(self.losses, self.parts, added)
        for name in added:
            declaring = [each for each in every if name in names_of(each, "properties")]
            nodes = [node for each in declaring for node in property_nodes(each, name)]
            further = [node for part in self.parts for node in property_nodes(part, name) if node[1] is not True]
            if not further:
                properties[name] = self._place(("properties", name), "anyOf", nodes)
                continue
            at = ("properties", name, "allOf")
            inner = [self._place((*at, "0"), "allOf", further), self._place((*at, "1"), "anyOf", nodes)]
            properties[name] = {"allOf": inner}

    def _place(self, place: Place, keyword: str, nodes: list[Node]) -> object:
        """One schema for several, remembering where each of them stood."""
        if keyword == "allOf" and any(schema is False for _, schema in nodes):
            return False
        stood: dict[object, list[Place]] = {}
        distinct: list[object] = []
        for at, schema in nodes:
            if identity(schema) not in stood:
                distinct.append(schema)
            stood.setdefault(identity(schema), []).append(at)
        if len(distinct) == 1:
            self.moved[place] = stood[identity(distinct[0])]
            return distinct[0]
        for index, schema in enumerate(distinct):
            self.moved[(*place, keyword, str(index))] = stood[identity(schema)]
        return {keyword: distinct}

    def _lose(self, part: Part, keyword: str) -> None:
        self.notes.append(sayings.say(keyword, part.schema[keyword]))
        text = f"{self.label} takes one plain object at the root, so the description says: {self.notes[-1]}"
        self.losses.add(part.place, keyword, text)
