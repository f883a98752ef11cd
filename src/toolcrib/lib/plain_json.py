"""Read ordinary JSON objects quickly, and leave to the strict reader whatever two readers could read differently."""

from __future__ import annotations

import math

import orjson

from toolcrib.lib.documents import MAX_DEPTH

# Guards look at every argument of a call on the event loop; so many keys take them a few milliseconds.
MAX_KEYS = 10_000
# From here on a number may have been an integer that was rounded.
LARGE = 2.0**63


def read_plain(raw: bytes) -> dict[str, object] | None:
    """The object of an ordinary document; None leaves it to the strict reader.

    orjson is several times as quick, and keeps the last of two equal keys. Every text stands between two quotation marks,
    so a value with fewer texts than its document has marks for may have lost one to an equal key.
    """
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    is_plain = isinstance(found, dict) and 2 * _texts(found, 1) == raw.count(b'"')
    return found if is_plain else None


def _texts(value: dict[str, object] | list[object], depth: int) -> float:
    """How many texts a value holds, keys and all; not a number for one that is out of the ordinary."""
    if depth > MAX_DEPTH:
        return math.nan
    found: float = len(value) if isinstance(value, dict) else 0
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str):
            found += 1
        elif isinstance(item, (dict, list)):
            found += _texts(item, depth + 1)
        elif isinstance(item, float) and abs(item) >= LARGE:
            return math.nan
    return found


def has_too_many_keys(raw: bytes, value: object) -> bool:
    """Whether the objects of a document have more keys than guards can look at in a moment."""
    # There is a colon for every key, and counting bytes takes no time.
    return raw.count(b":") > MAX_KEYS and _keys(value) > MAX_KEYS


def _keys(value: object) -> int:
    """How many keys the objects in a value have."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0
