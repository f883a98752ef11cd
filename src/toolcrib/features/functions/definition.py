"""Make the Tool of a function: its signature, hints and docstring say what `@tool` leaves out."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, TypedDict, cast

from toolcrib.features.functions.decorators import MARK
from toolcrib.features.functions.signature import read_answer, read_hints, read_inputs
from toolcrib.lib.docstring import read_docstring
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import Limits
from toolcrib.model.session import MODES
from toolcrib.model.tool import Behaviour, Function, Origin, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.features.functions.decorators import Options
    from toolcrib.model.limits import Cost


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
            ),
            origin=origin,
            warnings=warnings,
            **_declared(options),
        )
    except ToolError as error:
        raise ToolError(error.kind, f"{place}: {error.message}") from None
    except (ValueError, OverflowError) as error:
        raise ToolError(Kind.VALIDATION, f"{place}: {error}") from None


class Declared(TypedDict):
    """The fields of a Tool that only its author can know."""

    version: str
    bundle: str
    source_type: str
    behaviour: Behaviour | None
    side_effects: SideEffects | None
    idempotent: bool
    requires_confirmation: bool
    modes: frozenset[str] | None
    requires: frozenset[str]
    tags: tuple[str, ...]
    limits: Limits
    cost: Cost | None


def _declared(options: Options) -> Declared:
    modes = options.get("modes")
    behaviour, effects = options.get("behaviour"), options.get("side_effects")
    return {
        "version": options.get("version", "1.0.0"),
        "bundle": options.get("bundle", "host"),
        "source_type": "function",
        "behaviour": None if behaviour is None else Behaviour(behaviour),
        "side_effects": None if effects is None else SideEffects(effects),
        "idempotent": options.get("idempotent", False),
        "requires_confirmation": options.get("confirm", False),
        "modes": None if modes is None else _modes(modes),
        "requires": frozenset(_words("requires", options.get("requires", ()))),
        "tags": tuple(_words("tags", options.get("tags", ()))),
        "limits": _limits(options),
        "cost": options.get("cost"),
    }


def _limits(options: Options) -> Limits:
    seconds = options.get("timeout")
    return Limits(
        timeout_ms=None if seconds is None else math.ceil(seconds * 1000),
        latency_budget_ms=options.get("latency_budget_ms"),
        calls_per_minute=options.get("calls_per_minute"),
        retry=options.get("retry"),
    )


def _wants_thread(options: Options, *, is_async: bool) -> bool:
    if is_async and options.get("thread"):
        message = "thread=True is for plain functions; an async function waits without one, so leave it out"
        raise ToolError(Kind.VALIDATION, message)
    return not is_async and (options.get("thread", False) or options.get("timeout") is not None)


def _modes(modes: Iterable[str]) -> frozenset[str]:
    given = frozenset(_words("modes", modes))
    if given and given <= MODES:
        return given
    message = f"modes {sorted(given)}: write one or more of {', '.join(sorted(MODES))}"
    raise ToolError(Kind.VALIDATION, message)


def _words(name: str, words: Iterable[str]) -> list[str]:
    if not isinstance(words, str):
        return list(words)
    raise ToolError(Kind.VALIDATION, f"{name} is a list of words; write [{words!r}]")


def _plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """The function behind partials, methods and callable objects: it has the hints and the line."""
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
