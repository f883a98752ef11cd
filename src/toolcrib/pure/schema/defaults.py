"""Defaults: what a caller left out and the schema knows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.schema.check import compile_schema
from toolcrib.pure.schema.graph import look_up, parse_pointer
from toolcrib.pure.schema.words import any_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_FILLED = 100_000
MAX_HOPS = 32
TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}

Arguments = dict[str, object]
Schema = Mapping[str, object]


def fill_defaults(schema: object) -> Callable[[Arguments], Arguments] | None:
    """A function that completes arguments without changing them; None if the schema has no defaults."""
    if not isinstance(schema, Mapping):
        return None
    filler = _Filler(schema)
    defaults = filler.defaults(schema)
    if filler.has_deeper_defaults():
        return filler.complete
    if not defaults:
        return None
    if any(isinstance(value, list | dict) for value in defaults.values()):
        return lambda arguments: {**deepcopy(defaults), **arguments}
    return lambda arguments: {**defaults, **arguments}


def with_default(schema: Schema, default: object) -> Arguments:
    """The schema with a default that it accepts; one of None makes it accept null, and another misfit is left out."""
    if default is None and not accepts(schema, None):
        schema = any_of([schema, {"type": "null"}])
    return {**schema, "default": default} if accepts(schema, default) else dict(schema)


def accepts(schema: Schema, value: object, definitions: Schema | None = None) -> bool:
    """Whether a value fits a schema that refers to nothing but the definitions."""
    # The commonest schemas need no engine, and the engine takes long to import.
    if schema.keys() <= {"type", "description"} and type(schema.get("type")) is str and type(value) in TYPE_NAMES:
        return schema["type"] == TYPE_NAMES[type(value)] or (schema["type"] == "number" and type(value) is int)
    return not schema or compile_schema({**schema, "$defs": definitions or {}}).is_valid(value)


class _Filler:
    """Reads the schema beside the value; only schemas with defaults below the top need it."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def complete(self, arguments: Arguments) -> Arguments:
        filled = self._fill(self.root, arguments, [MAX_FILLED])
        return filled if isinstance(filled, dict) else arguments

    def defaults(self, schema: Schema) -> Arguments:
        resolved = self._resolve(schema)
        return {name: inner["default"] for name, inner in self._properties(resolved) if "default" in inner}

    def has_deeper_defaults(self) -> bool:
        seen: set[int] = set()
        waiting = [inner for _, inner in self._properties(self._resolve(self.root))]
        while waiting:
            schema = self._resolve(waiting.pop())
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            if self.defaults(schema):
                return True
            waiting.extend(inner for _, inner in self._properties(schema))
            waiting.extend(self._items(schema))
        return False

    def _fill(self, schema: Schema, value: object, budget: list[int]) -> object:
        schema = self._resolve(schema)
        if isinstance(value, dict):
            return self._fill_object(schema, value, budget)
        if isinstance(value, list):
            for items in self._items(schema):
                return [self._fill(items, item, budget) for item in value]
        return value

    def _fill_object(self, schema: Schema, value: Arguments, budget: list[int]) -> Arguments:
        filled = dict(value)
        for name, inner in self._properties(schema):
            if name in filled:
                filled[name] = self._fill(inner, filled[name], budget)
            elif "default" in inner:
                _spend(budget, inner["default"])
                filled[name] = deepcopy(inner["default"])
        return filled

    def _properties(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from ((name, inner) for name, inner in properties.items() if isinstance(inner, Mapping))

    def _items(self, schema: Schema) -> Iterator[Schema]:
        # With prefixItems the items speak only for the rest; such lists are left as they are.
        items = schema.get("items")
        if isinstance(items, Mapping) and "prefixItems" not in schema:
            yield items

    def _resolve(self, schema: Schema) -> Schema:
        for _ in range(MAX_HOPS):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or "properties" in schema:
                return schema
            target = look_up(self.root, parse_pointer(reference)) if reference[1:2] in ("", "/") else None
            if not isinstance(target, Mapping):
                return schema
            schema = target
        return schema


def _spend(budget: list[int], default: object) -> None:
    """A small argument must not become a huge one: many items times a large default."""
    budget[0] -= _count(default)
    if budget[0] < 0:
        message = f"the defaults of the schema would add more than {MAX_FILLED:,} values; send fewer items"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)


def _count(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1
