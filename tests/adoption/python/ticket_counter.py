"""Hands out waiting numbers. Each process starts at the beginning."""

_next = 100
_served = []


def next_ticket(desk: str) -> int:
    """The next waiting number for a desk."""
    global _next
    if not desk:
        raise ValueError("desk must have a name")
    _next += 1
    _served.append(desk)
    return _next


def served() -> list:
    """Desks that were served so far, in order."""
    return _served
