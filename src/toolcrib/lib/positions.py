"""Find the line numbers of keys and items in JSON and TOML texts, and format paths and values for messages."""

from __future__ import annotations

import json
import math
import re
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Steps = tuple[str | int, ...]

SHOWN = 80
JSON_PART = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?|([\[\]{},])|\n')
TOML_NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
TOML_NAMES = rf"{TOML_NAME}(?:[ \t]*+\.[ \t]*+{TOML_NAME})*"
TOML_LINE = re.compile(rf"[ \t]*+(?:\[\[[ \t]*+({TOML_NAMES})|\[[ \t]*+({TOML_NAMES})|({TOML_NAMES})[ \t]*+=)")
TOML_QUOTES = re.compile(r"\"\"\"|'''")

# A string, or else a number or one of the invalid words for it.
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?(?:\d[\d.eE+-]*+|Infinity)|NaN)')


class Lines:
    """Line numbers of a text, which is scanned at the first lookup."""

    def __init__(self, text: str, scan: Callable[[str], dict[Steps, int]] | None = None) -> None:
        self._text = text
        self._scan = scan or json_lines

    @cached_property
    def _lines(self) -> dict[Steps, int]:
        return {(): 1, **self._scan(self._text)}

    def line(self, at: Steps) -> int:
        """The line of a key or an item, or of the nearest thing around it."""
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]


def json_lines(text: str) -> dict[Steps, int]:
    """The line of every key and item of a valid JSON text."""
    lines: dict[Steps, int] = {}
    line = 1
    # One step per open object or list: the key or the index that is being read.
    steps: list[str | int] = []
    for match in JSON_PART.finditer(text):
        string, colon, sign = match.groups()
        is_item = bool(steps) and isinstance(steps[-1], int)
        if colon:
            steps[-1] = json.loads(string)
        elif sign == "," and is_item:
            steps[-1] = int(steps[-1]) + 1
        # An item begins at its first bracket or string; for a number the line of the comma before it is used.
        if colon or (is_item and (string or sign in {"[", "{", ","})):
            lines[tuple(steps)] = line
        if sign in {"[", "{"}:
            steps.append(0 if sign == "[" else "")
        elif sign in {"]", "}"}:
            steps.pop()
        line += match[0].count("\n")
    return lines


def toml_lines(text: str) -> dict[Steps, int]:
    """The line of every table and key at the beginning of a line of a valid TOML text."""
    lines: dict[Steps, int] = {}
    counts: dict[Steps, int] = {}
    table: Steps = ()
    quote = ""
    for number, line in enumerate(text.split("\n"), 1):
        found = None if quote else TOML_LINE.match(line)
        for match in TOML_QUOTES.finditer(line):
            quote = "" if quote == match[0] else quote or match[0]
        if found is None:
            continue
        items, header, key = found.groups()
        if key is None:
            table = _table(items or header, counts)
        if items is not None:
            counts[table] = counts.get(table, -1) + 1
            table = (*table, counts[table])
        lines.setdefault(table if key is None else (*table, *_names(key)), number)
    return lines


def line_of_fault(code: bytes) -> int:
    """The line of the first duplicate key, or of the first number that cannot be parsed; 1 if there is neither."""
    text = code.decode("utf-8-sig", "replace")
    try:
        json.loads(
            text,
            object_pairs_hook=_refuse_duplicate_keys,
            parse_constant=_check_number,
            parse_float=_check_number,
            parse_int=_check_number,
        )
    except _NumberError:
        return text.count("\n", 0, next(_invalid_numbers(text))) + 1
    except _DuplicateKeyError:
        return _line_of_duplicate_key(text)
    except (ValueError, RecursionError):
        pass
    return 1


def _line_of_duplicate_key(text: str) -> int:
    try:
        at = _find_duplicate_key(json.loads(text, object_pairs_hook=_Pairs, parse_int=str))
    except (ValueError, RecursionError):
        return 1  # the text after the object is not JSON
    return 1 if at is None else Lines(text).line(at)


def spell(at: Steps) -> str:
    """The path of a field as text: `parameters.required[2]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at)
    return "".join(steps).removeprefix(".")


def show(value: object) -> str:
    """A value as JSON, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _table(dotted: str, counts: dict[Steps, int]) -> Steps:
    """The path of a table; of an array of tables it is the last element."""
    steps: Steps = ()
    names = _names(dotted)
    for index, name in enumerate(names):
        steps = (*steps, name)
        if index + 1 < len(names) and steps in counts:
            steps = (*steps, counts[steps])
    return steps


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(TOML_NAME, dotted)]


class _Pairs(list[tuple[str, object]]):
    """The members of an object with duplicate keys."""


class _DuplicateKeyError(Exception):
    """An object has a duplicate key."""


class _NumberError(Exception):
    """A number is invalid, infinite, or too long for the interpreter."""


def _refuse_duplicate_keys(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _DuplicateKeyError


def _check_number(word: str) -> None:
    if not _is_valid_number(word):
        raise _NumberError


def _invalid_numbers(text: str) -> Iterator[int]:
    numbers = (match for match in _VALUE.finditer(text) if match[1])
    return (match.start() for match in numbers if not _is_valid_number(match[1]))


def _is_valid_number(word: str) -> bool:
    """Whether it is a finite number of a size that the interpreter can parse."""
    try:
        number = int(word) if word.lstrip("-").isdecimal() else float(word)
    except ValueError:
        return False
    return isinstance(number, int) or math.isfinite(number)


def _find_duplicate_key(document: object) -> Steps | None:
    waiting: list[tuple[Steps, object]] = [((), document)]
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, _Pairs):
            seen = set()
            for key, inner in value:
                if key in seen:
                    return (*at, key)
                seen.add(key)
                waiting.append(((*at, key), inner))
        elif isinstance(value, list):
            waiting += [((*at, index), inner) for index, inner in enumerate(value)]
    return None
