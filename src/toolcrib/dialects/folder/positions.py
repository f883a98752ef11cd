"""Where things stand in a text of JSON."""

from __future__ import annotations

import json

from toolcrib.dialects.script.documents import json_lines

Steps = tuple[str | int, ...]


class _Pairs(list[tuple[str, object]]):
    """An object as it is written, equal keys and all."""


def lines_of(text: str) -> dict[Steps, int]:
    """The line of every key and item of a text that is known to be JSON; of equal keys that of the last."""
    return {(): 1, **json_lines(text)}


def line_of_equal_keys(code: bytes) -> int:
    """The line of a key that stands twice in one object; 1 if there is none, or the text is no JSON."""
    try:
        text = code.decode("utf-8-sig")
        at = _equal_keys(json.loads(text, object_pairs_hook=_Pairs))
    except (ValueError, RecursionError):
        return 1
    return 1 if at is None else lines_of(text)[at]


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
