import functools
import time


def timed(func):
    @functools.wraps(func)
    def inner(*args, **kwargs):
        start = time.perf_counter()
        try:
            return func(*args, **kwargs)
        finally:
            print("took", time.perf_counter() - start)
    return inner


def retry(times=3):
    def wrap(func):
        @functools.wraps(func)
        def inner(*args, **kwargs):
            for attempt in range(times):
                try:
                    return func(*args, **kwargs)
                except OSError:
                    if attempt == times - 1:
                        raise
        return inner
    return wrap


def with_unit(func):
    def inner(meter, unit="kWh"):
        return f"{func(meter)} {unit}"
    return inner


_tries = []


@timed
@retry(times=2)
def meter_reading(meter: str) -> int:
    """Read a meter.

    Args:
        meter: Which one.
    """
    _tries.append(meter)
    if len(_tries) < 2:
        raise OSError("line is busy")
    return len(meter)


@with_unit
def meter_text(meter: str) -> int:
    """Read a meter as text."""
    return len(meter)
