"""Compare a JSON value with the expected one, and list the differences with their paths."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHOWN_LETTERS = 200


def differences(expected: object, got: object, path: str, *, exact: bool) -> Iterator[str]:
    """One sentence for each difference; unless `exact`, objects may have additional keys."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        yield from _object_differences(expected, got, path, exact=exact)
    elif isinstance(expected, list) and isinstance(got, list | tuple):
        if len(expected) != len(got):
            yield f"{path}: expected {_count(expected)}, got {_count(got)}: {show(got)}"
        for number, (wanted, item) in enumerate(zip(expected, got, strict=False)):
            yield from differences(wanted, item, f"{path}[{number}]", exact=exact)
    elif not _are_same(expected, got):
        yield f"{path}: expected {show(expected)}, got {show(got)}"


def show(value: object) -> str:
    """A value as JSON, shortened for a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"


def _object_differences(
    expected: Mapping[str, object], got: Mapping[str, object], path: str, *, exact: bool
) -> Iterator[str]:
    for key, wanted in expected.items():
        inner = f"{path}{_spell(key)}"
        if key in got:
            yield from differences(wanted, got[key], inner, exact=exact)
        else:
            yield f"{inner}: expected {show(wanted)}, got nothing"
    for key in got if exact else ():
        if key not in expected:
            yield f"{path}{_spell(key)}: expected nothing, got {show(got[key])}"


def _are_same(expected: object, got: object) -> bool:
    """Whether two values are equal in JSON, where 1 equals 1.0 but not true."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return expected == got


def _spell(key: object) -> str:
    return f".{key}" if str(key).isidentifier() else f"[{show(key)}]"


def _count(items: Sequence[object]) -> str:
    return f"{len(items)} item" if len(items) == 1 else f"{len(items)} items"
