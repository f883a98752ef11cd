import math


def ratio(part: float, whole: float) -> float:
    """Share of a part in the whole; not a number if there is no whole."""
    if whole == 0:
        return math.nan
    return part / whole


def headroom(used: int, limit: int = 0) -> float:
    """What is left; infinite when there is no limit."""
    if used < 0:
        raise ValueError("used is negative")
    return math.inf if limit == 0 else float(limit - used)
