from collections.abc import Generator, Iterator
from contextlib import contextmanager


@contextmanager
def _opened(name: str):
    yield name.upper()


def stream_lines(name: str, count: int = 2) -> Iterator[dict[str, int]]:
    """Stream lines of a source.

    Args:
        name: The source.
        count: How many.
    """
    with _opened(name) as source:
        for number in range(count):
            if number == 4:
                raise RuntimeError("source dried up")
            yield {source: number}
