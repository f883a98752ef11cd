"""Functions of the host program that tools of bundles name by a key: `@registered("github.com/acme/agent/tools.Weather")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    F = TypeVar("F", bound=Callable[..., object])

KEY_MARK = "__toolcrib_key__"


def registered(key: str) -> Callable[[F], F]:
    """Have tools of bundles find the function under a key; it is called with a Context and the arguments.

    It stays the function it was. A module that holds it is named in `modules`.
    """
    given: object = key
    if not isinstance(given, str) or not given.strip():
        raise ToolError(Kind.VALIDATION, 'the key of a function is a text: @registered("acme.weather")')

    def mark(function: F) -> F:
        setattr(function, KEY_MARK, key)
        return function

    return mark


def functions_among(values: Iterable[object]) -> dict[str, Callable[..., object]]:
    """Those of the values that are functions with a key, by their keys."""
    found: dict[str, Callable[..., object]] = {}
    for value in values:
        key = getattr(value, KEY_MARK, None)
        if isinstance(key, str) and callable(value):
            found[key] = value
    return found
