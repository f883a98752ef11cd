"""Write the list of tools for a system prompt within a budget, and convert results to the form of each interface."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from toolcrib.lib.hidden_text import show_hidden
from toolcrib.lib.names import function_name
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES, Behaviour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool

LETTERS_PER_TOKEN = 4
ORDER = {behaviour: place for place, behaviour in enumerate(Behaviour)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A text for a system prompt: the tools that it lists, those that did not fit, its length, and its estimated tokens."""

    text: str
    included: tuple[str, ...]
    left_out: tuple[str, ...]
    characters: int
    tokens: int


def write_prompt(
    tools: Iterable[Tool], mode: str, *, max_characters: int | None = None, max_tokens: int | None = None
) -> Prompt:
    """List every tool that is offered in the mode, with its summary.

    Bundles keep their order; within a bundle, tools are sorted by behaviour (retrieval, action, utility, others) and name.
    If the budget is too small, whole tools are omitted from the end, and a last line within the budget says so.
    """
    if mode not in MODES:
        raise ToolError(Kind.VALIDATION, f"there is no mode {mode!r:.80}; use {' or '.join(sorted(MODES))}")
    offered = _in_order(tool for tool in tools if tool.modes is None or mode in tool.modes)
    names = tuple(tool.name for tool in offered)
    lines = [_describe(tool) for tool in offered]
    lengths, weights = _sums(lines)
    for count in range(len(lines), -1, -1):
        rest = _mention(len(lines) - count)
        characters = lengths[count] + len(rest)
        # A newline after every line but the last.
        newlines = max(count + bool(rest) - 1, 0)
        tokens = _tokens(weights[count] + _weight(rest) + newlines)
        if _fits(characters + newlines, max_characters) and _fits(tokens, max_tokens):
            text = "\n".join([*lines[:count], rest] if rest else lines[:count])
            return Prompt(
                text=text, included=names[:count], left_out=names[count:], characters=len(text), tokens=tokens
            )
    return Prompt(text="", included=(), left_out=names, characters=0, tokens=0)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four characters; Chinese, Japanese, Korean and emoji one each.

    Every model has its own tokeniser. The estimate is meant for English prose; most other alphabets, numbers and code have
    more tokens, so leave room.
    """
    return _tokens(_weight(text))


def to_platform(result: Result) -> dict[str, object]:
    """`{ok, value}` or `{ok, error}`, never both: a partial value moves into the error's details."""
    intents = [intent.to_json() for intent in result.intents] if result.intents else []
    if result.error is None:
        return {"ok": True, "value": result.value, "intents": intents, "meta": result.meta}
    error = result.error.to_json()
    if result.value is not None:
        error["details"] = {**result.error.details, "partialValue": result.value}
    return {"ok": False, "error": error, "intents": intents, "meta": result.meta}


def to_handler(result: Result) -> dict[str, object]:
    """`{ok, data, intents}` or `{ok, error}`, the form for voice and text agents."""
    if result.error is None:
        return {
            "ok": True,
            "data": result.value,
            "intents": [intent.to_json() for intent in result.intents],
            "meta": result.meta,
        }
    return {"ok": False, "error": result.error.to_json(), "meta": result.meta}


def to_builder(result: Result) -> dict[str, object]:
    """`{result, success, error}`, the form of built packages; a partial result is kept beside the error."""
    return {
        "result": result.value,
        "success": result.ok,
        "error": None if result.error is None else result.error.message,
    }


def to_text(value: object) -> str:
    """A value as text for a model: a string unchanged, null as an empty text, other values as JSON, or else with `str`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        pass
    try:
        # The standard library writes integers beyond 64 bit, which orjson refuses.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _in_order(tools: Iterable[Tool]) -> list[Tool]:
    """Sorted within their bundles, which keep the order of the catalog: host and project first, then the platform."""
    given = list(tools)
    bundles = list(dict.fromkeys(tool.bundle for tool in given))
    return sorted(
        given,
        key=lambda tool: (
            bundles.index(tool.bundle),
            len(ORDER) if tool.behaviour is None else ORDER[tool.behaviour],
            tool.name,
            tool.address,
        ),
    )


def _describe(tool: Tool) -> str:
    """The line of a tool, with the name by which models call it."""
    marked = function_name(tool.name) + (" (asks for confirmation)" if tool.requires_confirmation else "")
    summary = _harmless(tool.summary) or _harmless(tool.description.strip().partition("\n")[0])
    return f"- {marked}: {summary}" if summary else f"- {marked}"


def _harmless(text: str) -> str:
    """The text in one line, with invisible characters escaped."""
    return show_hidden(" ".join(text.split()))


def _mention(left_out: int) -> str:
    if not left_out:
        return ""
    return f"({left_out} more {'tool is' if left_out == 1 else 'tools are'} not listed here)"


def _sums(lines: list[str]) -> tuple[list[int], list[int]]:
    """Cumulative lengths of the lines, in characters and in quarters of a token."""
    lengths, weights = [0], [0]
    for line in lines:
        lengths.append(lengths[-1] + len(line))
        weights.append(weights[-1] + _weight(line))
    return lengths, weights


def _weight(text: str) -> int:
    """The estimate in quarters of a token, so that sums are exact."""
    if text.isascii():
        return len(text)
    return sum(LETTERS_PER_TOKEN if _is_whole(letter) else 1 for letter in text)


def _is_whole(letter: str) -> bool:
    """Whether a character counts as one token."""
    return unicodedata.east_asian_width(letter) in "WF" or unicodedata.category(letter) == "So"


def _tokens(weight: int) -> int:
    return -(-weight // LETTERS_PER_TOKEN)


def _fits(size: int, budget: int | None) -> bool:
    return budget is None or size <= budget
