"""Secrets and public hosts are set on the page by a caller with the scope `setup`, and read by nobody."""

from __future__ import annotations

import json

import pytest

from toolcrib import Call, Crib, Kind
from toolcrib.infra.egress.added_hosts import AddedHosts
from toolcrib.infra.egress.client import Egress
from toolcrib.lib.http_syntax import HostList, parse_url
from toolcrib.model.call import Scope

BUNDLE = "019b0000-0000-7000-8000-000000000001"
TOOL = {
    "schemaVersion": "toolcrib-1",
    "slug": "orders",
    "displayName": "Orders",
    "isEnabled": True,
    "type": "http",
    "description": "Ask a shop.",
    "argSchema": {"type": "object"},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://shop.example/", "headers": {"x-key": "${secret:SHOP_KEY}"}},
}


def bearing(world, *scopes):
    return {"authorization": f"Bearer {world.crib.tokens.create('me', scopes)[1]}"}


async def obstacle(crib):
    findings = crib.explain(Call(name="orders")).findings
    return next(each.verdict for each in findings if each.gate == "prepare")


async def test_a_secret_and_a_host_are_set_and_count_for_the_next_call(make_world):
    world = make_world()
    world.crib.bundles.put_bundle(BUNDLE, {"slug": "shop", "displayName": "Shop", "isEnabled": True})
    kept = world.crib.bundles.put_tool(BUNDLE, "orders", "v1", TOOL)
    assert any("shop.example is not among" in warning for warning in kept.warnings)
    everything = bearing(world, *Scope)
    refused = await world.client.post("/call/orders?bundle=shop", {}, headers=everything)
    assert "PUT /ui/setup/secrets/SHOP_KEY" in refused.json["error"]["message"]
    headers = bearing(world, Scope.SETUP, Scope.MANAGE)
    assert (
        await world.client.put("/ui/setup/secrets/SHOP_KEY", {"value": "s3cret-key"}, headers=headers)
    ).status == 204
    assert (await obstacle(world.crib)).kind is Kind.HOST_NOT_ALLOWED
    assert (await world.client.put("/ui/setup/hosts/shop.example", {}, headers=headers)).status == 204
    assert (await obstacle(world.crib)).decision == "allow"
    assert "shop.example" not in " ".join(world.crib.bundles.tool(BUNDLE, "orders", "v1").warnings)
    seen = await world.client.get("/ui/access", headers=headers)
    assert seen.json["hosts"] == [{"host": "shop.example", "from": "page"}]
    assert seen.json["secrets"] == [{"name": "SHOP_KEY", "from": "this project"}]
    assert (await world.client.delete("/ui/setup/hosts/shop.example", headers=headers)).status == 204
    assert (await obstacle(world.crib)).kind is Kind.HOST_NOT_ALLOWED
    assert (await world.client.delete("/ui/setup/secrets/SHOP_KEY", headers=headers)).status == 204
    assert (await world.client.delete("/ui/setup/secrets/SHOP_KEY", headers=headers)).status == 404
    events = [*world.crib.audit.events()][::-1]
    assert [(event["what"], event["about"]) for event in events if event["name"] == "me"] == [
        *[("secret.set", "SHOP_KEY"), ("host.allowed", "shop.example")],
        *[("host.removed", "shop.example"), ("secret.removed", "SHOP_KEY")],
    ]
    assert "s3cret-key" not in json.dumps([events, seen.json])


async def test_it_takes_a_scope_of_its_own_that_no_program_of_the_machine_has(world):
    most = bearing(world, *set(Scope) - {Scope.SETUP})
    for path in ("/ui/setup/secrets/A", "/ui/setup/hosts/a.example"):
        for headers in ({}, most):
            assert (await world.client.put(path, {"value": "abcdef"}, headers=headers)).status == 403
            assert (await world.client.delete(path, headers=headers)).status == 403
    assert world.crib.secrets.names() == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:1.2.3.4]",
        "localhost",
        "*.com",
        "2130706433",
        "a.example:8080",
        "*",
        "*.1",
        "a b",
        "http:",
        "%00",
        "x" * 300,
        "0x7f.1",
    ],
)
async def test_an_address_a_port_or_a_malformed_name_is_refused(world, host):
    headers = bearing(world, Scope.SETUP)
    reply = await world.client.put(f"/ui/setup/hosts/{host}", {}, headers=headers)
    assert reply.status in {400, 404}, reply.raw
    assert AddedHosts(world.crib.settings.data)() == ()


async def test_other_things_are_not_set_up(world):
    headers = bearing(world, Scope.SETUP)
    assert (await world.client.put("/ui/setup/tokens/a", {}, headers=headers)).status == 404
    for body in ({}, {"value": 5}, {"value": ""}, {"other": "x"}):
        assert (await world.client.put("/ui/setup/secrets/A", body, headers=headers)).status == 400
    assert (await world.client.put("/ui/setup/secrets/a b", {"value": "abcdef"}, headers=headers)).status == 400


def test_an_added_host_opens_no_port_that_only_private_addresses_have(tmp_path):
    added = AddedHosts(tmp_path)
    added.change("Shop.example", allowed=True)
    hosts, egress = HostList(added=added), Egress(private=["127.0.0.1:8080"])
    egress.check(parse_url("https://shop.example/"), hosts)
    egress.check(parse_url("https://shop.example/"), hosts)
    with pytest.raises(Exception, match="not among the allowed hosts"):
        egress.check(parse_url("http://shop.example:8080/"), hosts)
    AddedHosts(tmp_path).change("shop.example", allowed=False)
    with pytest.raises(Exception, match="not among the allowed hosts"):
        egress.check(parse_url("https://shop.example/"), hosts)


async def test_without_a_project_nothing_is_kept():
    async with Crib() as crib:
        with pytest.raises(Exception, match="no project to keep hosts in"):
            AddedHosts(crib.settings.data).change("a.example", allowed=True)
