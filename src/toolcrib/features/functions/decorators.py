"""Decorators for functions of the host program: `@tool` marks a tool, `@registered` a function that tools of bundles refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack, overload

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.model.tool import Behaviour, Cost, RetryPolicy, SideEffects

    F = TypeVar("F", bound=Callable[..., object])

MARK = "__toolcrib__"
KEY_MARK = "__toolcrib_key__"

AnyFunction = TypeVar("AnyFunction", bound="Callable[..., object]")


class Options(TypedDict, total=False):
    """The options of `@tool(…)`; those left out are read from the function. `timeout` is in seconds."""

    name: str
    title: str
    description: str
    version: str
    bundle: str
    thread: bool
    timeout: float | None
    idempotent: bool
    behaviour: Behaviour | str | None
    side_effects: SideEffects | str | None
    requires: Iterable[str]
    confirm: bool
    modes: Iterable[str] | None
    tags: Iterable[str]
    latency_budget_ms: int | None
    calls_per_minute: int | None
    retry: RetryPolicy | None
    cost: Cost | float | dict[str, object] | None
    parameters: dict[str, object] | None
    output_schema: dict[str, object] | None
    icons: Iterable[Mapping[str, object]]


@overload
def tool(function: AnyFunction, /) -> AnyFunction: ...


@overload
def tool(**options: Unpack[Options]) -> Callable[[AnyFunction], AnyFunction]: ...


def tool(function: AnyFunction | None = None, /, **options: Unpack[Options]) -> object:
    """Mark a function as a tool, without changing it. `tool_of` returns its Tool."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        known = ", ".join(Options.__annotations__)
        message = f"@tool does not take {', '.join(unknown)}; it takes {known}"
        raise TypeError(message)

    def mark(function: AnyFunction) -> AnyFunction:
        setattr(function, MARK, options)
        return function

    return mark if function is None else mark(function)


def is_tool(value: object) -> bool:
    """Whether it is decorated with `@tool`."""
    return callable(value) and not isinstance(value, type) and isinstance(getattr(value, MARK, None), dict)


def registered(key: str) -> Callable[[F], F]:
    """Register the function under a key for tools of bundles; it is called with a Context and the arguments.

    The function is not changed. The setting `modules.tools` names the module that holds it.
    """
    given: object = key
    if not isinstance(given, str) or not given.strip():
        raise ToolError(Kind.VALIDATION, 'the key of a function is a text: @registered("acme.weather")')

    def mark(function: F) -> F:
        setattr(function, KEY_MARK, key)
        return function

    return mark


def functions_among(values: Iterable[object]) -> dict[str, Callable[..., object]]:
    """The functions with a key among the values, by key."""
    found: dict[str, Callable[..., object]] = {}
    for value in values:
        key = getattr(value, KEY_MARK, None)
        if isinstance(key, str) and callable(value):
            found[key] = value
    return found
