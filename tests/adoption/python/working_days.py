from __future__ import annotations

from datetime import date, timedelta

HOLIDAYS = {date(2026, 1, 1), date(2026, 5, 1), date(2026, 12, 25)}


def working_days(start: date, end: date, holidays: list[date] | None = None) -> int:
    """Count the working days from start to end, both included.

    Saturdays, Sundays and public holidays do not count.
    """
    if end < start:
        raise ValueError("end is before start")
    off = HOLIDAYS | set(holidays or [])
    days = (end - start).days + 1
    return sum(
        1
        for n in range(days)
        if (start + timedelta(days=n)).weekday() < 5 and start + timedelta(days=n) not in off
    )
