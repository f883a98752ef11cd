"""The inside of a restricted form: the properties of objects and the items of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolcrib.pure.export.reading import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.pure.export.merging import Part
    from toolcrib.pure.export.model import Json
    from toolcrib.pure.export.reading import Losses, Node
    from toolcrib.pure.export.writer import Writer

# Values under which a keyword demands nothing; under `contains` there are none.
DEMANDS_NOTHING: dict[str, tuple[object, ...]] = {"uniqueItems": (False,), "contains": ()}
OBJECT_SAID = ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies")
ARRAY_SAID = ("contains", "uniqueItems", "unevaluatedItems")


def write_object(writer: Writer, parts: list[Part], form: Json, notes: list[str]) -> None:
    """Write the properties; every restricted form is closed, so what may be added is lost."""
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


def property_nodes(part: Part, name: str) -> list[Node]:
    """What one of the schemas says about a property."""
    declared = part.schema.get("properties")
    if isinstance(declared, dict) and name in declared:
        return [((*part.place, "properties", name), declared[name])]
    if "additionalProperties" not in part.schema or "patternProperties" in part.schema:
        return []
    return [((*part.place, "additionalProperties"), part.schema["additionalProperties"])]


def lose_doubtful(losses: Losses, parts: list[Part], names: Iterable[str]) -> None:
    """Note where patterns leave open whether a name is an additional one."""
    for part in parts:
        if "patternProperties" not in part.schema or part.schema.get("additionalProperties", True) is True:
            continue
        doubtful = [name for name in names if name not in names_of(part, "properties")]
        if doubtful:
            text = f"whether it holds for {doubtful[0]!r:.80} is for patternProperties to say, and left out"
            losses.add(part.place, "additionalProperties", text)


def names_of(part: Part, keyword: str) -> list[str]:
    """The names that a schema lists or declares under a keyword."""
    names = part.schema.get(keyword)
    return [str(name) for name in names] if isinstance(names, dict | list) else []


def _says(part: Part, keyword: str) -> bool:
    return keyword in part.schema and part.schema[keyword] not in DEMANDS_NOTHING.get(keyword, (True, {}))


def _lose_required(writer: Writer, parts: list[Part], name: str) -> None:
    for part in parts:
        if name in names_of(part, "required"):
            text = f"no value fits {name!r}, so that {writer.target.label} is not told of it"
            writer.losses.add(part.place, "required", text)


def _say_open(writer: Writer, parts: list[Part], notes: list[str]) -> None:
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


def _is_around(writer: Writer, part: Part, parts: list[Part]) -> bool:
    """Whether all the parts belong to this one, so that it sees every property that they name."""
    gathered = writer.reading.gather([part])
    own = [] if gathered is None else [inner.place for inner in gathered.parts]
    return all(any(other.place[: len(place)] == place for place in own) for other in parts)


def write_array(writer: Writer, parts: list[Part], form: Json, notes: list[str]) -> None:
    """Write what the items are; places in a row become alternatives for every item."""
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


def _rest(part: Part, after: str, row: list[Node], form: Json, writer: Writer) -> list[Node]:
    """What stands behind a row of places; a row that nothing may follow bounds the number of items."""
    behind = part.schema.get(after, True)
    if behind is not False:
        if after in part.schema:
            writer.losses.add(
                part.place, after, f"{writer.target.label} is offered it for every item, not for the last ones"
            )
        return [((*part.place, after), behind)]
    if "maxItems" in writer.target.keywords:
        form["maxItems"] = min(len(row), cast("float", form.get("maxItems", len(row))))
    else:
        writer.losses.add(part.place, after, f"{writer.target.label} does not bound the number of items")
    return []


def _write_items(
    writer: Writer, parts: list[Part], rest: list[Node], rows: list[list[Node]], form: Json, notes: list[str]
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
