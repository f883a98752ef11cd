"""Write objects and arrays in a restricted subset, and convert the root of a schema to a plain object."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from toolcrib.lib.export_schemas import phrases
from toolcrib.lib.export_schemas.subschemas import LARGEST, SILENT, SMALLEST, Losses, References, identity, listed
from toolcrib.lib.schema_structure import REFERENCES
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.lib.export_schemas import Json, Target
    from toolcrib.lib.export_schemas.subschemas import Node, Subschema
    from toolcrib.lib.schema_structure import Place

# Values with which a keyword has no effect; `contains` has none.
DEMANDS_NOTHING: dict[str, tuple[object, ...]] = {"uniqueItems": (False,), "contains": ()}
OBJECT_SAID = ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies")
ARRAY_SAID = ("contains", "uniqueItems", "unevaluatedItems")
ALTERNATIVES = ("anyOf", "oneOf")
REFUSED = frozenset((*ALTERNATIVES, "allOf", "not", "enum", "const", *REFERENCES))
HELD = ("$schema", "$defs", "definitions")
MERGED = frozenset((*REFUSED, *SILENT, "type", "properties", "required", "additionalProperties", "description"))


class SubschemaWriter(Protocol):
    """Writes subschemas for one target, and collects the losses."""

    target: Target
    losses: Losses
    reading: References

    def write(self, at: Place, nodes: Iterable[Node]) -> Json | None:
        """The form of the values that all these nodes accept; None if there are none."""

    def lose(self, part: Subschema, keyword: str, notes: list[str]) -> None:
        """Move a keyword of a part into the description."""

    def unenforced(self, note: str) -> str:
        """The text of a loss that the description mentions instead."""


def write_object(writer: SubschemaWriter, parts: list[Subschema], form: Json, notes: list[str]) -> None:
    """Write the properties; every restricted subset is closed, so additional properties are lost."""
    required = {name: True for part in parts for name in names_of(part, "required")}
    names = dict.fromkeys([*(name for part in parts for name in names_of(part, "properties")), *required])
    lose_doubtful(writer.losses, parts, names)
    properties: Json = {}
    for name in names:
        nodes = [node for part in parts for node in property_nodes(part, name)]
        place = nodes[0][0] if nodes else parts[0].place
        inner = writer.write(place, nodes)
        if inner is not None:
            properties[name] = inner
        elif name in required:
            _lose_required(writer, parts, name)
    form["properties"] = properties
    form["required"] = [name for name in properties if name in required]
    form["additionalProperties"] = False
    _say_open(writer, parts, notes)
    for part in parts:
        for keyword in OBJECT_SAID:
            if _says(part, keyword):
                writer.lose(part, keyword, notes)


def property_nodes(part: Subschema, name: str) -> list[Node]:
    """The subschemas of a part that apply to a property."""
    declared = part.schema.get("properties")
    if isinstance(declared, dict) and name in declared:
        return [((*part.place, "properties", name), declared[name])]
    if "additionalProperties" not in part.schema or "patternProperties" in part.schema:
        return []
    return [((*part.place, "additionalProperties"), part.schema["additionalProperties"])]


def lose_doubtful(losses: Losses, parts: list[Subschema], names: Iterable[str]) -> None:
    """Record losses where patternProperties leave open whether a name is an additional property."""
    for part in parts:
        if "patternProperties" not in part.schema or part.schema.get("additionalProperties", True) is True:
            continue
        doubtful = [name for name in names if name not in names_of(part, "properties")]
        if doubtful:
            text = f"whether it holds for {doubtful[0]!r:.80} is for patternProperties to say, and left out"
            losses.add(part.place, "additionalProperties", text)


def names_of(part: Subschema, keyword: str) -> list[str]:
    """The names in the list or object of a keyword."""
    names = part.schema.get(keyword)
    return [str(name) for name in names] if isinstance(names, dict | list) else []


def write_array(writer: SubschemaWriter, parts: list[Subschema], form: Json, notes: list[str]) -> None:
    """Write the items; the entries of a tuple become alternatives for every item."""
    rest: list[Node] = []
    rows: list[list[Node]] = []
    for part in parts:
        row = listed(part.place, part.schema, "prefixItems") or listed(part.place, part.schema, "items")
        after = "items" if "prefixItems" in part.schema else "additionalItems" if row else "items"
        if row:
            writer.lose(part, row[0][0][-2], notes)
            rows.append([*row, *_rest(part, after, row, form, writer)])
        elif after in part.schema:
            rest.append(((*part.place, after), part.schema[after]))
    _write_items(writer, parts, rest, rows, form, notes)
    for part in parts:
        for keyword in ARRAY_SAID:
            if _says(part, keyword):
                writer.lose(part, keyword, notes)
        for keyword in ("minContains", "maxContains"):
            if keyword in part.schema and "contains" in part.schema:
                writer.lose(part, keyword, notes)


class Opened(NamedTuple):
    """A schema whose root is a plain object, and the losses of the conversion."""

    schema: Mapping[str, object]
    losses: Losses


def open_root(source: Mapping[str, object], label: str) -> Opened:
    """The schema itself if its root is a plain object, otherwise the closest schema with one."""
    if source.get("type") == "object" and not source.keys() & REFUSED:
        return Opened(source, Losses())
    return _Opening(source, label).open()


def check_references(schema: object) -> None:
    """Refuse a reference into keywords that were removed from the root."""
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


def _says(part: Subschema, keyword: str) -> bool:
    return keyword in part.schema and part.schema[keyword] not in DEMANDS_NOTHING.get(keyword, (True, {}))


def _lose_required(writer: SubschemaWriter, parts: list[Subschema], name: str) -> None:
    for part in parts:
        if name in names_of(part, "required"):
            text = f"no value fits {name!r}, so that {writer.target.label} is not told of it"
            writer.losses.add(part.place, "required", text)


def _say_open(writer: SubschemaWriter, parts: list[Subschema], notes: list[str]) -> None:
    for part in parts:
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(part.schema.get(keyword), dict) and part.schema[keyword]:
                writer.lose(part, keyword, notes)
        if part.schema.get("unevaluatedProperties") is False and not _is_around(writer, part, parts):
            writer.lose(part, "unevaluatedProperties", notes)
    closed = ("additionalProperties", "unevaluatedProperties")
    if not any(part.schema.get(keyword) is False for part in parts for keyword in closed):
        text = f"{writer.target.label} offers only the properties that are named; others cannot be sent"
        writer.losses.add(parts[0].place, "additionalProperties", text)


def _is_around(writer: SubschemaWriter, part: Subschema, parts: list[Subschema]) -> bool:
    """Whether all parts are inside this one, so that its keywords apply to all of their properties."""
    gathered = writer.reading.gather([part])
    own = [] if gathered is None else [inner.place for inner in gathered.parts]
    return all(any(other.place[: len(place)] == place for place in own) for other in parts)


def _rest(part: Subschema, after: str, row: list[Node], form: Json, writer: SubschemaWriter) -> list[Node]:
    """The schema of the items after a tuple; a tuple without further items limits the number of items."""
    further = part.schema.get(after, True)
    if further is not False:
        if after in part.schema:
            writer.losses.add(
                part.place, after, f"{writer.target.label} is offered it for every item, not for the last ones"
            )
        return [((*part.place, after), further)]
    if "maxItems" in writer.target.keywords:
        form["maxItems"] = min(len(row), cast("float", form.get("maxItems", len(row))))
    else:
        writer.losses.add(part.place, after, f"{writer.target.label} does not bound the number of items")
    return []


def _write_items(
    writer: SubschemaWriter,
    parts: list[Subschema],
    rest: list[Node],
    rows: list[list[Node]],
    form: Json,
    notes: list[str],
) -> None:
    if rows:
        written = [writer.write(node[0], [node, *rest]) for node in rows[0]]
        forms = [inner for index, inner in enumerate(written) if inner is not None and inner not in written[:index]]
        form["items"] = forms[0] if len(forms) == 1 else {"anyOf": forms} if forms else {"type": "string"}
        return
    place = rest[0][0] if rest else parts[0].place
    items = writer.write(place, rest)
    if items is not None:
        form["items"] = items
        return
    form["items"] = {"type": "string"}
    if "maxItems" in writer.target.keywords:
        form["maxItems"] = 0
    else:
        notes.append("an empty list")
        writer.losses.add(parts[0].place, "items", writer.unenforced(notes[-1]))


class _Opening:
    def __init__(self, source: Mapping[str, object], label: str) -> None:
        self.source = source
        self.label = label
        self.moved: dict[Place, list[Place]] = {}
        self.losses = Losses(self.moved)
        self.reading = References(source)
        self.parts: list[Subschema] = []
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
        said = phrases.join(" ".join(texts), self.notes)
        if said:
            self.schema["description"] = said
        return Opened(self.schema, self.losses)

    def _merge_properties(self, parts: list[Subschema]) -> None:
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

    def _merge_keywords(self, parts: list[Subschema]) -> None:
        for part in parts:
            for keyword, value in part.schema.items():
                if keyword in {"not", "enum", "const"} or (keyword.startswith("unevaluated") and part.place):
                    self._lose(part, keyword)
                elif keyword not in MERGED:
                    self._merge_keyword(part, keyword, value)

    def _merge_keyword(self, part: Subschema, keyword: str, value: object) -> None:
        kept = self.schema.setdefault(keyword, value)
        if keyword in LARGEST | SMALLEST:
            bound = max if keyword in LARGEST else min
            self.schema[keyword] = bound(cast("float", kept), cast("float", value))
        elif identity(kept) != identity(value):
            self._lose(part, keyword)
            return
        self.moved.setdefault((keyword,), []).append((*part.place, keyword))

    def _unite(self, part: Subschema, keyword: str) -> None:
        """Merge the properties of all branches; only those that every branch requires are required."""
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

    def _add_properties(self, branches: list[list[Subschema]], properties: Json) -> None:
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
        """Combine several schemas into one, and record where each came from."""
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

    def _lose(self, part: Subschema, keyword: str) -> None:
        self.notes.append(phrases.say(keyword, part.schema[keyword]))
        text = f"{self.label} takes one plain object at the root, so the description says: {self.notes[-1]}"
        self.losses.add(part.place, keyword, text)
