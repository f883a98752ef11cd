"""Turn the options of `@tool(…)` into the fields of a Tool: for functions of the host, and for files that are only read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES, Behaviour, Limits, SideEffects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.model.tool import Cost


class Declared(TypedDict):
    """The fields of a Tool that only its author can declare."""

    version: str
    behaviour: Behaviour | None
    side_effects: SideEffects | None
    idempotent: bool
    requires_confirmation: bool
    modes: frozenset[str] | None
    requires: frozenset[str]
    tags: tuple[str, ...]
    limits: Limits
    cost: Cost | None


def read_options(options: Mapping[str, Any]) -> Declared:
    """What the options declare; raises ToolError or ValueError."""
    modes = options.get("modes")
    behaviour, effects = options.get("behaviour"), options.get("side_effects")
    return {
        "version": options.get("version", "1.0.0"),
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


def _limits(options: Mapping[str, Any]) -> Limits:
    seconds = options.get("timeout")
    return Limits(
        timeout_ms=None if seconds is None else math.ceil(seconds * 1000),
        latency_budget_ms=options.get("latency_budget_ms"),
        calls_per_minute=options.get("calls_per_minute"),
        retry=options.get("retry"),
    )


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
