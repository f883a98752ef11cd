from typing import Final, Optional, Union
import datetime

LIMIT: Final = 3


def cost_center(code: Union[int, str, None] = None, since: "datetime.date | None" = None, until: datetime.datetime = datetime.datetime(2024, 1, 1), weights: dict[int, float] = {1: 0.5}, level: "Optional[int]" = LIMIT):
    """Look a cost centre up."""
    return {
        "code": repr(code),
        "since": type(since).__name__,
        "until": type(until).__name__,
        "keys": [type(k).__name__ for k in weights],
        "level": level,
    }
