"""Rates and quotas over HTTP: 429 with Retry-After."""

from __future__ import annotations

import pytest

from toolcrib import tool
from toolcrib.model.limits import Quota


@tool(calls_per_minute=1)
def rare() -> int:
    """Be rare."""
    return 1


@pytest.mark.spec("S1-95")
async def test_a_tool_beyond_its_rate_is_answered_with_429_and_when_to_try_again(make_world):
    world = make_world(rare)
    assert (await world.client.post("/call/rare", {})).json["ok"] is True
    reply = await world.client.post("/call/rare", {})
    assert (reply.status, reply.json["kind"], reply.json["error"]["type"]) == (429, "RATE_LIMIT", "RATE_LIMIT")
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert reply.json["retryable"] is True
    explained = (await world.client.post("/crib/explain", {"name": "rare"})).json
    (rate,) = [finding for finding in explained["findings"] if finding["gate"] == "rate"]
    assert rate["kind"] == "RATE_LIMIT"


@pytest.mark.spec("S1-95")
@pytest.mark.parametrize("value", [0, -5])
async def test_a_rate_below_one_is_answered_with_400(world, value):
    await world.with_bundle()
    reply = await world.client.put(world.tool_path(), world.go_body(maxCallsPerMinute=value))
    assert (reply.status, reply.json["kind"]) == (400, "VALIDATION")


async def test_the_quota_of_a_token_bounds_its_calls_and_no_others(make_world):
    world = make_world(open_to_loopback=False)
    world.crib.bundles.put_bundle(world.bundle, world.bundle_body())
    world.crib.bundles.put_tool(world.bundle, "echo", "v1", world.go_body())

    def token(**more):
        return {"authorization": f"Bearer {world.crib.tokens.create('x', ['invoke'], **more)[1]}"}

    bounded, free = token(quota=Quota(calls=1, per="hour")), token()
    path = f"{world.tool_path()}/invoke"
    explained = (await world.client.post("/crib/explain", {"name": "echo"}, headers=bounded)).json
    assert [finding["note"] for finding in explained["findings"] if "note" in finding] == ["1 of 1 calls per hour left"]
    assert (await world.client.post(path, {"args": {}}, headers=bounded)).status == 200
    refused = await world.client.post(path, {"args": {}}, headers=bounded)
    assert (refused.status, refused.json["kind"]) == (429, "RATE_LIMIT")
    assert int(refused.headers["retry-after"]) >= 3_600
    for _ in range(2):
        assert (await world.client.post(path, {"args": {}}, headers=free)).status == 200
