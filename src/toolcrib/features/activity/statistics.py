"""Aggregate the calls of a journal: durations, costs, and figures of a period."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolcrib.model.call import CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Thirty years; a longer time in a line is invalid.
MAX_MS = 1e12
BUCKETS = 48
MAX_ROWS = 200
PERCENTS = (50, 95, 99)


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """How often a tool ran, failed and exceeded the duration that its author declared, and the percentiles of its duration.

    `p50`, `p95` and `p99` are in milliseconds.
    """

    tool: str
    calls: int
    failed: int
    p50: float
    p95: float
    p99: float
    over_budget: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CostSum:
    """The number of calls of a tool that had a cost, and the sum."""

    tool: str
    currency: str
    calls: int
    amount: float


def sum_latencies(lines: Iterable[Mapping[str, object]]) -> list[Latency]:
    """The durations by tool, the slowest first; calls that were refused before the tool ran do not count."""
    gathered: dict[str, _Calls] = {}
    for line in lines:
        tool, time = line.get("tool"), _time_of(line)
        if time is None or not isinstance(tool, str):
            continue
        calls = gathered.setdefault(tool, _Calls())
        calls.times.append(time)
        calls.failed += line.get("ok") is not True
        calls.over_budget += line.get("overBudget") is True
    found = [_summed(tool, calls) for tool, calls in gathered.items()]
    return sorted(found, key=lambda latency: (-latency.p95, latency.tool))


def sum_costs(lines: Iterable[Mapping[str, object]]) -> list[CostSum]:
    """The sums by tool and currency, the highest first."""
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


def percentile(times: Sequence[float], percent: int) -> float:
    """A percentile of sorted times by the nearest-rank method, without interpolation."""
    # Integer arithmetic, which does not round.
    rank = -(-percent * len(times) // 100)
    return times[rank - 1]


def _summed(tool: str, calls: _Calls) -> Latency:
    times = sorted(calls.times)
    return Latency(
        tool=tool,
        calls=len(times),
        failed=calls.failed,
        p50=percentile(times, 50),
        p95=percentile(times, 95),
        p99=percentile(times, 99),
        over_budget=calls.over_budget,
    )


def _time_of(line: Mapping[str, object]) -> float | None:
    """The milliseconds of a call that ran; None for any other line."""
    time = line.get("ms")
    if line.get("event") != CALL or line.get("refused") is True:
        return None
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time <= MAX_MS:
        return None
    return float(time)


@dataclass(kw_only=True, slots=True)
class _Calls:
    """The calls of one tool, gathered."""

    times: list[float] = field(default_factory=list)
    failed: int = 0
    over_budget: int = 0


# Figures of a period: over time, by tool, by caller, and by error.


@dataclass(slots=True)
class Tally:
    """The calls of one tool, caller or span of time."""

    calls: int = 0
    failed: int = 0
    refused: int = 0
    times: list[float] = field(default_factory=list)
    costs: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

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
        if "error" in line:
            self.errors[str(line["error"])] += 1

    def to_json(self) -> dict[str, object]:
        """The figures; percentiles are null where nothing ran."""
        times = sorted(self.times)
        return {
            "calls": self.calls,
            "failed": self.failed,
            "refused": self.refused,
            **{f"p{percent}": percentile(times, percent) if times else None for percent in PERCENTS},
            "costs": {currency: round(amount, 6) for currency, amount in self.costs.items()},
            "errors": dict(self.errors.most_common(MAX_ROWS)),
        }


def sum_up(lines: Iterable[Mapping[str, object]], *, since: float, until: float) -> dict[str, Any]:
    """The figures of the calls between two times, in seconds since 1970."""
    width = (until - since) / BUCKETS
    spans = [Tally() for _ in range(BUCKETS)]
    tools: dict[str, Tally] = {}
    callers: dict[str, Tally] = {}
    everything = Tally()
    for line in lines:
        moment = line.get("time")
        if line.get("event") != CALL or not isinstance(moment, int | float) or not since <= moment < until:
            continue
        tool, caller = str(line.get("tool")), str(line.get("caller"))
        span = spans[min(BUCKETS - 1, int((moment - since) / width))]
        for tally in (everything, span, tools.setdefault(tool, Tally()), callers.setdefault(caller, Tally())):
            tally.add(line)
    return {
        "since": since,
        "until": until,
        "all": everything.to_json(),
        "spans": [{"from": since + number * width, **span.to_json()} for number, span in enumerate(spans)],
        "tools": _rows(tools),
        "callers": _rows(callers),
    }


def _rows(tallies: Mapping[str, Tally]) -> list[dict[str, object]]:
    """The rows with the most calls first, up to a limit."""
    found = sorted(tallies.items(), key=lambda item: (-item[1].calls, item[0]))[:MAX_ROWS]
    return [{"name": name, **tally.to_json()} for name, tally in found]
