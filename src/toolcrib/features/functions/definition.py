"""Make a Tool of a function, from its signature, type hints and docstring and the options of `@tool`."""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections import abc
from typing import TYPE_CHECKING, cast

from toolcrib.core.plugins import later
from toolcrib.features.functions.decorators import MARK, functions_among, is_tool
from toolcrib.features.functions.hints import HintReader, UnsupportedHintError
from toolcrib.features.functions.values import Field, NotJSON, as_default, read_record, write_answer
from toolcrib.lib.python_declarations import is_async_generator, is_generator, read_docstring
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.call import Context
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Function, Origin, Tool
from toolcrib.values import ConversionError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from toolcrib.features.functions.decorators import Options
    from toolcrib.lib.tool_options import DeclaredOptions


if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.features.functions.hints import Revive

    Schema = dict[str, object]
    Arguments = dict[str, object]

MAX_MESSAGE = 500
# Most functions have no options.
read_options: Callable[[Options], DeclaredOptions] = later("toolcrib.lib.tool_options:read_options")
UNREADABLE = (NameError, AttributeError, SyntaxError, TypeError, ValueError)
AWAITABLES = frozenset({abc.Awaitable, abc.Coroutine})
STREAMS = frozenset({abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator})
ITERATORS = frozenset({abc.Iterator, abc.Generator, *STREAMS})


@record
class Inputs:
    """How a function is called."""

    parameters: Schema
    revive: Callable[[Arguments], Arguments] | None
    context_parameter: str | None
    warnings: tuple[str, ...]


@record
class ReturnValue:
    """The return value of a function."""

    schema: Schema | None
    flatten: Callable[[object], object] | None
    is_async: bool
    yields: bool


def read_hints(function: Callable[..., object], place: str) -> dict[str, object]:
    """The hints of a function; an undefined one is named with its parameter."""
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
    # A name imported under TYPE_CHECKING is undefined at run time; Context is the one that we can supply.
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
    """The parameters as a closed schema, without a parameter for the Context and without those that a partial binds.

    A function with a schema in its options gets the arguments as plain JSON.
    """
    parameters = _parameters(function, place)
    context = next((known.name for known in parameters if _is_context(hints.get(known.name))), None)
    if given is not None:
        check_parameters(given, f"{place}: parameters")
        return Inputs(parameters=given, revive=None, context_parameter=context, warnings=())
    fields, extra = _fields([known for known in parameters if known.name != context], hints, texts)
    try:
        schema, revive = _read_fields(fields, extra)
    except UnsupportedHintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: parameter {error}") from None
    warnings = tuple(
        f"{place}: parameter {known.name} has no type hint, so any value is accepted; add one"
        for known in parameters
        if known.name not in hints and known.kind is not known.VAR_KEYWORD
    )
    return Inputs(parameters=schema, revive=revive, context_parameter=context, warnings=warnings)


def read_answer(
    function: Callable[..., object], hints: Mapping[str, object], place: str, given: Schema | None = None
) -> ReturnValue:
    """The schema of the return value; None without a hint, or for `Any`."""
    hint = hints.get("return", typing.Any)
    # A wrapper may be plain and the wrapped function async; the runner checks what a call really returns.
    inner = inspect.unwrap(function)
    is_async = inspect.iscoroutinefunction(function) or (inner is not function and inspect.iscoroutinefunction(inner))
    is_async = is_async or is_async_generator(function)
    if typing.get_origin(hint) in AWAITABLES:
        hint, is_async = typing.get_args(hint)[-1], True
    made = typing.get_origin(hint) or hint
    yields = is_generator(function) or made in ITERATORS
    if made in STREAMS:
        # The value is the list of what it yields.
        hint, is_async = list[typing.get_args(hint)[:1] or (typing.Any,)], True  # type: ignore[misc]  # made of a hint
    if given is not None:
        check_schema(given, f"{place}: output_schema")
        return ReturnValue(schema=given, flatten=write_answer, is_async=is_async, yields=yields)
    reader = HintReader("serialization")
    try:
        shape = reader.read(None if hint is typing.NoReturn else hint)
    except UnsupportedHintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: the answer: {error}") from None
    schema = {**shape.schema, "$defs": reader.definitions} if reader.definitions else shape.schema
    flatten = write_answer if yields or not shape.plain else None
    return ReturnValue(schema=schema or None, flatten=flatten, is_async=is_async, yields=yields)


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
    # Arguments that a partial binds are hidden from the model: one may be a key.
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
        elif typing.get_origin(hint) is typing.Unpack and (known := read_record(*typing.get_args(hint))):
            fields += known
        else:
            return fields, hint
    return fields, None


def _read_fields(fields: list[Field], extra: object) -> tuple[Schema, Callable[[Arguments], Arguments] | None]:
    reader = HintReader()
    schema, revivers = reader.read_object(fields)
    rest = None if extra is None else reader.read(extra)
    if rest is not None:
        schema["additionalProperties"] = rest.schema or True
    if reader.definitions:
        schema["$defs"] = reader.definitions
    names = frozenset(known.name for known in fields)
    return schema, _reviver(revivers, names, None if rest is None else rest.revive)


def _is_context(hint: object) -> bool:
    if isinstance(hint, type):
        return hint is Context
    return typing.get_origin(hint) in (typing.Union, types.UnionType) and Context in typing.get_args(hint)


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
    except ConversionError as error:
        raise ToolError(Kind.VALIDATION, str(error.at(name))[:MAX_MESSAGE]) from error
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        # The JSON matches the schema but not the class: a validation of the class itself, or a date that does not exist.
        raise ToolError(Kind.VALIDATION, f"{name}: {str(error)[:MAX_MESSAGE]}") from error


def tool_of(function: object) -> Tool:
    """The Tool of a function, a method, a partial or a callable object, with or without `@tool`."""
    if isinstance(function, type) or not callable(function):
        message = f"{function!r:.80} is not a function; pass a function or an object that can be called"
        raise ToolError(Kind.VALIDATION, message)
    options = cast("Options", getattr(function, MARK, None) or getattr(_without_partials(function), MARK, {}))
    plain = _plain_function(function)
    origin = _origin(plain)
    name = options.get("name") or _name(function)
    place = f"{name} ({origin})"
    docstring = read_docstring(_docstring(function, plain))
    hints = read_hints(plain, place)
    inputs = read_inputs(function, hints, docstring.arguments, place, options.get("parameters"))
    answer = read_answer(plain, hints, place, options.get("output_schema"))
    description = options.get("description") or docstring.summary
    warnings = inputs.warnings
    if not description:
        description = name.replace("_", " ").strip().capitalize()
        warnings = (*warnings, f"{place}: nothing describes it; write a docstring")
    try:
        return Tool(
            name=name,
            description=description,
            documentation=docstring.description,
            parameters=inputs.parameters,
            output_schema=answer.schema,
            run=Function(
                call=function,
                is_async=answer.is_async,
                thread=_wants_thread(options, is_async=answer.is_async),
                context_parameter=inputs.context_parameter,
                revive=inputs.revive,
                flatten=answer.flatten,
                yields=answer.yields,
            ),
            origin=origin,
            warnings=warnings,
            bundle=options.get("bundle", "host"),
            source_type="function",
            **(read_options(options) if options else {}),
        )
    except ToolError as error:
        raise error.replace(reason=f"{place}: {error.reason}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise ToolError(Kind.VALIDATION, f"{place}: {error}") from None


def _wants_thread(options: Options, *, is_async: bool) -> bool:
    if is_async and options.get("thread"):
        message = "thread=True is for plain functions; an async function waits without one, so leave it out"
        raise ToolError(Kind.VALIDATION, message)
    return not is_async and (options.get("thread", False) or options.get("timeout") is not None)


def _plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """The function that a partial, method or callable object wraps: it has the type hints and the line number."""
    inner = _without_partials(function)
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    return cast("Callable[..., object]", getattr(inner, "__func__", inner))


def _name(function: Callable[..., object]) -> str:
    inner = _without_partials(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _docstring(function: Callable[..., object], plain: Callable[..., object]) -> str | None:
    inner = _without_partials(function)
    described = plain if inspect.isroutine(inner) else type(inner)
    return described.__doc__ or plain.__doc__


def _without_partials(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _origin(plain: Callable[..., object]) -> Origin:
    code = getattr(inspect.unwrap(plain), "__code__", None)
    if code is None:
        return Origin(place=str(getattr(plain, "__module__", "")))
    return Origin(place=code.co_filename, line=code.co_firstlineno)


class FunctionConverter:
    """Converts any function passed to the Crib, and the functions of a module that have `@tool`."""

    def converts(self, value: object) -> bool:
        """Whether it can be called."""
        return callable(value)

    def convert(self, value: object) -> Tool:
        """The Tool of a function."""
        return tool_of(value)

    def is_tool(self, value: object) -> bool:
        """Whether it is decorated with `@tool`."""
        return is_tool(value)

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """The values with `@tool`."""
        return [value for value in values if is_tool(value)]

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """The functions that tools of bundles refer to, by key."""
        return functions_among(values)
