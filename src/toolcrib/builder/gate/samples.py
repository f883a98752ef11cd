"""Values that a schema allows: an ordinary one, and those at the edges of what it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import MISSING
from toolcrib.pure.schema import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.model.toolrequest import Input, ToolRequest

    Schema = Mapping[str, object]

MAX_DEPTH = 6
WORDS, REPEATED = "Long text, word after word. ", 150
LONG = WORDS * REPEATED
FOREIGN = "Ünïcode «日本語» 🙂 \"double\" 'single' \\back {curly} %s <tag>\n\ttab"
LARGE = 10_000
# What stands first is ordinary, what follows lies at an edge.
BY_TYPE: Mapping[str, tuple[object, ...]] = {
    "string": ("example", "", "Some other text, with 2 numbers: 10 and 7.", FOREIGN, LONG),
    "integer": (3, 0, -1, 1, LARGE),
    "number": (2.5, 0, -1.25, LARGE),
    "boolean": (True, False),
    "null": (None,),
}


def ordinary_value(given: Input, request: ToolRequest) -> object:
    """What somebody would give: a value that the request shows, or one that is plain."""
    return next(_shown(given, request), None) if _has_shown(given, request) else make_value(given.schema)


def edge_values(given: Input, request: ToolRequest) -> list[object]:
    """Further values that the input allows, those that differ most from an ordinary one first."""
    fits = compile_schema(given.schema).is_valid
    candidates = [*_shown(given, request), *_variants(given.schema)]
    return list(_once(value for value in candidates if fits(value)))


def make_value(schema: Schema, depth: int = 0) -> object:
    """One value that the schema allows, as far as a plain one does."""
    return next(iter(_variants(schema, depth)), None)


def _has_shown(given: Input, request: ToolRequest) -> bool:
    return next(_shown(given, request), MISSING) is not MISSING


def _shown(given: Input, request: ToolRequest) -> Iterator[object]:
    """The values that the request itself shows, as far as its own schema allows them."""
    values = [*given.samples]
    if given.name in request.shown:
        values.append(request.shown[given.name])
    if given.default is not MISSING and given.default is not None:
        values.append(given.default)
    fits = compile_schema(given.schema).is_valid
    yield from (value for value in values if fits(value))


def _variants(schema: Schema, depth: int = 0) -> list[object]:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return choices
    if "const" in schema:
        return [schema["const"]]
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        return [value for branch in branches if isinstance(branch, Mapping) for value in _variants(branch, depth)]
    kinds = schema.get("type", "string")
    found: list[object] = []
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        found += _variants_of(str(kind), schema, depth)
    return found


def _variants_of(kind: str, schema: Schema, depth: int) -> list[object]:
    if kind == "array":
        return _arrays(schema, depth)
    if kind == "object":
        return _objects(schema, depth)
    return list(BY_TYPE.get(kind, ()))


def _arrays(schema: Schema, depth: int) -> list[object]:
    items = schema.get("items")
    inner = _variants(items, depth + 1) if isinstance(items, Mapping) and items and depth < MAX_DEPTH else []
    # Without a word about them items may be anything; text is what most lists hold.
    inner = inner or ["first", "second", "third"]
    return [inner[:2] if depth else inner[:3], [], inner[:1] * 30]


def _objects(schema: Schema, depth: int) -> list[object]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth >= MAX_DEPTH:
        return [{"key": "value"}, {}, {"name": "Ada", "number": 7, "list": [1, 2], "inner": {"deep": None}}]
    full = {name: make_value(inner, depth + 1) for name, inner in properties.items() if isinstance(inner, Mapping)}
    required = schema.get("required")
    least = {name: value for name, value in full.items() if isinstance(required, list) and name in required}
    return [full, least]


def _once(values: Iterable[object]) -> Iterator[object]:
    """Each value once; true is not 1 here."""
    seen: list[tuple[type, object]] = []
    for value in values:
        key = type(value), value
        if key not in seen:
            seen.append(key)
            yield value
