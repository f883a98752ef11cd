"""A line of the journal as JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.model.protocols import Line

CALL = "call"


def to_json(line: Line) -> dict[str, object]:
    """The line with its names; arguments and values are never part of one."""
    event, moment, call_id, tool, caller, seconds, error, facts = line
    # Calls read the monotonic clock alone; what time that was by the wall is worked out here.
    wall = time.time() - (time.monotonic() - moment)
    named: dict[str, object] = {"event": event, "time": wall, "id": call_id, "tool": tool, "caller": caller}
    if event == CALL:
        named |= {"ok": error is None, "ms": seconds * 1000}
    if error is not None:
        named["error"] = str(error)
    return named if facts is None else {**named, **facts}
