from datetime import date, timedelta

_MISSING = object()


def due_dates(start: date = date(2024, 1, 31), count: int = 3, step: timedelta = timedelta(days=7), note=_MISSING, skip: list = []) -> list:
    """List due dates.

    note: a remark, shown if given
    """
    out = [start + step * i for i in range(count)]
    out = [d for d in out if str(d) not in skip]
    skip.append("2024-01-31")
    return out if note is _MISSING else [f"{d} {note}" for d in out]
