"""What the calls of a journal cost together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.journal.lines import CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, kw_only=True, slots=True)
class CostSum:
    """How often a tool was called at a price, and what that came to."""

    tool: str
    currency: str
    calls: int
    amount: float


def sum_costs(lines: Iterable[Mapping[str, object]]) -> list[CostSum]:
    """The sums by tool and currency, the dearest first."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for line in lines:
        cost = line.get("cost") if line.get("event") == CALL else None
        if not isinstance(cost, dict) or not isinstance(cost.get("amount"), int | float):
            continue
        key = (str(line.get("tool")), str(cost.get("currency")))
        calls, amount = sums.get(key, (0, 0.0))
        sums[key] = (calls + 1, amount + float(cost["amount"]))
    found = [
        CostSum(tool=tool, currency=currency, calls=calls, amount=round(amount, 6))
        for (tool, currency), (calls, amount) in sums.items()
    ]
    return sorted(found, key=lambda total: (-total.amount, total.tool))
