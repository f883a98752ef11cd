"""Describe what exactly a call would run: ask its runner, hash the answer, and limit what is stored and shown of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from toolcrib.lib.run_part import BoundWithPreview, PartKind, RunPart
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Bound
    from toolcrib.model.tool import Tool

# How much is stored of one part, and of all parts of a call; of the rest only size and hash.
MAX_PART_BYTES = 48_000
MAX_SHOWN_BYTES = 160_000
MAX_PARTS = 60
MAX_FACT = 4_000
MAX_FACTS = 200

Shown = dict[str, object]


def preview_call(tool: Tool, bound: Bound, arguments: dict[str, object], call: Call) -> list[RunPart]:
    """The parts of the call, as its runner describes them; a runner that cannot is replaced by a note that says why."""
    if not isinstance(bound, BoundWithPreview):
        note = f"What runs tools of the kind {tool.kind} does not say what exactly it would run."
        return [RunPart(kind=PartKind.NOTE, title=tool.address, note=note)]
    parts: list[RunPart] = []
    try:
        # `extend` keeps the parts that were described before an error: they are shown and hashed too.
        parts.extend(bound.preview(arguments, call))
    except ToolError as refusal:
        note = f"What exactly would run cannot be shown: {refusal.message}"
        parts.append(RunPart(kind=PartKind.NOTE, title=tool.address, note=note))
    return parts


def digest_parts(parts: Iterable[RunPart]) -> bytes:
    """A hash over all parts, including what is not shown of them."""
    facts = [
        [
            part.kind,
            part.title,
            None if part.data is None else hashlib.sha256(part.data).hexdigest(),
            [list(fact) for fact in part.facts],
            part.exact,
            part.note,
        ]
        for part in parts
    ]
    text = orjson.dumps(_without_surrogates(facts))
    return hashlib.sha256(text).digest()


def show_parts(parts: Sequence[RunPart], hide: Callable[[object], object]) -> list[Shown]:
    """The parts as they are stored and shown: secrets masked, long ones cut, with the size and hash of the whole."""
    shown, left = [], MAX_SHOWN_BYTES
    for part in parts[:MAX_PARTS]:
        document = _show(part, min(left, MAX_PART_BYTES))
        left -= int(str(document["shownBytes"]))
        shown.append(document)
    if rest := parts[MAX_PARTS:]:
        shown.append(_show(_summary(rest), 0))
    masked = hide(_without_surrogates(shown))
    return masked if isinstance(masked, list) else []


def _show(part: RunPart, limit: int) -> Shown:
    text, count = (None, 0) if part.data is None else _beginning(part.data, limit)
    return {
        "kind": str(part.kind),
        "title": _shorten(part.title),
        "facts": [{"name": _shorten(name), "value": _shorten(value)} for name, value in _bounded(part.facts)],
        "text": text,
        "bytes": None if part.data is None else len(part.data),
        "shownBytes": count,
        "sha256": None if part.data is None else hashlib.sha256(part.data).hexdigest(),
        "exact": part.exact,
        "note": _shorten(part.note),
    }


def _bounded(facts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    if not (rest := facts[MAX_FACTS:]):
        return facts
    digest = hashlib.sha256(orjson.dumps(_without_surrogates([list(fact) for fact in rest]))).hexdigest()
    return [*facts[:MAX_FACTS], (f"{len(rest)} more", f"not shown, SHA-256 {digest}")]


def _beginning(data: bytes, limit: int) -> tuple[str | None, int]:
    """The text of the first bytes and their number; None if they are not text."""
    head = data[:limit]
    try:
        text = head.decode()
    except UnicodeDecodeError as problem:
        # The limit may cut the last character in two, which is left out.
        is_cut = len(head) < len(data) and problem.end == len(head) and len(head) - problem.start < 4  # noqa: PLR2004 - UTF-8
        if not is_cut:
            return None, 0
        head = head[: problem.start]
        text = head.decode()
    return (None, 0) if "\0" in text or (data and not head) else (text, len(head))


def _shorten(value: str) -> str:
    if len(value) <= MAX_FACT:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{value[:MAX_FACT]} … ({len(value)} letters, SHA-256 {digest})"


def _summary(parts: Sequence[RunPart]) -> RunPart:
    size = sum(len(part.data or b"") for part in parts)
    note = f"{len(parts)} more parts of {size} bytes are not shown; the SHA-256 of all of them is {digest_parts(parts).hex()}."
    return RunPart(kind=PartKind.NOTE, title=f"{len(parts)} more", note=note)


def _without_surrogates(value: object) -> object:
    """The value with lone surrogates escaped, which cannot be encoded."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {name: _without_surrogates(member) for name, member in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value
