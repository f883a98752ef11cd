"""Convert the options of `@tool` to fields of a Tool, for host functions and for files that are parsed but not run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES, Behaviour, Cost, Limits, RetryPolicy, SideEffects

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMITS = frozenset({"timeout", "latency_budget_ms", "calls_per_minute", "retry"})
UNLIMITED = Limits()
COST_CURE = "the price of one call in USD, such as 0.01, or Cost(per_invocation=0.01, per_minute=0.05, currency='EUR')"
NONE = type(None)
# The types of options that are taken unchanged, and how to write each.
OPTION_KINDS: tuple[tuple[tuple[type, ...], frozenset[str], str], ...] = (
    ((str,), frozenset({"name", "title", "description", "version"}), "a text"),
    ((bool,), frozenset({"confirm", "idempotent", "thread"}), "True or False"),
    ((int, float, NONE), frozenset({"timeout"}), "seconds, such as 30"),
    ((int, NONE), frozenset({"latency_budget_ms", "calls_per_minute"}), "a whole number"),
    ((RetryPolicy, NONE), frozenset({"retry"}), "RetryPolicy(max_attempts=3)"),
)


class DeclaredOptions(TypedDict, total=False):
    """The fields of a Tool that only its author can declare."""

    version: str
    display_name: str
    behaviour: Behaviour | None
    side_effects: SideEffects | None
    idempotent: bool
    requires_confirmation: bool
    modes: frozenset[str] | None
    requires: frozenset[str]
    tags: tuple[str, ...]
    limits: Limits
    cost: Cost | None
    metadata: dict[str, object]


def read_options(options: Mapping[str, Any]) -> DeclaredOptions:
    """The fields that the options declare; raises ToolError or ValueError."""
    modes = options.get("modes")
    behaviour, effects = options.get("behaviour"), options.get("side_effects")
    if options:
        _check_kinds(options)
    return {
        "version": options.get("version", "1.0.0"),
        "display_name": options.get("title", "").strip(),
        "behaviour": None if behaviour is None else Behaviour(behaviour),
        "side_effects": None if effects is None else SideEffects(effects),
        "idempotent": options.get("idempotent", False),
        "requires_confirmation": options.get("confirm", False),
        "modes": None if modes is None else _modes(modes),
        "requires": frozenset(_words("requires", options.get("requires", ()))),
        "tags": tuple(_words("tags", options.get("tags", ()))),
        "limits": _limits(options),
        "cost": _cost(options.get("cost")),
        "metadata": _icons(options.get(ICONS)),
    }


def _check_kinds(options: Mapping[str, Any]) -> None:
    """Refuse an option of a wrong type; unchecked, it would only fail when a call or a listing uses it."""
    for kinds, names, written in OPTION_KINDS:
        for name in names.intersection(options):
            # In Python, True is an int.
            if not isinstance(options[name], kinds) or (isinstance(options[name], bool) and bool not in kinds):
                raise ToolError(Kind.VALIDATION, f"@tool({name}={options[name]!r:.40}): write {written}")


def _cost(given: object) -> Cost | None:
    """The cost; a number is the price of one call."""
    if given is None or isinstance(given, Cost):
        return given
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return Cost(per_invocation=float(given))
        if isinstance(given, dict):
            return Cost(**given)
    except TypeError:
        # An unknown field, or one that is not a number.
        pass
    raise ToolError(Kind.VALIDATION, f"@tool(cost={given!r:.40}): write {COST_CURE}")


def _icons(given: object) -> dict[str, object]:
    icons, problems = read_icons(given)
    for at, problem in problems:
        raise ToolError(Kind.VALIDATION, f"{'.'.join(map(str, at))}: {problem}")
    return {ICONS: icons} if icons else {}


def _limits(options: Mapping[str, Any]) -> Limits:
    seconds = options.get("timeout")
    if LIMITS.isdisjoint(options):
        return UNLIMITED
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


def _words(name: str, words: object) -> list[str]:
    if isinstance(words, str):
        raise ToolError(Kind.VALIDATION, f"{name} is a list of words; write [{words!r}]")
    found: list[Any] = list(words) if isinstance(words, Iterable) else [words]
    if all(isinstance(word, str) for word in found):
        return found
    raise ToolError(Kind.VALIDATION, f"@tool({name}={words!r:.40}): write a list of words")
