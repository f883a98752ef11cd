"""Points in time as documents write them."""

from __future__ import annotations

import re

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


def read_time(text: object) -> str | None:
    """The time in UTC with milliseconds, so that the later one is the greater text; None for what is no RFC 3339."""
    if not isinstance(text, str) or _RFC3339.fullmatch(text) is None:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
