"""Points in time as documents write them: RFC 3339 in UTC with milliseconds, so that the later one is the greater text."""

from __future__ import annotations

from datetime import UTC, datetime


def write_time(seconds: float) -> str:
    """The text of a point in time, given in seconds since 1970."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """The point in time that a text names, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
