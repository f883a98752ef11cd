"""The limits of a tool: time, rate, retries and cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MEGABYTE = 1_000_000
MAX_ATTEMPTS = 100
# How documents of every format write the fields of a retry policy.
RETRY_KEYS = ("max_attempts", "backoff_type", "initial_delay", "max_delay", "backoff_multiplier")


class Backoff(StrEnum):
    """How the wait grows from one attempt to the next."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    CONSTANT = "constant"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """When to try again; `max_attempts` counts the first attempt, delays are seconds."""

    max_attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay: float = 1.0
    max_delay: float = 60.0
    multiplier: float = 2.0
    jitter: bool = False

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.initial_delay, self.max_delay, self.multiplier) < 0:
            message = "retry policy: max_attempts must be at least 1 and delays must not be negative"
            raise ValueError(message)

    def delay_after(self, attempt: int) -> float:
        """Seconds to wait after the given attempt (the first is 1), before jitter."""
        if self.backoff is Backoff.CONSTANT:
            return min(self.initial_delay, self.max_delay)
        if self.backoff is Backoff.LINEAR:
            return min(self.initial_delay * attempt, self.max_delay)
        try:
            return min(self.initial_delay * self.multiplier ** min(attempt - 1, 64), self.max_delay)
        except OverflowError:
            return self.max_delay


ONCE = RetryPolicy()
REPEAT_IDEMPOTENT = RetryPolicy(max_attempts=3, initial_delay=0.3, max_delay=3.0, jitter=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a tool declares about itself; None leaves the decision to the crib."""

    timeout_ms: int | None = None
    latency_budget_ms: int | None = None
    calls_per_minute: int | None = None
    retry: RetryPolicy | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_ms", "latency_budget_ms", "calls_per_minute"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                message = f"{name} must be greater than 0, not {number}"
                raise ValueError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a call costs; `estimated_duration` is in seconds."""

    per_invocation: float = 0.0
    per_minute: float = 0.0
    estimated_duration: float = 0.0
    currency: str = "USD"

    def __post_init__(self) -> None:
        if min(self.per_invocation, self.per_minute, self.estimated_duration) < 0:
            message = "cost must not be negative"
            raise ValueError(message)

    def of(self, seconds: float) -> float:
        """The price of one call that takes this long."""
        return round(self.per_invocation + seconds / 60 * self.per_minute, 6)

    def estimate(self) -> float:
        """The price of one call that takes as long as its author expects."""
        return self.of(self.estimated_duration)
