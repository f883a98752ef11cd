"""Sum up the calls of some hours: over time, by tool, by caller, and by error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.features.activity.statistics import percentile
from toolcrib.model.call import CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BUCKETS = 48
MAX_ROWS = 200
PERCENTS = (50, 95, 99)


@dataclass(slots=True)
class Tally:
    """The calls of one tool, caller or span of time."""

    calls: int = 0
    failed: int = 0
    refused: int = 0
    times: list[float] = field(default_factory=list)
    costs: Counter[str] = field(default_factory=Counter)

    def add(self, line: Mapping[str, object]) -> None:
        """Count one call."""
        self.calls += 1
        self.failed += line.get("ok") is not True
        is_refused = line.get("refused") is True
        self.refused += is_refused
        time, cost = line.get("ms"), line.get("cost")
        if isinstance(time, int | float) and not is_refused:
            self.times.append(float(time))
        if isinstance(cost, dict) and isinstance(cost.get("amount"), int | float):
            self.costs[str(cost.get("currency"))] += cost["amount"]

    def to_json(self) -> dict[str, object]:
        """The figures; percentiles are null where nothing ran."""
        times = sorted(self.times)
        return {
            "calls": self.calls,
            "failed": self.failed,
            "refused": self.refused,
            **{f"p{percent}": percentile(times, percent) if times else None for percent in PERCENTS},
            "costs": {currency: round(amount, 6) for currency, amount in self.costs.items()},
        }


def sum_up(lines: Iterable[Mapping[str, object]], *, since: float, until: float) -> dict[str, object]:
    """What happened between two moments, in seconds since 1970."""
    width = (until - since) / BUCKETS
    spans = [Tally() for _ in range(BUCKETS)]
    tools: dict[str, Tally] = {}
    callers: dict[str, Tally] = {}
    errors: Counter[str] = Counter()
    everything = Tally()
    for line in lines:
        moment = line.get("time")
        if line.get("event") != CALL or not isinstance(moment, int | float) or not since <= moment < until:
            continue
        tool, caller = str(line.get("tool")), str(line.get("caller"))
        span = spans[min(BUCKETS - 1, int((moment - since) / width))]
        for tally in (everything, span, tools.setdefault(tool, Tally()), callers.setdefault(caller, Tally())):
            tally.add(line)
        if "error" in line:
            errors[str(line["error"])] += 1
    return {
        "since": since,
        "until": until,
        "all": everything.to_json(),
        "spans": [{"from": since + number * width, **span.to_json()} for number, span in enumerate(spans)],
        "tools": _rows(tools),
        "callers": _rows(callers),
        "errors": [{"name": name, "count": count} for name, count in errors.most_common(MAX_ROWS)],
    }


def _rows(tallies: Mapping[str, Tally]) -> list[dict[str, object]]:
    """The busiest first."""
    found = sorted(tallies.items(), key=lambda item: (-item[1].calls, item[0]))[:MAX_ROWS]
    return [{"name": name, **tally.to_json()} for name, tally in found]
