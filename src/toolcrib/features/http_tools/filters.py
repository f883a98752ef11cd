"""Evaluate the filters of a JSONPath, and patterns of linear time, within a budget of visits and seconds."""

from __future__ import annotations

import operator
import time
from typing import TYPE_CHECKING, Final, Protocol

from toolcrib.lib.schema_structure import explain_pattern
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jsonpath_rfc9535.filter_expressions import Expression, FunctionExtension
    from jsonpath_rfc9535.query import JSONPathQuery

    Select = Callable[[object, "Walk"], list[object]]
    CompileQuery = Callable[[JSONPathQuery], Select]
    Test = Callable[[object, "Walk"], bool]
    Give = Callable[[object, "Walk"], object]

MAX_VISITS = 1_000_000
MAX_SECONDS = 1.0
MAX_PATTERN = 2_000
MAX_MATCHES = 10_000
MAX_MEMORY = 4_000_000
# Instructions of the engine. At its slowest it goes through all of them for every byte, some 7 ns for each.
MAX_PROGRAM = 2_000
INSTRUCTIONS_PER_VISIT = 500
SHOWN = 80

_ORDERS: dict[str, Callable[..., bool]] = {"<": operator.lt, ">": operator.gt, "<=": operator.lt, ">=": operator.gt}


class Budget:
    """How many values an expression may still visit, and for how many seconds."""

    __slots__ = ("_clock", "_deadline", "_left")

    def __init__(
        self, visits: int = MAX_VISITS, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = visits
        self._clock = clock
        self._deadline = clock() + seconds

    def spend(self, visits: int) -> None:
        """Count visits; raises ToolError when the visits or the time are used up."""
        self._left -= visits
        if self._left < 0 or self._clock() > self._deadline:
            message = (
                "extract: looks at too much of the answer; write an expression that says more exactly where to look, "
                "or a smaller pattern"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)


class Walk:
    """One evaluation of an expression: the root document, and the remaining budget."""

    __slots__ = ("root", "spend")

    def __init__(self, root: object, budget: Budget) -> None:
        self.root = root
        self.spend = budget.spend


class Match(Protocol):
    """A match of a pattern."""

    def group(self, number: int = 0) -> str | None:
        """The text of a group, or of the whole match."""


class Pattern(Protocol):
    """A pattern of the engine."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    @property
    def programsize(self) -> int:
        """The number of its instructions."""

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


class _Nothing:
    """The type of NOTHING."""


# The result of a query that selects no value, and of a function without a result.
NOTHING: Final = _Nothing()


def compile_filter(expression: Expression, query: CompileQuery) -> Test:
    """A test of the values that a filter is asked about; `query` reads the queries in it."""
    from jsonpath_rfc9535 import filter_expressions as kinds

    if isinstance(expression, kinds.LogicalExpression):
        left, right = compile_filter(expression.left, query), compile_filter(expression.right, query)
        if expression.operator == "&&":
            return lambda value, walk: left(value, walk) and right(value, walk)
        return lambda value, walk: left(value, walk) or right(value, walk)
    if isinstance(expression, kinds.PrefixExpression):
        denied = compile_filter(expression.right, query)
        return lambda value, walk: not denied(value, walk)
    if isinstance(expression, kinds.ComparisonExpression):
        return _comparison(expression.operator, _give(expression.left, query), _give(expression.right, query))
    if isinstance(expression, kinds.FunctionExtension):
        return _matching(expression, query)
    nodes = _nodes(expression, query)
    return lambda value, walk: bool(nodes(value, walk))


def _nodes(expression: Expression, query: CompileQuery) -> Select:
    """The values that a query in a filter selects."""
    from jsonpath_rfc9535.filter_expressions import FilterQuery, RootFilterQuery

    if not isinstance(expression, FilterQuery):
        raise ToolError(Kind.VALIDATION, f"is not a JSONPath: a filter cannot ask for {expression}; correct it")
    select = query(expression.query)
    if isinstance(expression, RootFilterQuery):
        return lambda _, walk: select(walk.root, walk)
    return select


def _give(expression: Expression, query: CompileQuery) -> Give:
    """The one value that something in a filter stands for, or NOTHING."""
    from jsonpath_rfc9535 import filter_expressions as kinds

    if isinstance(expression, kinds.FilterExpressionLiteral):
        literal: object = expression.value
        return lambda *_: literal
    if isinstance(expression, kinds.FunctionExtension):
        return _function(expression, query)
    return _single(_nodes(expression, query))


def _single(nodes: Select) -> Give:
    def give(value: object, walk: Walk) -> object:
        found = nodes(value, walk)
        return found[0] if len(found) == 1 else NOTHING

    return give


def _function(expression: FunctionExtension, query: CompileQuery) -> Give:
    """One of the functions that return a value: length, count, value."""
    (argument,) = expression.args
    if expression.name == "length":
        given = _give(argument, query)
        return lambda value, walk: _length(given(value, walk))
    nodes = _nodes(argument, query)
    if expression.name == "count":
        return lambda value, walk: len(nodes(value, walk))
    return _single(nodes)


def _length(value: object) -> object:
    return len(value) if isinstance(value, str | list | dict) else NOTHING


def _matching(expression: FunctionExtension, query: CompileQuery) -> Test:
    """One of the functions that return a boolean: match and search."""
    from jsonpath_rfc9535.filter_expressions import StringLiteral

    text, pattern = expression.args
    method = "fullmatch" if expression.name == "match" else "search"
    given = _give(text, query)
    if not isinstance(pattern, StringLiteral):
        # A server must not choose what the engine has to work through.
        cure = "write it out in quotes"
        raise ToolError(Kind.VALIDATION, f"takes the pattern of {expression.name}() from the answer; {cure}")
    known = _compile_regular(pattern.value)
    return lambda value, walk: _fits(known, method, given(value, walk), walk)


def _fits(pattern: Pattern, method: str, text: object, walk: Walk) -> bool:
    if not isinstance(text, str):
        return False
    walk.spend(cost_of(pattern, text))
    return getattr(pattern, method)(text) is not None


def _compile_regular(pattern: str) -> Pattern:
    """A pattern as RFC 9485 writes them, whose dot stands for neither of the two line ends."""
    written: list[str] = []
    is_escaped = is_class = False
    for letter in pattern:
        written.append("[^\\n\\r]" if letter == "." and not (is_escaped or is_class) else letter)
        is_class = letter == "[" or (is_class and letter != "]") if not is_escaped else is_class
        is_escaped = letter == "\\" and not is_escaped
    return compile_pattern("".join(written))


def _comparison(sign: str, left: Give, right: Give) -> Test:
    if sign in {"==", "!="}:
        wanted = sign == "=="
        return lambda value, walk: _equal(left(value, walk), right(value, walk), walk) is wanted
    order, or_equal = _ORDERS[sign], sign.endswith("=")

    def test(value: object, walk: Walk) -> bool:
        one, other = left(value, walk), right(value, walk)
        return (_comparable(one, other) and order(one, other)) or (or_equal and _equal(one, other, walk))

    return test


def _comparable(one: object, other: object) -> bool:
    """Whether one can be less than the other: two numbers or two texts."""
    return (isinstance(one, str) and isinstance(other, str)) or (_is_number(one) and _is_number(other))


def _equal(one: object, other: object, walk: Walk) -> bool:
    """Whether two JSON values are the same; true and 1 are not."""
    if isinstance(one, list) and isinstance(other, list):
        walk.spend(len(one))
        return len(one) == len(other) and all(_equal(*pair, walk) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        walk.spend(len(one))
        return one.keys() == other.keys() and all(_equal(member, other[name], walk) for name, member in one.items())
    if _is_number(one) and _is_number(other):
        return one == other
    return type(one) is type(other) and one == other


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
