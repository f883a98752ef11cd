from __future__ import annotations

TAKEN = {12: {"A", "C"}}
SIDES = {"window": "AF", "aisle": "CD"}


def seat_map(row: int, side: str | None) -> list[str]:
    letters = SIDES[side] if side else "ABCDEF"
    return [f"{row}{letter}" for letter in letters if letter not in TAKEN.get(row, ())]
