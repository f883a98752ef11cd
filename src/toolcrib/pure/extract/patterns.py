"""Patterns of linear time, whoever wrote them and whatever they are held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.schema.patterns import explain_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.pure.extract.budget import Budget

MAX_PATTERN = 2_000
MAX_MATCHES = 10_000
MAX_MEMORY = 4_000_000
# Instructions of the engine. At its slowest it goes through all of them for every byte, some 7 ns for each.
MAX_PROGRAM = 2_000
INSTRUCTIONS_PER_VISIT = 500
SHOWN = 80


class Match(Protocol):
    """What was found."""

    def group(self, number: int = 0) -> str | None:
        """The text of a group, or of all of it."""


class Pattern(Protocol):
    """A pattern of the engine."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    @property
    def programsize(self) -> int:
        """How many instructions it became."""

    def search(self, text: str) -> Match | None:
        """The first place where it fits."""

    def fullmatch(self, text: str) -> Match | None:
        """Whether it fits the whole text."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Every place where it fits."""


def compile_pattern(pattern: str) -> Pattern:
    """A pattern of the linear-time engine; raises ToolError for one that it does not take."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    if len(pattern) > MAX_PATTERN:
        raise ToolError(Kind.VALIDATION, f"the pattern is longer than {MAX_PATTERN} characters; write a shorter one")
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        raise ToolError(Kind.VALIDATION, explain_pattern(pattern)) from None
    if compiled.programsize > MAX_PROGRAM:
        reason = f"{compiled.programsize} instructions, and the limit is {MAX_PROGRAM}; write fewer and lower counts"
        raise ToolError(
            Kind.VALIDATION, f"pattern too large (linear-time engine): {pattern!r:.{SHOWN}} becomes {reason}"
        )
    return compiled


def cost_of(pattern: Pattern, text: str) -> int:
    """What looking through the text once may cost at most, in visits of a budget."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return 1 + size * pattern.programsize // INSTRUCTIONS_PER_VISIT


def find_all(pattern: Pattern, text: str, budget: Budget) -> list[object]:
    """Group 1 of every match, or all of it where there is no group; a group that took no part counts as no match."""
    group = 1 if pattern.groups else 0
    found: list[object] = []
    budget.spend(cost_of(pattern, text))
    for match in pattern.finditer(text):
        # Each search may read the text to its end, so their number is bounded by time.
        budget.spend(1)
        taken = match.group(group)
        if taken is not None:
            found.append(taken)
        if len(found) > MAX_MATCHES:
            message = (
                f"extract: finds more than {MAX_MATCHES} matches; write a pattern that says more exactly what to take"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
    return found
