"""Count down, one number at a time."""

import time
from collections.abc import Iterator

import rye


def countdown(start: int, pause: float = 0.0) -> Iterator[int]:
    """Count down to one.

    Args:
        start: The first number.
        pause: How many seconds lie between two numbers.
    """
    for number in range(start, 0, -1):
        rye.progress(start - number + 1, start)
        yield number
        time.sleep(pause)
