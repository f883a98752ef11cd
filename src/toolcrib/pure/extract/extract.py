"""Taking a value out of an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.extract.budget import Budget
from toolcrib.pure.extract.patterns import compile_pattern, find_all

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_EXPRESSION = 2_000
SHOWN = 80

_JSON_PATH = re.compile(r"\$(?:[.\[]|\Z)")


def is_json_path(expression: str) -> bool:
    """Whether the expression is a JSONPath: a `$` with a `.`, a `[` or nothing behind it."""
    return _JSON_PATH.match(expression) is not None


class Extract:
    """An expression made ready; `looks_into_json` says whether it takes the value of an answer, or its text."""

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
        from toolcrib.pure.extract.json_path import compile_json_path

        return Extract(expression, compile_json_path(expression), looks_into_json=True)
    pattern = compile_pattern(expression)
    return Extract(expression, lambda text, budget: find_all(pattern, text, budget or Budget()), looks_into_json=False)
