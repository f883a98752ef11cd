"""Convert Python objects to JSON and back."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import sys
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from uuid import UUID

from toolcrib.lib.docstring import read_docstring
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.result import Outcome

SCALARS = (str, int, float, bool, type(None))


class NotJSON:
    """The answer of `as_default` for a value that a schema cannot hold."""


def to_json(value: object) -> object:
    """The JSON of a return value; a value without a JSON form is returned unchanged."""
    if type(value) in SCALARS:
        return value
    for kind, convert in CONVERTERS:
        if isinstance(value, kind):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _record(value, [known.name for known in fields(value) if known.init])
    base = pydantic_base()
    if base is not None and isinstance(value, base):
        return value.model_dump(mode="json", by_alias=True)  # type: ignore[attr-defined] # pydantic is the host's, not ours
    return value


def enum_value(member: Enum) -> object:
    """The JSON of a member: its value if the values of all members are JSON, else its name."""
    return member.value if is_written_by_value(type(member)) else member.name


@lru_cache(maxsize=1024)
def is_written_by_value(enum: type[Enum]) -> bool:
    """Whether every value of the enum is JSON."""
    return all(type(member.value) in SCALARS for member in enum)


def as_default(value: object) -> object:
    """The JSON of a parameter's default, or NotJSON."""
    flat = to_json(value)
    return flat if is_json(flat) else NotJSON


def pydantic_base() -> type | None:
    """The base class of pydantic's models, if the host program has imported pydantic."""
    module = sys.modules.get("pydantic")
    base = getattr(module, "BaseModel", None)
    return base if isinstance(base, type) else None


def revive_datetime(value: object) -> dt.datetime:
    """Read an RFC 3339 time."""
    return dt.datetime.fromisoformat(str(value).upper())


def revive_date(value: object) -> dt.date:
    """Read a day."""
    return dt.date.fromisoformat(str(value))


def revive_time(value: object) -> dt.time:
    """Read a time of day."""
    return dt.time.fromisoformat(str(value))


def revive_duration(value: object) -> dt.timedelta:
    """Read a number of seconds."""
    return dt.timedelta(seconds=float(str(value)))


def revive_decimal(value: object) -> Decimal:
    """Read an exact number."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        message = f"{value!r:.80} is not a decimal number"
        raise ValueError(message) from None


def revive_bytes(value: object) -> bytes:
    """Read base64."""
    return base64.b64decode(str(value), validate=True)


def _mapping(value: Mapping[object, object]) -> dict[str, object]:
    return {_key(name): to_json(inner) for name, inner in value.items()}


def _items(value: Iterable[object]) -> list[object]:
    return [to_json(inner) for inner in value]


def _tuple(value: tuple[object, ...]) -> object:
    names = getattr(value, "_fields", None)
    return _items(value) if names is None else _record(value, names)


def _set(value: AbstractSet[object]) -> list[object]:
    # A set has no order of its own; sorted text gives the same answer twice.
    return sorted(_items(value), key=repr)


def _time(value: dt.datetime) -> str:
    # Python takes a time without a zone for local time, and RFC 3339 needs the zone written out.
    return (value if value.tzinfo else value.astimezone()).isoformat()


def _record(value: object, names: list[str] | tuple[str, ...]) -> dict[str, object]:
    return {name: to_json(getattr(value, name)) for name in names}


def _key(name: object) -> str:
    flat = to_json(name)
    return flat if isinstance(flat, str) else str(flat)


# The first kind that fits decides: an Enum may be text as well, and a datetime is a date.
CONVERTERS: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (Enum, enum_value),
    (str, str.__str__),
    (Mapping, _mapping),
    (tuple, _tuple),
    (list, _items),
    (Outcome, lambda outcome: replace(outcome, value=to_json(outcome.value))),
    (dt.datetime, _time),
    (dt.date, dt.date.isoformat),
    (dt.time, dt.time.isoformat),
    (dt.timedelta, dt.timedelta.total_seconds),
    (UUID, str),
    (PurePath, str),
    (Decimal, lambda number: format(number, "f")),
    (bytes, lambda value: base64.b64encode(value).decode("ascii")),
    (AbstractSet, _set),
    (deque, _items),
    (Iterator, _items),
)


if typing.TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of a function or a field of a record; `default` is JSON, or NotJSON."""

    name: str
    hint: object
    required: bool
    default: object = NotJSON
    description: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A class and its fields; `build` is None for a TypedDict, which is a plain dict."""

    fields: list[Field]
    build: Callable[..., object] | None


def read_record(kind: type) -> Record | None:
    """The fields of the class; None if it is none of the three. Raises NameError for an undefined hint."""
    if typing.is_typeddict(kind):
        return Record(_typed_dict_fields(kind), None)
    if dataclasses.is_dataclass(kind):
        return Record(_dataclass_fields(kind), kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Record(_named_tuple_fields(kind), kind)
    return None


def _typed_dict_fields(kind: type) -> list[Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
    marks = {typing.Required: True, typing.NotRequired: False}
    return [
        # With postponed annotations __required_keys__ ignores Required and NotRequired, so these are read first.
        Field(name, hint, marks.get(typing.get_origin(hint), name in required), description=texts.get(name, ""))
        for name, hint in hints.items()
    ]


def _dataclass_fields(kind: type) -> list[Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    return [
        Field(
            known.name,
            hints[known.name],
            known.default is dataclasses.MISSING and known.default_factory is dataclasses.MISSING,
            NotJSON if known.default is dataclasses.MISSING else as_default(known.default),
            str(known.metadata.get("description") or texts.get(known.name, "")),
        )
        for known in dataclasses.fields(typing.cast("typing.Any", kind))
        if known.init
    ]


def _named_tuple_fields(kind: type) -> list[Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    defaults: dict[str, object] = getattr(kind, "_field_defaults", {})
    return [
        Field(
            name,
            hints.get(name, typing.Any),
            name not in defaults,
            as_default(defaults[name]) if name in defaults else NotJSON,
            texts.get(name, ""),
        )
        for name in names
    ]


def _texts(kind: type) -> dict[str, str]:
    return read_docstring(kind.__dict__.get("__doc__")).arguments
