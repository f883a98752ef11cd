"""Classes that are read field by field: dataclasses, TypedDicts and NamedTuples."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass

from toolcrib.dialects.values import NotJSON, as_default
from toolcrib.pure.docstring import read_docstring

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
    """The fields of the class; None if it is none of the three. Raises NameError for a hint nobody defines."""
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
        # With postponed annotations __required_keys__ does not see the marks, so the marks speak first.
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
