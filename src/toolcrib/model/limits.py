"""Rate limits and quotas: what a call consumes of them, and the quota of a caller."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from toolcrib.model.errors import Kind, ToolError

MINUTE = 60
PERIODS = {"minute": MINUTE, "hour": 3_600, "day": 86_400, "month": 30 * 86_400}
# The units of quotas, each with the factor by which it is stored as a whole number.
UNITS = {"calls": 1, "bytes": 1, "seconds": 1_000, "money": 1_000_000}
MAX_QUOTA = 10**12
MAX_CURRENCY = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """An amount to consume of a limit: `limit` within any `window` seconds, counted by `subject`.

    An amount of 0 consumes nothing; it asks whether anything is left.
    """

    subject: str
    amount: int
    limit: int
    window: int = MINUTE


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A receipt for consumed claims, with which they can be refunded."""

    at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortage:
    """A claim that exceeds its limit, and after how many seconds it would fit; None for never."""

    claim: Claim
    used: int
    wait: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """How much of a limit is used now: `limit` of a `unit` within any `per`; `name` is that of a token."""

    subject: str
    unit: str
    per: str
    limit: float
    used: float
    name: str = ""

    @property
    def left(self) -> float:
        """What is left; never negative."""
        return max(0.0, self.limit - self.used)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """What a caller may use within any `per` (a word of PERIODS); None is no limit.

    `bytes` are those of arguments and results, `seconds` those that its calls take. `money` is in `currency`.
    """

    per: str = "day"
    calls: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    money: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        if self.per not in PERIODS:
            raise ToolError(Kind.VALIDATION, f"a quota holds per {', '.join(PERIODS)}, not {self.per!r:.40}")
        for unit in UNITS:
            value = getattr(self, unit)
            if value is not None and (isinstance(value, bool) or not 0 < value <= MAX_QUOTA):
                raise ToolError(Kind.VALIDATION, f"the quota of {unit} must be greater than 0, not {value!r:.40}")
        if not self.limits():
            raise ToolError(Kind.VALIDATION, f"a quota limits at least one of {', '.join(UNITS)}")
        if not 0 < len(self.currency) <= MAX_CURRENCY or not self.currency.isalnum():
            raise ToolError(Kind.VALIDATION, f"{self.currency!r:.40} is not a currency; write a word such as EUR")

    def limits(self) -> dict[str, int]:
        """The limits by unit, as the whole numbers that are counted."""
        given = {unit: getattr(self, unit) for unit in UNITS}
        return {unit: int(value * UNITS[unit]) for unit, value in given.items() if value is not None}

    def claims(self, caller: str, **amounts: float) -> list[Claim]:
        """The claims of a call of this caller, by unit; none for a unit without a limit."""
        limits, window = self.limits(), PERIODS[self.per]
        return [
            # Rounded up, so that many small amounts are not free.
            Claim(
                subject=f"caller {caller} {unit}",
                amount=math.ceil(amount * UNITS[unit]),
                limit=limits[unit],
                window=window,
            )
            for unit, amount in amounts.items()
            if unit in limits
        ]

    def to_json(self) -> dict[str, object]:
        """The quota as it is stored and shown."""
        given = {unit: getattr(self, unit) for unit in UNITS if getattr(self, unit) is not None}
        return {"per": self.per, **given, **({"currency": self.currency} if "money" in given else {})}


def read_quota(found: object) -> Quota | None:
    """Read a quota from JSON; None stays None. Raises ToolError for anything else that is not a quota."""
    if found is None:
        return None
    if not isinstance(found, Mapping) or not found.keys() <= {"per", "currency", *UNITS}:
        known = ", ".join(("per", "currency", *UNITS))
        raise ToolError(Kind.VALIDATION, f"a quota is an object with some of {known}")
    numbers = {unit: found[unit] for unit in UNITS if found.get(unit) is not None}
    for unit, value in numbers.items():
        kinds = int if unit in ("calls", "bytes") else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ToolError(Kind.VALIDATION, f"the quota of {unit} is a number, not {value!r:.40}")
    return Quota(per=str(found.get("per", "day")), currency=str(found.get("currency", "USD")), **numbers)


def spell_amount(number: float) -> str:
    """Format an amount for people."""
    return f"{int(number):,}" if number == int(number) else f"{number:,.3f}"
