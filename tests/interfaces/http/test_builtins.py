"""Tools that come with Toolcrib, and tools of files: there through the same doors as all others, and read-only."""

from __future__ import annotations

import pytest

from app_lifespan import local_app
from toolcrib import Crib


async def find(client, slug: str, source: str) -> dict:
    """A tool of that slug and source, from the ordinary list."""
    token = ""
    while True:
        page = (await client.get(f"/tools?includeDisabled=true&recommendedPageSize=256&pageToken={token}")).json
        for found in page["tools"]:
            if (found["slug"], found["source"]) == (slug, source) or (found["slug"] == slug and found["isBuiltIn"]):
                return found
        token = page["nextPageToken"]
        assert token, f"{slug} is not listed"


def place_of(found: dict) -> str:
    return f"/tools/bundles/{found['bundleID']}/tools/{found['slug']}/version/{found['version']}"


@pytest.fixture
async def builtin(world):
    return await find(world.client, "list-files", "builtin")


@pytest.mark.spec("S1-06", "S1-85")
async def test_a_built_in_tool_is_there_after_install_and_served_like_any_other(world, builtin):
    (world.root / "note.txt").write_text("hello")
    assert builtin["isBuiltIn"] is True
    assert (await world.client.get(place_of(builtin))).json == builtin
    assert (await world.client.get(f"/tools/bundles/{builtin['bundleID']}")).json["isBuiltIn"] is True
    found = (await world.client.get("/tools/search?q=list-files")).json["tools"]
    assert builtin["toolID"] in [tool["toolID"] for tool in found]
    invoked = await world.client.post(f"{place_of(builtin)}/invoke", {"args": {"path": "."}})
    assert invoked.json["ok"] is True
    assert "note.txt" in str(invoked.json["value"])


@pytest.mark.spec("S1-06", "S1-68")
async def test_nothing_but_the_switch_of_a_built_in_can_be_changed(world, builtin):
    bundle = f"/tools/bundles/{builtin['bundleID']}"
    before = (await world.client.get(place_of(builtin))).json
    refused = [
        await world.client.put(place_of(builtin), world.go_body()),
        await world.client.put(f"{bundle}/tools/mine/version/v1", world.go_body()),
        await world.client.delete(place_of(builtin)),
        await world.client.put(bundle, world.bundle_body("builtin")),
        await world.client.delete(bundle),
    ]
    assert [(reply.status, reply.json["kind"]) for reply in refused] == [(403, "BLOCKED")] * 5
    for path in (place_of(builtin), bundle):
        for body in ({"isEnabled": False, "displayName": "x"}, {"displayName": "x"}):
            patched = await world.client.patch(path, body)
            assert (patched.status, patched.json["kind"]) == (403, "BLOCKED"), body
            assert "only isEnabled of it and its tools can be changed" in patched.json["detail"]
        assert (await world.client.patch(path, {"isEnabled": "no"})).status == 400
    assert (await world.client.get(place_of(builtin))).json == before
    assert world.files() == {}


@pytest.mark.spec("S1-06", "S1-69")
async def test_the_switch_of_a_built_in_holds_over_a_restart(world, builtin, client_for):
    off = await world.client.patch(place_of(builtin), {"isEnabled": False})
    assert (off.status, off.json["isEnabled"], off.json["effectiveEnabled"]) == (200, False, False)
    refused = await world.client.post(place_of(builtin), {"args": {"path": "."}})
    assert (refused.status, refused.json["kind"]) == (409, "DISABLED")
    async with Crib(world.root) as again:
        client = client_for(local_app(again))
        assert (await client.get(place_of(builtin))).json["isEnabled"] is False
        assert (await client.post(place_of(builtin), {"args": {"path": "."}})).status == 409
        assert (await client.patch(place_of(builtin), {"isEnabled": True})).json["effectiveEnabled"] is True
        assert (await client.post(place_of(builtin), {"args": {"path": "."}})).json["ok"] is True


@pytest.mark.spec("S1-69")
async def test_a_built_in_tool_cannot_be_switched_while_its_bundle_is_off_and_the_bundle_always_can(world, builtin):
    bundle = f"/tools/bundles/{builtin['bundleID']}"
    assert (await world.client.patch(bundle, {"isEnabled": False})).json["isEnabled"] is False
    refused = await world.client.patch(place_of(builtin), {"isEnabled": False})
    assert (refused.status, refused.json["kind"]) == (409, "DISABLED")
    assert (await world.client.post(place_of(builtin), {"args": {"path": "."}})).status == 409
    assert (await world.client.patch(bundle, {"isEnabled": True})).status == 200
    assert (await world.client.post(place_of(builtin), {"args": {"path": "."}})).status == 200


@pytest.mark.spec("S1-103")
async def test_a_tool_of_a_file_has_ids_a_type_and_a_source_and_cannot_be_written_here(project, make_world):
    (project / "tools" / "greet.py").write_text(
        'def greet(name: str) -> str:\n    """Greet somebody."""\n    return name\n'
    )
    world = make_world(root=project)
    [found] = [one for one in (await world.client.get("/tools/search?q=greet")).json["tools"] if one["slug"] == "greet"]
    again = (await world.client.get(place_of(found))).json
    assert (found["type"], found["bundleID"][14], found["toolID"][14]) == ("go", "7", "7")
    assert again["toolID"] == found["toolID"]
    assert found["source"] not in ("go", "http")
    refused = [
        await world.client.put(place_of(found), world.go_body()),
        await world.client.delete(place_of(found)),
        await world.client.put(f"/tools/bundles/{found['bundleID']}", world.bundle_body()),
        await world.client.delete(f"/tools/bundles/{found['bundleID']}"),
        await world.client.patch(place_of(found), {"tags": []}),
        await world.client.patch(f"/tools/bundles/{found['bundleID']}", {"slug": "mine"}),
    ]
    assert [reply.status for reply in refused] == [403] * 6
    assert (project / "tools" / "greet.py").exists()
    off = await world.client.patch(place_of(found), {"isEnabled": False})
    assert off.json["effectiveEnabled"] is False
    assert (await world.client.post(place_of(found), {"args": {"name": "Ann"}})).status == 409


@pytest.mark.spec("S1-103")
async def test_the_built_in_that_fetches_pages_is_of_type_http_and_the_others_are_not(world):
    types = {slug: (await find(world.client, slug, "builtin"))["type"] for slug in ("fetch", "list-files", "read-file")}
    assert types == {"fetch": "http", "list-files": "go", "read-file": "go"}
