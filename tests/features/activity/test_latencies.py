"""How long calls took, by tool: exact percentiles, refusals left out."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Crib, Kind, ToolError, tool
from toolcrib.features.activity.statistics import Latency, sum_latencies


def call(tool_name, ms, **facts):
    return {"event": "call", "tool": tool_name, "ms": ms, "ok": True, **facts}


def test_few_calls_have_exact_percentiles():
    assert sum_latencies([call("a", 7)]) == [
        Latency(tool="a", calls=1, failed=0, p50=7, p95=7, p99=7, over_budget=0),
    ]
    (four,) = sum_latencies([call("a", ms) for ms in (40, 10, 30, 20)])
    assert (four.p50, four.p95, four.p99) == (20, 40, 40)
    (hundred,) = sum_latencies([call("a", ms) for ms in range(100, 0, -1)])
    assert (hundred.p50, hundred.p95, hundred.p99) == (50, 95, 99)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=250))
def test_a_percentile_is_the_smallest_time_that_enough_calls_do_not_exceed(times):
    (latency,) = sum_latencies([call("a", ms) for ms in times])
    for percent, value in ((50, latency.p50), (95, latency.p95), (99, latency.p99)):
        enough = [time for time in times if 100 * sum(other <= time for other in times) >= percent * len(times)]
        assert value == min(enough)


def test_tools_are_kept_apart_the_slowest_first_and_failures_and_late_calls_are_counted():
    lines = [
        call("quick", 1),
        call("slow", 90, overBudget=True),
        call("slow", 80, ok=False, error="TIMEOUT", overBudget=True),
        call("slow", 10),
        call("also quick", 1),
    ]
    found = sum_latencies(lines)
    assert [(each.tool, each.calls, each.failed, each.over_budget) for each in found] == [
        ("slow", 3, 1, 2),
        ("also quick", 1, 0, 0),
        ("quick", 1, 0, 0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        {},
        call("a", 1, event="audit:call"),
        call("a", None),
        call("a", True),
        call("a", "5"),
        call("a", -1),
        call("a", math.nan),
        call("a", math.inf),
        call("a", 10**400),
        call(None, 1),
        call("a", 1, refused=True),
        {"event": "call", "tool": "a"},
    ],
)
def test_lines_that_tell_no_time_are_passed_over(line):
    assert sum_latencies([line]) == []


@pytest.mark.spec("S2-14")
async def test_calls_over_their_budget_are_written_down_as_such_and_refusals_are_not_measured(tmp_path):
    @tool(latency_budget_ms=1)
    async def late(n: int) -> int:
        """Be late."""
        await asyncio.sleep(0.005)
        if n < 0:
            raise ToolError(Kind.PERMANENT, "no negative numbers")
        return n

    @tool(latency_budget_ms=60_000)
    def early(n: int) -> int:
        """Be early."""
        return n

    async with Crib(tmp_path, tools=[late, early]) as crib:
        assert (await crib.call("late", n=1)).value == 1
        assert (await crib.call("late", n=1)).value == 1
        assert (await crib.call("late", n=-1)).error.kind is Kind.PERMANENT
        assert (await crib.call("late", n="x")).error.kind is Kind.VALIDATION
        assert (await crib.call("laet", n=1)).error.kind is Kind.NOT_FOUND
        assert (await crib.call("early", n=1)).value == 1
        lines = list(crib.journal.read())
    assert [line.get("overBudget") for line in lines] == [True, True, True, None, None, None]
    assert [line.get("refused") for line in lines] == [None, None, None, True, True, None]
    # By name: the order is that of the slowest, which on a busy machine may be either.
    early_calls, late_calls = sorted(sum_latencies(lines), key=lambda each: each.tool)
    assert (late_calls.tool, late_calls.calls, late_calls.failed, late_calls.over_budget) == (
        "host/late@1.0.0",
        3,
        1,
        3,
    )
    assert late_calls.p50 > 1
    assert (early_calls.tool, early_calls.calls, early_calls.over_budget) == ("host/early@1.0.0", 1, 0)
