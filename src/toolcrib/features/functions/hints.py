"""Translate a type hint: the JSON Schema of its values, and how to build the object from JSON."""

from __future__ import annotations

import collections
import datetime as dt
import pathlib
import types
import typing
from collections import abc
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from uuid import UUID

from toolcrib.features.functions import values
from toolcrib.features.functions.values import NotJSON, enum_value, pydantic_base, read_record, to_json
from toolcrib.lib.schema import accepts, compile_schema
from toolcrib.lib.schema_structure import any_of, object_schema
from toolcrib.model.result import Outcome

BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
LENGTHS = {
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
TEXT_LENGTHS = {"min_length": "minLength", "max_length": "maxLength"}


def apply_note(schema: dict[str, object], note: object) -> None:
    """Write a note into the schema.

    Text is the description; anything else is asked for the attributes that pydantic's Field and annotated_types have.
    """
    if isinstance(note, str):
        schema["description"] = note
        return
    for attribute in ("description", "documentation"):
        text = getattr(note, attribute, None)
        if isinstance(text, str):
            schema["description"] = text
    lengths = LENGTHS.get(str(schema.get("type")), TEXT_LENGTHS)
    for attribute, keyword in {**BOUNDS, **lengths}.items():
        bound = getattr(note, attribute, None)
        if isinstance(bound, int | float | str):
            schema[keyword] = bound
    parts = getattr(note, "metadata", None)
    if isinstance(parts, list | tuple):
        for part in parts:
            apply_note(schema, part)


if typing.TYPE_CHECKING:
    from toolcrib.features.functions.values import Field, Record
    from toolcrib.lib.schema import Validator

Schema = dict[str, object]
Revive = abc.Callable[[object], object]
Mode = typing.Literal["validation", "serialization"]

MAX_SHAPES = 2_000
MAX_MEANINGS = 50
DIGITS = r"^-?\d+(\.\d+)?$"
CLOCK = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?$"
CURE = "use a plain type, a dataclass, a TypedDict, an Enum or a pydantic model"


class HintError(Exception):
    """A hint that has no meaning in JSON, with the cure."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A hint, read: `revive` is None and `plain` is true where the JSON is the object already."""

    schema: Schema
    revive: Revive | None = None
    plain: bool = True


@dataclass(slots=True)
class _Opened:
    """A class whose fields are being read, which may refer to itself."""

    name: str
    recursive: bool = False
    revive: Revive | None = None

    def revive_later(self, value: object) -> object:
        return value if self.revive is None else self.revive(value)


def _text(make: Revive, **rules: object) -> Shape:
    return Shape({"type": "string", **rules}, make, plain=False)


TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
NULL = Shape({"type": "null"})
SIMPLE: dict[object, Shape] = {
    **{kind: Shape({"type": name}) for kind, name in TYPE_NAMES.items()},
    None: NULL,
    typing.LiteralString: Shape({"type": "string"}),
    **dict.fromkeys((typing.Any, object, Outcome), Shape({})),
    dt.datetime: _text(values.revive_datetime, format="date-time"),
    dt.date: _text(values.revive_date, format="date"),
    dt.time: _text(values.revive_time, pattern=CLOCK),
    dt.timedelta: Shape({"type": "number", "description": "seconds"}, values.revive_duration, plain=False),
    UUID: _text(lambda value: UUID(str(value)), format="uuid"),
    Decimal: _text(values.revive_decimal, pattern=DIGITS),
    bytes: _text(values.revive_bytes, contentEncoding="base64"),
    **dict.fromkeys((pathlib.Path, pathlib.PosixPath), _text(lambda value: pathlib.Path(str(value)))),
    **dict.fromkeys((pathlib.PurePath, pathlib.PurePosixPath), _text(lambda value: pathlib.PurePath(str(value)))),
}
# Hints that a JSON array satisfies, each with what makes its own kind of collection of a list.
ARRAYS: dict[object, abc.Callable[[list[object]], object] | None] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)),
    **dict.fromkeys((abc.Iterator, abc.Generator), iter),
    **dict.fromkeys((set, abc.Set, abc.MutableSet), set),
    collections.deque: collections.deque,
    frozenset: frozenset,
}
SETS = frozenset({set, frozenset, abc.Set, abc.MutableSet})
OBJECTS = frozenset({dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict})


class HintReader:
    """Reads the hints of one signature; a class that contains itself ends up in `definitions`."""

    def __init__(self, mode: Mode = "validation") -> None:
        self.mode: Mode = mode
        self.definitions: dict[str, object] = {}
        self._opened: dict[object, _Opened] = {}
        self._count = 0

    def read(self, hint: object) -> Shape:
        """What the hint means; raises HintError."""
        self._count += 1
        if self._count > MAX_SHAPES:
            message = f"unfolds to more than {MAX_SHAPES:,} types; make it smaller"
            raise HintError(message)
        try:
            simple = SIMPLE.get(hint)
        except TypeError:  # Annotated with a note that cannot be hashed
            simple = None
        if simple is not None:
            return simple
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self._annotated(*arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union([self.read(member) for member in arguments])
        if origin is typing.Literal:
            return _enumeration([(to_json(member), member) for member in arguments])
        if origin in (typing.Required, typing.NotRequired, typing.Final):
            return self.read(arguments[0])
        return self._collection(origin or hint, arguments) or self._named(origin or hint)

    def read_object(self, fields: list[Field]) -> tuple[Schema, dict[str, Revive], bool]:
        """A closed object of the fields, how to revive those that need it, and whether all of them are plain."""
        shapes = {known.name: self._read_field(known) for known in fields}
        revivers = {name: shape.revive for name, shape in shapes.items() if shape.revive is not None}
        properties = {name: shape.schema for name, shape in shapes.items()}
        required = [known.name for known in fields if known.required]
        return object_schema(properties, required), revivers, all(shape.plain for shape in shapes.values())

    def _read_field(self, known: Field) -> Shape:
        try:
            shape = self.read(known.hint)
        except HintError as error:
            message = f"{known.name}: {error}"
            raise HintError(message) from None
        if known.default is None and not self._accepts(shape.schema, None):
            shape = self._union([shape, NULL])
        schema = dict(shape.schema)
        if known.description:
            schema.setdefault("description", known.description)
        if known.default is not NotJSON and self._accepts(schema, known.default):
            schema["default"] = known.default
        return replace(shape, schema=schema)

    def _accepts(self, schema: Schema, value: object) -> bool:
        # A class that is still being read has no definition yet; that it is an object is known.
        unfinished = {opened.name: {"type": "object"} for opened in self._opened.values()}
        return accepts(schema, value, {**self.definitions, **unfinished})

    def _annotated(self, inner: object, *notes: object) -> Shape:
        shape = self.read(inner)
        schema = dict(shape.schema)
        for note in notes:
            apply_note(schema, note)
        return replace(shape, schema=schema)

    def _union(self, members: list[Shape]) -> Shape:
        revive = self._revive_union(members) if any(member.revive for member in members) else None
        return Shape(any_of(member.schema for member in members), revive, plain=all(member.plain for member in members))

    def _revive_union(self, members: list[Shape]) -> Revive:
        """Build the object by the first member that accepts the JSON."""
        some = [member for member in members if member.schema != NULL.schema]
        if len(some) == 1:
            only = some[0].revive
            return lambda value: value if value is None or only is None else only(value)
        choices: list[tuple[Validator, Revive | None]] = []

        def revive(value: object) -> object:
            if not choices:
                # Compiled at the first call: definitions are complete only when the whole signature is read.
                choices.extend(
                    [
                        (compile_schema({**member.schema, "$defs": self.definitions}), member.revive)
                        for member in members
                    ]
                )
            make = next((make for validator, make in choices if validator.is_valid(value)), None)
            return value if make is None else make(value)

        return revive

    def _collection(self, kind: object, arguments: tuple[object, ...]) -> Shape | None:
        if kind is tuple:
            return self._tuple(arguments)
        if kind in ARRAYS:
            return self._array(kind, self.read(arguments[0]) if arguments else Shape({}))
        if kind in OBJECTS:
            return self._mapping(*(self.read(argument) for argument in arguments or (str, typing.Any)))
        return None

    def _array(self, kind: object, item: Shape) -> Shape:
        schema: Schema = {"type": "array"}
        if item.schema:
            schema["items"] = item.schema
        if kind in SETS:
            schema["uniqueItems"] = True
        make, inner = ARRAYS[kind], item.revive
        if make is None:
            return Shape(schema, None if inner is None else lambda value: _revive_items(value, inner), plain=item.plain)
        return Shape(schema, lambda value: make(_revive_items(value, inner)), plain=False)

    def _tuple(self, arguments: tuple[object, ...]) -> Shape:
        if not arguments or arguments[-1] is Ellipsis:
            item = self.read(arguments[0]) if arguments else Shape({})
            schema = self._array(list, item).schema
            return Shape(schema, lambda value: tuple(_revive_items(value, item.revive)), plain=False)
        items = [self.read(argument) for argument in arguments]
        schema = {"type": "array", "prefixItems": [item.schema for item in items]}
        schema |= {"minItems": len(items), "items": False}
        return Shape(schema, lambda value: tuple(map(_revive_one, items, _list(value))), plain=False)

    def _mapping(self, key: Shape, value: Shape) -> Shape:
        if key.schema.get("type") != "string" and key.schema:
            message = "the keys of a JSON object are text; use dict[str, …]"
            raise HintError(message)
        schema: Schema = {"type": "object"}
        if key.schema.keys() > {"type"}:
            schema["propertyNames"] = key.schema
        if value.schema:
            schema["additionalProperties"] = value.schema
        if key.revive is None and value.revive is None:
            return Shape(schema, plain=key.plain and value.plain)
        return Shape(schema, lambda given: _revive_entries(given, key, value), plain=False)

    def _named(self, hint: object) -> Shape:
        if isinstance(hint, typing.NewType):
            return self.read(hint.__supertype__)
        if isinstance(hint, typing.TypeVar):
            return self.read(hint.__bound__ or typing.Any)
        if type(hint).__name__ == "TypeAliasType":  # of Python 3.12
            return self.read(typing.cast("typing.Any", hint).__value__)
        if not isinstance(hint, type):
            message = f"{hint!r:.80} cannot be written as JSON; {CURE}"
            raise HintError(message)
        if issubclass(hint, Enum):
            return _enum(hint)
        base = pydantic_base()
        if base is not None and issubclass(hint, base):
            return self._pydantic_model(hint)
        return self._record(hint)

    def _record(self, kind: type) -> Shape:
        if (opened := self._opened.get(kind)) is not None:
            opened.recursive = True
            return Shape({"$ref": f"#/$defs/{opened.name}"}, opened.revive_later, plain=False)
        try:
            record = read_record(kind)
        except NameError as error:
            message = f"{kind.__name__}: {error}; define it in the module of the class"
            raise HintError(message) from None
        if record is None:
            message = f"{kind.__qualname__} cannot be written as JSON; {CURE}"
            raise HintError(message)
        opened = self._opened[kind] = _Opened(self._free_name(kind.__name__))
        schema, revivers, plain = self.read_object(record.fields)
        del self._opened[kind]
        opened.revive = _revive_record(record, revivers)
        if opened.recursive:
            self.definitions[opened.name] = schema
            schema = {"$ref": f"#/$defs/{opened.name}"}
        return Shape(schema, opened.revive, plain=plain and record.build is None)

    def _pydantic_model(self, model: typing.Any) -> Shape:
        name = self._free_name(model.__name__)
        schema = model.model_json_schema(mode=self.mode, ref_template=f"#/$defs/{name}.{{model}}")
        inner = schema.pop("$defs", {})
        self.definitions.update({f"{name}.{part}": definition for part, definition in inner.items()})
        return Shape(schema, model.model_validate, plain=False)

    def _free_name(self, name: str) -> str:
        """A name under $defs that no other class of this signature has."""
        taken = {opened.name for opened in self._opened.values()} | {key.partition(".")[0] for key in self.definitions}
        number = 2
        free = name
        while free in taken:
            free = f"{name}{number}"
            number += 1
        return free


def _enum(kind: type[Enum]) -> Shape:
    pairs = [(enum_value(member), member) for member in kind]
    shape = _enumeration(list(pairs))
    if all(isinstance(written, str) for written, _ in pairs) or len(pairs) > MAX_MEANINGS:
        return shape
    meanings = ", ".join(f"{written}: {member.name}" for written, member in pairs)
    return replace(shape, schema={**shape.schema, "description": meanings})


def _enumeration(pairs: list[tuple[object, object]]) -> Shape:
    """An enumeration: the JSON of each value, and the value."""
    names = {TYPE_NAMES[type(written)] for written, _ in pairs}
    schema: Schema = {"type": names.pop()} if len(names) == 1 else {}
    schema["enum"] = [written for written, _ in pairs]
    if all(written is wanted for written, wanted in pairs):
        return Shape(schema)
    wanted = dict(pairs)
    return Shape(schema, wanted.__getitem__, plain=False)


def _revive_record(record: Record, revivers: dict[str, Revive]) -> Revive | None:
    build = record.build
    if build is None and not revivers:
        return None

    def revive(value: object) -> object:
        objects = dict(typing.cast("dict[str, object]", value))
        for name, make in revivers.items():
            if name in objects:
                objects[name] = make(objects[name])
        return objects if build is None else build(**objects)

    return revive


def _revive_items(value: object, make: Revive | None) -> list[object]:
    return _list(value) if make is None else [make(item) for item in _list(value)]


def _list(value: object) -> list[object]:
    return typing.cast("list[object]", value)


def _revive_one(item: Shape, value: object) -> object:
    return value if item.revive is None else item.revive(value)


def _revive_entries(given: object, key: Shape, value: Shape) -> dict[object, object]:
    entries = typing.cast("dict[str, object]", given)
    return {_revive_one(key, name): _revive_one(value, inner) for name, inner in entries.items()}
