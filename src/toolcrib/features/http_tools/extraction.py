"""Extract a value from an answer, with a regular expression or a JSONPath (RFC 9535).

A library parses the expression, and this module evaluates it, within a budget. The library's own evaluation is not used: it
has no limits, takes `$[?@]` for false if the value is false, and treats `[true]` and `[1]` as equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolcrib.features.http_tools.filters import Budget, Walk, compile_filter, compile_pattern, find_all
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from jsonpath_rfc9535.query import JSONPathQuery
    from jsonpath_rfc9535.segments import JSONPathSegment
    from jsonpath_rfc9535.selectors import JSONPathSelector

    from toolcrib.features.http_tools.filters import Select

MAX_EXPRESSION = 2_000
SHOWN = 80
MAX_DESCENTS = 1
Step = Callable[[list[object], Walk], list[object]]

_JSON_PATH = re.compile(r"\$(?:[.\[]|\Z)")


def is_json_path(expression: str) -> bool:
    """Whether the expression is a JSONPath: a `$`, alone or followed by a `.` or a `[`."""
    return _JSON_PATH.match(expression) is not None


class Extract:
    """A compiled expression; `looks_into_json` says whether it reads the JSON value of an answer, or its text."""

    def __init__(self, expression: str, find: Callable[..., list[object]], *, looks_into_json: bool) -> None:
        self.expression = expression
        self.looks_into_json = looks_into_json
        self._find = find

    def __call__(self, answer: object, budget: Budget | None = None) -> object:
        """The one match, or a list of several; raises OUTPUT_INVALID where there is none."""
        found = self._find(answer, budget)
        if not found:
            message = f"the answer has nothing at {self.expression[:SHOWN]!r}; look at what the server sends"
            raise ToolError(Kind.OUTPUT_INVALID, message, details={"extract": self.expression})
        return found[0] if len(found) == 1 else found


def compile_extract(expression: str) -> Extract:
    """Read an expression; raises ToolError with what is wrong with it."""
    if len(expression) > MAX_EXPRESSION:
        raise ToolError(Kind.VALIDATION, f"is longer than {MAX_EXPRESSION} characters; write a shorter one")
    if is_json_path(expression):
        return Extract(expression, compile_json_path(expression), looks_into_json=True)
    pattern = compile_pattern(expression)
    return Extract(expression, lambda text, budget: find_all(pattern, text, budget or Budget()), looks_into_json=False)


def compile_json_path(expression: str) -> Callable[[object, Budget | None], list[object]]:
    """Compile a JSONPath to a function that returns the selected values in order."""
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

    reader, grammar = _Reader(), JSONPathEnvironment()
    try:
        query = grammar.compile(expression)
        select = reader.query(query)
    except JSONPathError as error:
        raise ToolError(Kind.VALIDATION, f"is not a JSONPath: {error}; correct it") from None
    except RecursionError:
        raise ToolError(Kind.VALIDATION, "is nested too deeply; write a simpler one") from None
    if reader.descents > MAX_DESCENTS:
        raise ToolError(Kind.VALIDATION, 'has ".." more than once, and each looks at everything; leave one of them')
    if query.singular_query():
        return _straight([segment.selectors[0] for segment in query.segments])
    return lambda document, budget: select(document, Walk(document, budget or Budget()))


def _straight(selectors: list[JSONPathSelector]) -> Callable[[object, Budget | None], list[object]]:
    """Fast path for an expression of names and indexes only, which selects at most one value."""
    keys: list[str | int] = [getattr(selector, "name", getattr(selector, "index", 0)) for selector in selectors]

    def find(document: object, _: Budget | None) -> list[object]:
        for key in keys:
            if not isinstance(document, dict if isinstance(key, str) else list):
                return []
            try:
                document = document[key]  # type: ignore[index]  # a name of a member, or the number of an item
            except LookupError:
                return []
        return [document]

    return find


class _Reader:
    """Compiles the parsed expression to functions, and counts its descents (`..`)."""

    def __init__(self) -> None:
        self.descents = 0

    def query(self, query: JSONPathQuery) -> Select:
        steps = [self._segment(segment) for segment in query.segments]
        return lambda value, walk: _follow(steps, [value], walk)

    def _segment(self, segment: JSONPathSegment) -> Step:
        selects = [self._selector(selector) for selector in segment.selectors]
        if not _is_descent(segment):
            return _choose(selects)
        self.descents += 1
        return _descend(selects)

    def _selector(self, selector: JSONPathSelector) -> Select:
        from jsonpath_rfc9535 import selectors

        if isinstance(selector, selectors.NameSelector):
            return _member(selector.name)
        if isinstance(selector, selectors.IndexSelector):
            return _item(selector.index)
        if isinstance(selector, selectors.SliceSelector):
            return _items(selector.slice)
        if isinstance(selector, selectors.FilterSelector):
            return _filtered(compile_filter(selector.expression.expression, self.query))
        return _children


def _is_descent(segment: JSONPathSegment) -> bool:
    from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment

    return isinstance(segment, JSONPathRecursiveDescentSegment)


def _follow(steps: list[Step], values: list[object], walk: Walk) -> list[object]:
    for step in steps:
        values = step(values, walk)
    return values


def _choose(selects: list[Select]) -> Step:
    def step(values: list[object], walk: Walk) -> list[object]:
        return [chosen for value in values for select in selects for chosen in select(value, walk)]

    return step


def _descend(selects: list[Select]) -> Step:
    choose = _choose(selects)

    def step(values: list[object], walk: Walk) -> list[object]:
        found: list[object] = []
        waiting = values[::-1]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict | list):
                found += choose([value], walk)
                waiting += _children(value, walk)[::-1]
        return found

    return step


def _children(value: object, walk: Walk) -> list[object]:
    if isinstance(value, dict):
        walk.spend(len(value))
        return list(value.values())
    if isinstance(value, list):
        walk.spend(len(value))
        return value
    return []


def _member(name: str) -> Select:
    def select(value: object, walk: Walk) -> list[object]:
        walk.spend(1)
        return [value[name]] if isinstance(value, dict) and name in value else []

    return select


def _item(index: int) -> Select:
    def select(value: object, walk: Walk) -> list[object]:
        walk.spend(1)
        return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []

    return select


def _items(part: slice) -> Select:
    def select(value: object, walk: Walk) -> list[object]:
        if not isinstance(value, list) or part.step == 0:
            return []
        found = value[part]
        walk.spend(1 + len(found))
        return found

    return select


def _filtered(test: Callable[[object, Walk], bool]) -> Select:
    return lambda value, walk: [child for child in _children(value, walk) if test(child, walk)]
