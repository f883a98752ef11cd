"""A line of the journal as JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from toolcrib.model.protocols import Line

CALL = "call"
MAX_TEXT = 200


def to_json(line: Line) -> dict[str, object]:
    """The line with its names; arguments and values are never part of one."""
    event, moment, call_id, tool, caller, seconds, error, facts = line
    # Calls read the monotonic clock alone; what time that was by the wall is worked out here.
    wall = time.time() - (time.monotonic() - moment)
    named: dict[str, object] = {
        "event": _short(event),
        "time": wall,
        "id": _short(call_id),
        "tool": _short(tool),
        "caller": _short(caller),
    }
    if event == CALL:
        named |= {"ok": error is None, "ms": seconds * 1000}
    if error is not None:
        named["error"] = str(error)
    return named if facts is None else {**facts, **named}


def to_bytes(line: Line) -> bytes:
    """The line as it is written; further facts that are not JSON are left out, and the line says so."""
    named = to_json(line)
    try:
        return orjson.dumps(named, default=str) + b"\n"
    except TypeError as problem:
        rest = to_json((*line[:-1], None))
        return orjson.dumps({**rest, "left_out": _short(str(problem))}) + b"\n"


def _short(text: object) -> str:
    """What callers choose, such as the name of a tool that does not exist, bounded and writable."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode()
