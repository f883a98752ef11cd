import functools
import time
from typing import Annotated, Any, Callable


def timed(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        t0 = time.perf_counter()
        result = fn(*args, **kwargs)
        wrapper.seconds = time.perf_counter() - t0
        return result

    return wrapper


@timed
@functools.lru_cache(maxsize=None)
def ticket_price(
    age: Annotated[int, "Age of the visitor in years."],
    member: Annotated[bool, "Whether the visitor is a member of the museum."] = False,
) -> float:
    """Price of a museum ticket."""
    if age < 0:
        raise ValueError("age is negative")
    price = 0.0 if age < 6 else 6.0 if age < 18 else 12.0
    return price / 2 if member else price
