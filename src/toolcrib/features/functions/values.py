"""Read the fields of record classes and the defaults of parameters, and convert results of functions to JSON."""

from __future__ import annotations

import dataclasses
import sys
import typing
from dataclasses import replace

from toolcrib.lib.python_declarations import read_docstring
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.values import ConversionError, is_written, to_json
from toolcrib.values.hint_values import is_typed_dict, required_keys
from toolcrib.values.records import record


class NotJSON:
    """Returned by `as_default` for a value that a schema cannot contain."""


def write_answer(value: object) -> object:
    """The JSON of a return value, or an Outcome with it; raises ToolError if it has no JSON form."""
    if isinstance(value, Outcome):
        return replace(value, value=write_answer(value.value))
    try:
        return to_json(value)
    except ConversionError as error:
        message = f"it returned what has no JSON form: {error}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from error


def as_default(value: object) -> object:
    """The JSON of a parameter's default, or NotJSON."""
    try:
        flat = to_json(value)
    except ConversionError:
        return NotJSON
    return flat if is_json(flat) else NotJSON


def pydantic_base() -> type | None:
    """The base class of pydantic's models, if the host program has imported pydantic."""
    module = sys.modules.get("pydantic")
    base = getattr(module, "BaseModel", None)
    return base if isinstance(base, type) else None


@record(kw_only=False)
class Field:
    """A parameter of a function or a field of a record; `default` is JSON, or NotJSON."""

    name: str
    hint: object
    required: bool
    default: object = NotJSON
    description: str = ""


def read_record(kind: type, *, is_result: bool = False) -> list[Field] | None:
    """The fields of a class; None if it is not a record. Raises NameError for an undefined hint.

    A result also has the fields that a dataclass sets itself.
    """
    if is_typed_dict(kind):
        return _typed_dict_fields(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass_fields(kind, is_result=is_result)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple_fields(kind)
    return None


def _typed_dict_fields(kind: type) -> list[Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    required = required_keys(kind, hints)
    return [Field(name, hint, name in required, description=texts.get(name, "")) for name, hint in hints.items()]


def _dataclass_fields(kind: type, *, is_result: bool) -> list[Field]:
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
        if known.init or (is_result and is_written(known))
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
