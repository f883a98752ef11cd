from typing import Iterator


def batches(items: list[str], size: int = 2) -> Iterator[list[str]]:
    """Cut a mailing list into batches."""
    if size < 1:
        raise ValueError("size must be at least 1")
    for i in range(0, len(items), size):
        yield items[i : i + size]
