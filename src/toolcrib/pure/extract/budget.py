"""How much looking an expression may do, whatever it says and whatever it is given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_VISITS = 1_000_000
MAX_SECONDS = 1.0


class Budget:
    """What is left of the values that may be looked at, and of the time for it."""

    __slots__ = ("_clock", "_deadline", "_left")

    def __init__(
        self, visits: int = MAX_VISITS, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = visits
        self._clock = clock
        self._deadline = clock() + seconds

    def spend(self, visits: int) -> None:
        """Refuse to go on when either is used up."""
        self._left -= visits
        if self._left < 0 or self._clock() > self._deadline:
            message = (
                "extract: looks at too much of the answer; write an expression that says more exactly where to look, "
                "or a smaller pattern"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
