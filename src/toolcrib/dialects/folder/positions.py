"""Where things stand in a text of JSON."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from toolcrib.dialects.script.documents import json_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

Steps = tuple[str | int, ...]

# A string, or else a number, or what people write for one.
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?(?:\d[\d.eE+-]*+|Infinity)|NaN)')


class _Pairs(list[tuple[str, object]]):
    """An object as it is written, equal keys and all."""


class _EqualKeysError(Exception):
    """An object holds a key twice."""


class _NumberError(Exception):
    """A number is none that can be told."""


def lines_of(text: str) -> dict[Steps, int]:
    """The line of every key and item of a text that is known to be JSON; of equal keys that of the last."""
    return {(): 1, **json_lines(text)}


def line_of_fault(code: bytes) -> int:
    """The line of the first key that stands twice in its object, or number that none can tell; 1 if there is neither."""
    text = code.decode("utf-8-sig", "replace")
    try:
        json.loads(
            text,
            object_pairs_hook=_refuse_equal_keys,
            parse_constant=_check_number,
            parse_float=_check_number,
            parse_int=_check_number,
        )
    except _NumberError:
        return text.count("\n", 0, next(_odd_numbers(text))) + 1
    except _EqualKeysError:
        at = _equal_keys(json.loads(text, object_pairs_hook=_Pairs, parse_int=str))
        return 1 if at is None else lines_of(text)[at]
    except (ValueError, RecursionError):
        pass
    return 1


def _refuse_equal_keys(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _EqualKeysError


def _check_number(word: str) -> None:
    if not _can_be_told(word):
        raise _NumberError


def _odd_numbers(text: str) -> Iterator[int]:
    numbers = (match for match in _VALUE.finditer(text) if match[1])
    return (match.start() for match in numbers if not _can_be_told(match[1]))


def _can_be_told(word: str) -> bool:
    """Whether it is a number, and of a size that the interpreter can handle."""
    try:
        number = int(word) if word.lstrip("-").isdecimal() else float(word)
    except ValueError:
        return False
    return isinstance(number, int) or math.isfinite(number)


def _equal_keys(document: object) -> Steps | None:
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
