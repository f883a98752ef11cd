"""A line of the journal as JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.protocols import Line

CALL = "call"
MAX_TEXT = 200


def to_json(line: Line, ahead: float | None = None) -> dict[str, object]:
    """The line with its names; arguments and values are never part of one.

    Calls read the monotonic clock alone; `ahead` is how far the clock on the wall is ahead of it.
    """
    event, moment, call_id, tool, caller, seconds, error, facts, tool_id = line
    if ahead is None:
        ahead = time.time() - time.monotonic()
    named: dict[str, object] = {"event": event, "time": moment + ahead, "id": call_id, "tool": tool, "caller": caller}
    if event == CALL:
        named["ok"] = error is None
        named["ms"] = seconds * 1000
    if not (_is_plain(call_id) and _is_plain(caller) and _is_plain(tool) and event == CALL):
        named |= {"event": _short(event), "id": _short(call_id), "tool": _short(tool), "caller": _short(caller)}
    if error is not None:
        named["error"] = str(error)
    if tool_id:
        named["toolId"] = tool_id
    return named if facts is None else {**facts, **named}


def to_bytes(lines: Iterable[Line]) -> bytearray:
    """The lines as they are written; further facts that are not JSON are left out, and the line says so."""
    ahead = time.time() - time.monotonic()
    text = bytearray()
    for line in lines:
        named = to_json(line, ahead)
        try:
            text += orjson.dumps(named, default=str, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as problem:
            rest = to_json((*line[:-2], None, line[-1]), ahead)
            text += orjson.dumps({**rest, "left_out": _short(str(problem))}, option=orjson.OPT_APPEND_NEWLINE)
    return text


def _is_plain(text: object) -> bool:
    return type(text) is str and len(text) <= MAX_TEXT and text.isascii()


def _short(text: object) -> str:
    """What callers choose, such as the name of a tool that does not exist, bounded and writable."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode()
