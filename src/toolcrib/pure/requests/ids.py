"""Ids of requests: `req_YYYYMMDD_NNN`, the day it was made and its number on that day."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from toolcrib.model.errors import Kind, ToolError

FORMAT = "req_YYYYMMDD_NNN"
LAST_NUMBER = 999

_ID = re.compile(r"req_([0-9]{8})_[0-9]{3}")
# Others use ids of their own, which become parts of keys and names of files.
_SAFE = re.compile(r"req_[A-Za-z0-9_.-]{1,60}")


def is_request_id(text: str) -> bool:
    """Whether it has the format, and its day exists."""
    found = _ID.fullmatch(text)
    return found is not None and _is_day(found[1])


def id_problem(text: str) -> str:
    """What is unusual about an id that is safe as a key; empty for one of the format."""
    found = _ID.fullmatch(text)
    if found is None:
        return f"{text!r} is taken as it is; write {FORMAT}"
    return "" if _is_day(found[1]) else f"there is no day {found[1]}; write the date of today in {FORMAT}"


def is_safe_id(text: object) -> bool:
    """Whether it can be told apart from other keys, and be part of one."""
    return isinstance(text, str) and _SAFE.fullmatch(text) is not None


def request_day(now: datetime) -> str:
    """The part of an id that says the day, which begins at midnight in UTC."""
    return f"{now.astimezone(UTC):%Y%m%d}"


def spell_id(day: str, number: int) -> str:
    """The id of the request with that number on that day; raises LIMIT_EXCEEDED when the numbers are used up."""
    if number > LAST_NUMBER:
        message = f"{day} has its {LAST_NUMBER} requests already; file this one tomorrow, or under an id of your own"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"day": day, "limit": LAST_NUMBER})
    text = f"req_{day}_{number:03d}"
    if not is_request_id(text):
        raise ToolError(Kind.VALIDATION, f"there is no request number {number} of day {day!r:.40}; write {FORMAT}")
    return text


def _is_day(digits: str) -> bool:
    try:
        datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True
