"""What calls cost is recorded when they ran, and can be summed up."""

import pytest

from toolcrib import Cost, Crib, Kind, ToolError, tool
from toolcrib.features.activity.statistics import CostSum, sum_costs


@tool(cost=Cost(per_invocation=0.01))
def priced(n: int) -> int:
    """Double a number, for a cent."""
    if n < 0:
        raise ToolError(Kind.PERMANENT, "no negative numbers")
    return 2 * n


@tool
def free() -> int:
    """Cost nothing."""
    return 1


@pytest.mark.spec("S3-36")
async def test_the_cost_of_a_call_that_ran_is_recorded_and_summed(tmp_path):
    async with Crib(tmp_path, tools=[priced, free]) as crib:
        result = await crib.call("priced", n=1)
        assert result.meta["cost"] == {"amount": 0.01, "currency": "USD"}
        failed = await crib.call("priced", n=-1)
        assert (failed.ok, failed.meta["cost"]) == (False, {"amount": 0.01, "currency": "USD"})
        refused = await crib.call("priced", n="x")
        assert "cost" not in refused.meta
        await crib.call("free")
        assert crib.costs() == [CostSum(tool="host/priced@1.0.0", currency="USD", calls=2, amount=0.02)]


def test_sums_are_kept_apart_by_tool_and_currency_and_nonsense_is_passed_over():
    lines = [
        {"event": "call", "tool": "a", "cost": {"amount": 1, "currency": "USD"}},
        {"event": "call", "tool": "a", "cost": {"amount": 0.5, "currency": "EUR"}},
        {"event": "call", "tool": "b", "cost": {"amount": 2.5, "currency": "USD"}},
        {"event": "audit:x", "tool": "b", "cost": {"amount": 100, "currency": "USD"}},
        {"event": "call", "tool": "b", "cost": "dear"},
        {"event": "call", "tool": "b"},
    ]
    assert [(total.tool, total.currency, total.amount) for total in sum_costs(lines)] == [
        ("b", "USD", 2.5),
        ("a", "USD", 1.0),
        ("a", "EUR", 0.5),
    ]
