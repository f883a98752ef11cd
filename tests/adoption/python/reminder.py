from datetime import datetime, timedelta, timezone
from typing import Optional


def next_reminder(
    last: Optional[datetime],
    every_days: int = 30,
    now: datetime = datetime(2026, 6, 1, 12, 0, tzinfo=timezone.utc),
    tags: "list[str] | None" = None,
) -> Optional[datetime]:
    """When to remind a customer again; nothing if never contacted."""
    if every_days <= 0:
        raise ValueError("every_days must be positive")
    if last is None:
        return None
    due = last + timedelta(days=every_days)
    return max(due, now)
