"""What was expected held against what came: every difference, with its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.features.testing.cases import Case, FakeContext
    from toolcrib.model.result import Result

SHOWN_LETTERS = 200


def contains(whole: object, part: object) -> bool:
    """Whether a value holds everything that the part does: objects may hold more keys, lists have as many items."""
    return next(differences(part, whole, "value", exact=False), None) is None


def compare(case: Case, result: Result, context: FakeContext) -> Iterator[str]:
    """Every difference between what the case expects and what its call came to."""
    expect = case.expect
    yield from _compare_end(case, result)
    if "value" in expect:
        yield from differences(expect["value"], result.value, "value", exact=True)
    if "contains" in expect:
        yield from differences(expect["contains"], result.value, "value", exact=False)
    seen = {
        "intents": [intent.to_json() for intent in result.intents],
        "sent": context.sent,
        "audit": context.audited,
    }
    for name, items in seen.items():
        if name in expect:
            yield from differences(expect[name], items, name, exact=False)


def differences(expected: object, got: object, path: str, *, exact: bool) -> Iterator[str]:
    """One sentence for each place where a value is not as expected; unless `exact`, objects may hold more keys."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        yield from _object_differences(expected, got, path, exact=exact)
    elif isinstance(expected, list) and isinstance(got, list | tuple):
        if len(expected) != len(got):
            yield f"{path}: expected {_count(expected)}, got {_count(got)}: {_show(got)}"
        for number, (wanted, item) in enumerate(zip(expected, got, strict=False)):
            yield from differences(wanted, item, f"{path}[{number}]", exact=exact)
    elif not _are_same(expected, got):
        yield f"{path}: expected {_show(expected)}, got {_show(got)}"


def _compare_end(case: Case, result: Result) -> Iterator[str]:
    """Whether the call succeeded or failed as expected, and with which error."""
    error = result.error
    if not case.expects_failure:
        if error is not None:
            yield f"ok: expected true, got false: {error.kind}: {error.message[:SHOWN_LETTERS]}"
        return
    if error is None:
        yield f"ok: expected false, got true with the value {_show(result.value)}"
        return
    wanted = case.expect.get("error")
    if not isinstance(wanted, Mapping):
        return
    facts = error.to_json()
    for name, value in wanted.items():
        if name != "message_contains":
            yield from differences(value, facts[name], f"error.{name}", exact=True)
        elif str(value) not in error.message:
            yield f"error.message: expected to contain {_show(value)}, got {_show(error.message)}"


def _object_differences(
    expected: Mapping[str, object], got: Mapping[str, object], path: str, *, exact: bool
) -> Iterator[str]:
    for key, wanted in expected.items():
        inner = f"{path}{_spell(key)}"
        if key in got:
            yield from differences(wanted, got[key], inner, exact=exact)
        else:
            yield f"{inner}: expected {_show(wanted)}, got nothing"
    for key in got if exact else ():
        if key not in expected:
            yield f"{path}{_spell(key)}: expected nothing, got {_show(got[key])}"


def _are_same(expected: object, got: object) -> bool:
    """Whether two values are one in JSON, where 1 is 1.0 and neither is true."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return expected == got


def _spell(key: object) -> str:
    return f".{key}" if str(key).isidentifier() else f"[{_show(key)}]"


def _count(items: Sequence[object]) -> str:
    return f"{len(items)} item" if len(items) == 1 else f"{len(items)} items"


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"
