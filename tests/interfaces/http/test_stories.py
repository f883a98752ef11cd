"""Whole stories over HTTP: what a user does one after the other, with and without a network."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def no_network(monkeypatch):
    """Have every attempt to connect fail; the addresses that were tried."""
    tried: list[object] = []

    def refuse(_, address, *__):
        tried.append(address)
        raise OSError(101, "Network is unreachable")

    def look_up(host, *_, **__):
        tried.append(host)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return tried


@pytest.mark.spec("S1-13")
async def test_without_a_network_all_but_requests_work(make_world, no_network):
    world = make_world(
        grants={"*": ["net.http"]},
        http_tools={"hosts": ["api.example", "127.0.0.1:9"]},
        egress={"private": ["127.0.0.1:9"]},
    )
    await world.with_bundle()
    await world.with_tool()
    for slug, url in (("by-name", "https://api.example/"), ("by-address", "http://127.0.0.1:9/")):
        await world.with_tool(slug, displayName="Page", type="http", impl={"urlTemplate": url})
    listed = (await world.client.get(f"/tools?bundleIDs={world.bundle}")).json["tools"]
    assert sorted(found["slug"] for found in listed) == ["by-address", "by-name", "echo"]
    assert (await world.client.get("/tools/search?q=echo")).json["tools"][0]["slug"] == "echo"
    for is_on, status in ((False, 409), (True, 200)):
        assert (await world.client.patch(world.tool_path(), {"isEnabled": is_on})).json["isEnabled"] is is_on
        assert (await world.client.post(f"{world.tool_path()}/invoke")).status == status
    assert world.calls == [{}]
    assert no_network == []
    for slug in ("by-name", "by-address"):
        failed = await world.client.post(f"{world.tool_path(slug)}/invoke")
        assert (failed.status, failed.json["ok"], failed.json["error"]["type"]) == (200, False, "TRANSIENT")
        assert failed.json["error"]["retryable"] is True
    assert {"api.example", ("127.0.0.1", 9)} <= set(no_network)


@pytest.mark.spec("S1-08")
async def test_a_person_can_do_everything_with_tools_and_sees_what_goes_wrong(make_world):
    def fail(context, arguments):
        raise OSError("the disk is full")

    world = make_world(functions={"fail": fail})
    client, first, second = world.client, world.tool_path(), world.tool_path(version="v2")
    own = f"{world.bundle_path()}/tools?includeDisabled=true"

    async def listed() -> list[tuple[str, bool]]:
        return [(found["version"], found["isEnabled"]) for found in (await client.get(own)).json["tools"]]

    assert (await client.put(world.bundle_path(), world.bundle_body())).status == 201
    assert (await client.put(first, world.go_body())).status == 201
    assert await listed() == [("v1", True)]
    assert (await client.get(first)).json["displayName"] == "Echo"
    assert (await client.put(world.bundle_path(), world.bundle_body(displayName="Sky"))).json["displayName"] == "Sky"
    assert (await client.put(second, world.go_body(impl={"goFunc": "fail"}))).status == 201
    assert await listed() == [("v1", True), ("v2", True)]
    assert (await client.post(f"{first}/invoke", {"args": {"city": "Oslo"}})).json["value"] == {"city": "Oslo"}

    failed = await client.post(f"{second}/invoke", {"args": {}})
    assert (failed.status, failed.json["ok"], "value" in failed.json) == (200, False, False)
    assert failed.json["error"]["message"]
    wrong = await client.post(f"{first}/invoke", {"args": {"city": 7}})
    assert (wrong.status, "city" in wrong.json["detail"], wrong.json["error"]["message"]) == (
        400,
        True,
        wrong.json["detail"],
    )
    broken = await client.put(world.tool_path(version="v3"), world.go_body(type="x", isEnabled=1))
    assert (broken.status, len(broken.json["problems"])) == (400, 2)

    assert (await client.patch(second, {"isEnabled": False})).json["isEnabled"] is False
    assert await listed() == [("v1", True), ("v2", False)]
    assert [(await client.delete(path)).status for path in (first, second)] == [204, 204]
    assert await listed() == []
    assert (await client.delete(world.bundle_path())).json["softDeletedAt"]
