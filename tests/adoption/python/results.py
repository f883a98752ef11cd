"""Values of many kinds."""
import array
import collections
import fractions
import itertools
from datetime import datetime, timezone, timedelta

__tools__ = ["counted", "queue", "keys", "pairs", "fraction", "raw", "aware", "nothing", "nested_set", "complex_one", "error_value", "infinite", "numbers"]


def counted(text: str):
    """Count letters."""
    return collections.Counter(text)


def queue(size: int):
    """A queue."""
    return collections.deque(range(size), maxlen=3)


def keys():
    """Some keys."""
    return {"b": 1, "a": 2}.keys()


def pairs():
    """Pairs of things."""
    return zip("ab", [1, 2])


def fraction():
    """A third."""
    return fractions.Fraction(1, 3)


def raw():
    """Raw bytes."""
    return bytearray(b"abc")


def aware():
    """A time with an offset."""
    return datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))


def nothing():
    """Nothing at all."""


def nested_set():
    """A set of tuples."""
    return {"pairs": {(1, 2)}}


def complex_one():
    """A complex number."""
    return 1 + 2j


def error_value():
    """An error that is returned, not raised."""
    return ValueError("no stock")


def infinite():
    """Numbers without end."""
    return itertools.count()


def numbers():
    """Machine numbers."""
    return array.array("i", [1, 2])
