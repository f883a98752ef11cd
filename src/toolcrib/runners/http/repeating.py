"""Whether a request that came to nothing is sent again, and after how long."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from toolcrib.model.limits import REPEAT_IDEMPOTENT
from toolcrib.runners.http.statuses import RETRY_AFTER

if TYPE_CHECKING:
    from toolcrib.model.errors import ToolError
    from toolcrib.model.limits import RetryPolicy

REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
# A server that wants to be left alone for longer is asked again by whoever calls next.
MAX_WAIT_SECONDS = 60.0
VOICE = "voice"


class Repeating:
    """The repeats of one request of a tool: as its author says, else as its method allows; `max_retries` bounds both."""

    def __init__(self, method: str, policy: RetryPolicy | None, max_retries: int) -> None:
        self._policy = policy or REPEAT_IDEMPOTENT
        self._attempts = min(self._policy.max_attempts, 1 + max_retries)
        self._always = policy is not None or method in REPEATABLE

    def pause_after(self, attempt: int, error: ToolError, *, mode: str, left: float) -> float | None:
        """Seconds to wait before the next attempt; None when there is to be none. `left` are those until the deadline."""
        if attempt >= self._attempts or mode == VOICE or not error.retryable:
            return None
        # Nothing can have changed only where nothing was sent.
        if not self._always and error.partial_side_effects:
            return None
        pause = self._policy.delay_after(attempt)
        if self._policy.jitter:
            pause = random.uniform(0, pause)  # noqa: S311 - spreads callers out, keeps no secret
        asked = error.details.get(RETRY_AFTER)
        if isinstance(asked, float):
            pause = max(pause, asked)
            if asked > MAX_WAIT_SECONDS:
                return None
        return pause if pause < left else None
