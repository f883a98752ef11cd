"""Remind me."""
import datetime as dt
import os
from pathlib import Path

DAY = 60 * 60 * 24
HERE = Path(__file__).parent


def later_note(
    text: str,
    /,
    after: int = DAY * 2,
    folder: Path = HERE / "data",
    sep: str = os.sep,
    *,
    at: dt.time = dt.time(8, 30),
    tags: tuple[str, ...] = ("home",),
    limit: float = float("inf"),
) -> dict:
    """Make a reminder.

    Args:
        text: What to say.
        after: Seconds to wait.
        folder: Where to keep it.
        sep: The separator.
        at: At what time.
        tags: Labels.
        limit: The most.
    """
    return {"text": text, "after": after, "folder": folder.name, "at": at, "tags": tags, "unlimited": limit > 10}
