from typing import TypeVar, Final

T = TypeVar("T")
MAX_SIDE: Final = 100


def transpose(rows: list[list[T]], /) -> list[list[T]]:
    """Swap the rows and columns of a table."""
    if len({len(r) for r in rows}) > 1:
        raise ValueError("rows have different lengths")
    if len(rows) > MAX_SIDE:
        raise ValueError(f"more than {MAX_SIDE} rows")
    return [list(c) for c in zip(*rows)]


def locate(rows: list[list[T]], wanted: T) -> tuple[int, int] | None:
    """Row and column of a value, counted from 0."""
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if cell == wanted:
                return i, j
    return None
