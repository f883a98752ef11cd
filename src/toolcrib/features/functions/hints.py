"""Convert a type hint to the JSON Schema of its values, and to a function that builds the object from JSON."""

from __future__ import annotations

import collections
import sys
import types
import typing
from collections import abc
from dataclasses import dataclass
from enum import Enum

from toolcrib.features.functions.values import NotJSON, pydantic_base, read_record
from toolcrib.lib.python_declarations import (
    CLASSES,
    PLAIN,
    RESULTS,
    array_schema,
    bound_words,
    described,
    enum_schema,
    enumeration,
    mapping_schema,
    tuple_schema,
)
from toolcrib.lib.schema import accepts
from toolcrib.lib.schema_structure import any_of, object_schema
from toolcrib.model.result import Outcome
from toolcrib.values import enum_value, to_json
from toolcrib.values.hint_values import CHECKS, HintConverter, UnreadableHintError, meant_by, or_none
from toolcrib.values.records import record

if typing.TYPE_CHECKING:
    from toolcrib.features.functions.values import Field

Schema = dict[str, object]
Revive = abc.Callable[[object], object]
Mode = typing.Literal["validation", "serialization"]

MAX_SHAPES = 2_000
CURE = "use a plain type, a dataclass, a TypedDict, an Enum or a pydantic model"


def apply_note(schema: dict[str, object], note: object) -> None:
    """Write a note of `Annotated` into the schema.

    Text is the description; of anything else the attributes are read that pydantic's Field and annotated_types have.
    """
    if isinstance(note, str):
        schema["description"] = note
        return
    for attribute in ("description", "documentation"):
        text = getattr(note, attribute, None)
        if isinstance(text, str):
            schema["description"] = text
    for attribute, keyword in bound_words(schema).items():
        bound = getattr(note, attribute, None)
        if isinstance(bound, int | float | str):
            schema[keyword] = bound
    parts = getattr(note, "metadata", None)
    if isinstance(parts, list | tuple):
        for part in parts:
            apply_note(schema, part)


class UnsupportedHintError(Exception):
    """A hint that has no JSON Schema, with the cure."""


@record(kw_only=False)
class Shape:
    """The schema of a hint, and `revive`, which builds the object; None if the JSON is the object already."""

    schema: Schema
    revive: Revive | None = None

    @property
    def plain(self) -> bool:
        """Whether the JSON is the object already."""
        return self.revive is None


@dataclass(slots=True)
class _Opened:
    """A class whose fields are being read, which may refer to itself."""

    name: str
    recursive: bool = False


NULL: Schema = {"type": "null"}
PLAIN_TYPES: dict[object, Schema] = {
    **{kind: PLAIN[kind.__name__] for kind in (str, int, float, bool, object)},
    **dict.fromkeys((None, type(None)), NULL),
    **dict.fromkeys((typing.Any, Outcome), PLAIN["object"]),
    typing.LiteralString: PLAIN["str"],
}
SIMPLE = {kind: Shape(schema) for kind, schema in PLAIN_TYPES.items()}
ARRAYS = frozenset(
    (
        *(list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Iterator, abc.Generator),
        collections.deque,
    )
)
SETS = frozenset({set, frozenset, abc.Set, abc.MutableSet})
OBJECTS = frozenset({dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict, collections.Counter})


class HintReader:
    """Reads the hints of one signature; a class that contains itself ends up in `definitions`."""

    def __init__(self, mode: Mode = "validation") -> None:
        self.mode: Mode = mode
        self.definitions: dict[str, object] = {}
        self._opened: dict[object, _Opened] = {}
        self._count = 0

    def read(self, hint: object) -> Shape:
        """What the hint means; raises UnsupportedHintError."""
        try:
            if (simple := SIMPLE.get(hint)) is not None:
                return simple
        except TypeError:  # Annotated with a note that cannot be hashed
            pass
        schema = self._schema(hint)
        return Shape(schema, _reviver(hint))

    def read_object(self, fields: list[Field]) -> tuple[Schema, dict[str, Revive]]:
        """A closed object of the fields, and how to revive those that need it."""
        properties: Schema = {}
        revivers: dict[str, Revive] = {}
        for known in fields:
            properties[known.name] = self._field(known)
            revive = _reviver(known.hint)
            revive = or_none(revive) if known.default is None else revive
            if revive is not None:
                revivers[known.name] = revive
        return object_schema(properties, [known.name for known in fields if known.required]), revivers

    def _object(self, fields: list[Field]) -> Schema:
        properties = {known.name: self._field(known) for known in fields}
        return object_schema(properties, [known.name for known in fields if known.required])

    def _field(self, known: Field) -> Schema:
        try:
            schema = self._schema(known.hint)
        except UnsupportedHintError as error:
            message = f"{known.name}: {error}"
            raise UnsupportedHintError(message) from None
        if known.default is None and not self._accepts(schema, None):
            schema = any_of([schema, NULL])
        schema = dict(described(schema, known.description))
        if known.default is not NotJSON and self._accepts(schema, known.default):
            schema["default"] = known.default
        return schema

    def _accepts(self, schema: Schema, value: object) -> bool:
        # A class that is still being read has no definition yet, but is known to be an object.
        unfinished = {opened.name: {"type": "object"} for opened in self._opened.values()}
        return accepts(schema, value, {**self.definitions, **unfinished})

    def _schema(self, hint: object) -> Schema:
        self._count += 1
        if self._count > MAX_SHAPES:
            message = f"unfolds to more than {MAX_SHAPES:,} types; make it smaller"
            raise UnsupportedHintError(message)
        try:
            simple = PLAIN_TYPES.get(hint)
        except TypeError:  # Annotated with a note that cannot be hashed
            simple = None
        if simple is not None:
            return simple
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self._annotated(*arguments)
        if origin in (typing.Union, types.UnionType):
            return any_of(self._schema(member) for member in arguments)
        if origin is typing.Literal:
            return enumeration([to_json(member) for member in arguments])
        if origin in (typing.Required, typing.NotRequired, typing.Final):
            return self._schema(arguments[0])
        return self._collection(origin or hint, arguments) or self._named(origin or hint)

    def _annotated(self, inner: object, *notes: object) -> Schema:
        schema = dict(self._schema(inner))
        for note in notes:
            apply_note(schema, note)
        return schema

    def _collection(self, kind: object, arguments: tuple[object, ...]) -> Schema | None:
        if kind is tuple and arguments and arguments[-1] is not Ellipsis:
            return tuple_schema([self._schema(argument) for argument in arguments])
        if kind is tuple or kind in ARRAYS or kind in SETS:
            return array_schema(self._schema(arguments[0]) if arguments else {}, unique=kind in SETS)
        if kind not in OBJECTS:
            return None
        key, value = (
            (arguments[0], int) if kind is collections.Counter and arguments else arguments or (str, typing.Any)
        )
        schema = mapping_schema(self._schema(key), self._schema(value))
        if schema is None:
            message = "the keys of a JSON object are text; use dict[str, …]"
            raise UnsupportedHintError(message)
        return schema

    def _named(self, hint: object) -> Schema:
        if (other := meant_by(hint)) is not None:
            return self._schema(other)
        if not isinstance(hint, type):
            message = f"{hint!r:.80} cannot be written as JSON; {CURE}"
            raise UnsupportedHintError(message)
        if (known := self._known_class(hint)) is not None:
            return known
        if issubclass(hint, Enum):
            return enum_schema([(member.name, enum_value(member)) for member in hint])
        base = pydantic_base()
        if base is not None and issubclass(hint, base):
            return self._pydantic_model(hint)
        return self._record(hint)

    def _known_class(self, kind: type) -> Schema | None:
        names = (kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}", f"pathlib.{kind.__qualname__}")
        # Compared by class, because another module may have a class of the same name.
        name = next((name for name in names if name in CLASSES and _is_class(kind, name)), "")
        return (RESULTS.get(name) if self.mode == "serialization" else None) or CLASSES.get(name)

    def _record(self, kind: type) -> Schema:
        if (opened := self._opened.get(kind)) is not None:
            opened.recursive = True
            return {"$ref": f"#/$defs/{opened.name}"}
        try:
            fields = read_record(kind, is_result=self.mode == "serialization")
        except NameError as error:
            message = f"{kind.__name__}: {error}; define it in the module of the class"
            raise UnsupportedHintError(message) from None
        if fields is None:
            message = f"{kind.__qualname__} cannot be written as JSON; {CURE}"
            raise UnsupportedHintError(message)
        opened = self._opened[kind] = _Opened(self._free_name(kind.__name__))
        schema = self._object(fields)
        del self._opened[kind]
        if opened.recursive:
            self.definitions[opened.name] = schema
            schema = {"$ref": f"#/$defs/{opened.name}"}
        return schema

    def _pydantic_model(self, model: typing.Any) -> Schema:
        name = self._free_name(model.__name__)
        schema: Schema = model.model_json_schema(mode=self.mode, ref_template=f"#/$defs/{name}.{{model}}")
        inner = typing.cast("dict[str, object]", schema.pop("$defs", {}))
        self.definitions.update({f"{name}.{part}": definition for part, definition in inner.items()})
        return schema

    def _free_name(self, name: str) -> str:
        """A name under $defs that no other class of this signature has."""
        taken = {opened.name for opened in self._opened.values()} | {key.partition(".")[0] for key in self.definitions}
        number = 2
        free = name
        while free in taken:
            free = f"{name}{number}"
            number += 1
        return free


def _reviver(hint: object) -> Revive | None:
    if type(hint) is type and hint in CHECKS:
        # Most hints need no converter: the JSON is the object.
        return None
    try:
        return HintConverter().read(hint)
    except UnreadableHintError as error:
        raise UnsupportedHintError(str(error)) from None


def _is_class(kind: type, name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    return getattr(sys.modules.get(module or "builtins"), attribute, None) is kind
