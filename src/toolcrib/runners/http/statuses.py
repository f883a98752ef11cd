"""What a status means that is no success, and when the server would like to be asked again."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from toolcrib.ground.egress.content import text_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.ground.egress import Request, Response

HEAD_LETTERS = 500
SERVER_ERRORS = range(500, 600)
REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429
UNAUTHORISED = frozenset({401, 403})
RETRY_AFTER = "retryAfter"

_SECONDS = re.compile(r"[0-9]{1,9}")


def explain_status(request: Request, response: Response, hide: Callable[[str], str]) -> ToolError:
    """The error for a response whose status is no success; `hide` takes out of it what nobody may see."""
    status, origin = response.status, response.url.origin
    again = status in {REQUEST_TIMEOUT, TOO_MANY_REQUESTS} or status in SERVER_ERRORS
    details: dict[str, object] = {"origin": origin, "status": status}
    if head := _head(response, hide):
        details["body"] = head
    wait = _retry_after(response.headers.get("retry-after", ""))
    if wait is not None:
        details[RETRY_AFTER] = wait
    return ToolError(
        _kind_of(status, again=again),
        f"{origin}: the server answered {request.method} with status {status}",
        retryable=again,
        partial_side_effects=request.has_effects,
        details=details,
    )


def _kind_of(status: int, *, again: bool) -> Kind:
    if status == TOO_MANY_REQUESTS:
        return Kind.RATE_LIMIT
    if status in UNAUTHORISED:
        return Kind.AUTH
    return Kind.TRANSIENT if again else Kind.PERMANENT


def _head(response: Response, hide: Callable[[str], str]) -> str:
    """The beginning of what the server said; hidden before it is cut, so that no half of a secret is left."""
    text = (text_of(response) if response.body else "") or ""
    return hide(text)[:HEAD_LETTERS]


def _retry_after(header: str) -> float | None:
    """Seconds to wait as the server asks for, as a number or a date."""
    if _SECONDS.fullmatch(header):
        return float(header)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, round(parsedate_to_datetime(header).timestamp() - time.time(), 3))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
