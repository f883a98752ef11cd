"""What a signature says: the arguments and the answer as schemas, and what stands between JSON and the function."""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections import abc
from dataclasses import dataclass

from toolcrib.features.functions.hints import HintError, HintReader
from toolcrib.features.functions.values import Field, NotJSON, as_default, read_record, to_json
from toolcrib.lib.schema.check import check_parameters, check_schema
from toolcrib.model.call import Context
from toolcrib.model.errors import Kind, ToolError

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.features.functions.hints import Revive

    Schema = dict[str, object]
    Arguments = dict[str, object]

MAX_MESSAGE = 500
UNREADABLE = (NameError, AttributeError, SyntaxError, TypeError, ValueError)
AWAITABLES = frozenset({abc.Awaitable, abc.Coroutine})


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """How a function is called."""

    parameters: Schema
    revive: Callable[[Arguments], Arguments] | None
    context_parameter: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a function gives back."""

    schema: Schema | None
    flatten: Callable[[object], object] | None
    is_async: bool


def read_hints(function: Callable[..., object], place: str) -> dict[str, object]:
    """The hints of a function; one that nobody defines is named with its parameter."""
    known: dict[str, object] = getattr(inspect.unwrap(function), "__globals__", {})
    hints: dict[str, object] = {}
    rest: dict[str, object] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        # Most hints are the name of a class: looking it up takes a tenth of the time of evaluating it.
        meant = known.get(annotation, vars(builtins).get(annotation)) if isinstance(annotation, str) else annotation
        (hints if isinstance(meant, type) else rest)[name] = meant if isinstance(meant, type) else annotation
    if not rest:
        return hints
    try:
        return hints | _evaluate(rest, known)
    except UNREADABLE:
        return hints | _evaluate_one_by_one(rest, known, place)


def _evaluate(annotations: dict[str, object], known: dict[str, object]) -> dict[str, object]:
    holder = types.SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(holder, globalns=known, include_extras=True)


def _evaluate_one_by_one(annotations: dict[str, object], known: dict[str, object], place: str) -> dict[str, object]:
    # An import for type checkers only is not there at run time; Context is the one name that we can give.
    known = {"Context": Context, **known}
    hints: dict[str, object] = {}
    for name, annotation in annotations.items():
        try:
            hints |= _evaluate({name: annotation}, known)
        except UNREADABLE as error:
            message = (
                f"{place}: the hint of {name} cannot be read: {error}; import what it names at the top of the module"
            )
            raise ToolError(Kind.VALIDATION, message) from None
    return hints


def read_inputs(
    function: Callable[..., object],
    hints: Mapping[str, object],
    texts: Mapping[str, str],
    place: str,
    given: Schema | None = None,
) -> Inputs:
    """The parameters as a closed schema; one that takes the Context is left out, and so is what a partial gives.

    A function whose author wrote the schema by hand gets the JSON that it describes.
    """
    parameters = _parameters(function, place)
    context = next((known.name for known in parameters if _is_context(hints.get(known.name))), None)
    if given is not None:
        check_parameters(given, f"{place}: parameters")
        return Inputs(parameters=given, revive=None, context_parameter=context, warnings=())
    fields, extra = _fields([known for known in parameters if known.name != context], hints, texts)
    try:
        schema, revive = _read_fields(fields, extra)
    except HintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: parameter {error}") from None
    warnings = tuple(
        f"{place}: parameter {known.name} has no type hint, so any value is accepted; add one"
        for known in parameters
        if known.name not in hints and known.kind is not known.VAR_KEYWORD
    )
    return Inputs(parameters=schema, revive=revive, context_parameter=context, warnings=warnings)


def read_answer(
    function: Callable[..., object], hints: Mapping[str, object], place: str, given: Schema | None = None
) -> Answer:
    """The schema of the answer; None without a hint, or if anything may come."""
    if inspect.isasyncgenfunction(function):
        message = f"{place}: an async generator has no single answer; collect its items and return a list"
        raise ToolError(Kind.VALIDATION, message)
    hint = hints.get("return", typing.Any)
    # A wrapper may be plain and what it wraps async; the runner looks at what it really returns.
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))
    if typing.get_origin(hint) in AWAITABLES:
        hint, is_async = typing.get_args(hint)[-1], True
    if given is not None:
        check_schema(given, f"{place}: output_schema")
        return Answer(schema=given, flatten=to_json, is_async=is_async)
    reader = HintReader("serialization")
    try:
        shape = reader.read(None if hint is typing.NoReturn else hint)
    except HintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: the answer: {error}") from None
    schema = {**shape.schema, "$defs": reader.definitions} if reader.definitions else shape.schema
    needs_work = not shape.plain or inspect.isgeneratorfunction(function)
    return Answer(schema=schema or None, flatten=to_json if needs_work else None, is_async=is_async)


def _parameters(function: Callable[..., object], place: str) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        message = f"{place}: its signature cannot be read; wrap it in a function of your own"
        raise ToolError(Kind.VALIDATION, message) from None
    for parameter in found:
        if parameter.kind is parameter.VAR_POSITIONAL:
            message = f"{place}: *{parameter.name} cannot be given by name; write {parameter.name}: list[…] instead"
            raise ToolError(Kind.VALIDATION, message)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            message = f"{place}: {parameter.name} cannot be given by name; remove the '/' or wrap the function"
            raise ToolError(Kind.VALIDATION, message)
    # What the host bound beforehand is none of the model's business: it may be a key.
    bound = function.keywords if isinstance(function, functools.partial) else {}
    return [parameter for parameter in found if parameter.name not in bound]


def _fields(
    parameters: list[inspect.Parameter], hints: Mapping[str, object], texts: Mapping[str, str]
) -> tuple[list[Field], object]:
    """The named parameters, and the hint of `**others` (None: there is none)."""
    fields: list[Field] = []
    for parameter in parameters:
        hint = hints.get(parameter.name, typing.Any)
        if parameter.kind is not parameter.VAR_KEYWORD:
            required = parameter.default is parameter.empty
            default = NotJSON if required else as_default(parameter.default)
            fields.append(Field(parameter.name, hint, required, default, texts.get(parameter.name, "")))
        elif typing.get_origin(hint) is typing.Unpack and (record := read_record(*typing.get_args(hint))):
            fields += record.fields
        else:
            return fields, hint
    return fields, None


def _read_fields(fields: list[Field], extra: object) -> tuple[Schema, Callable[[Arguments], Arguments] | None]:
    reader = HintReader()
    schema, revivers, _ = reader.read_object(fields)
    rest = None if extra is None else reader.read(extra)
    if rest is not None:
        schema["additionalProperties"] = rest.schema or True
    if reader.definitions:
        schema["$defs"] = reader.definitions
    names = frozenset(known.name for known in fields)
    return schema, _reviver(revivers, names, None if rest is None else rest.revive)


def _is_context(hint: object) -> bool:
    return hint is Context or (
        typing.get_origin(hint) in (typing.Union, types.UnionType) and Context in typing.get_args(hint)
    )


def _reviver(
    revivers: dict[str, Revive], names: frozenset[str], extra: Revive | None
) -> Callable[[Arguments], Arguments] | None:
    if not revivers and extra is None:
        return None

    def revive(arguments: Arguments) -> Arguments:
        objects = dict(arguments)
        for name, value in arguments.items():
            make = revivers.get(name) if name in names else extra
            if make is not None:
                objects[name] = _revive_argument(name, make, value)
        return objects

    return revive


def _revive_argument(name: str, make: Revive, value: object) -> object:
    try:
        return make(value)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        # The schema accepted the JSON and the class did not: a check of the class's own, or a day that no calendar has.
        raise ToolError(Kind.VALIDATION, f"{name}: {str(error)[:MAX_MESSAGE]}") from error
