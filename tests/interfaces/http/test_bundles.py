"""Bundles over HTTP, as a client sees them."""

from __future__ import annotations

import json

import pytest


@pytest.mark.spec("S1-54")
async def test_a_bundle_is_made_and_read_back(world):
    made = await world.client.put(world.bundle_path(), world.bundle_body())
    read = await world.client.get(world.bundle_path())
    assert made.status == 201
    assert made.headers["location"] == world.bundle_path()
    assert read.status == 200
    assert read.json == made.json
    assert {key: read.json[key] for key in ("bundleID", "slug", "displayName", "description", "isEnabled")} == {
        "bundleID": world.bundle,
        "slug": "weather",
        "displayName": "Weather",
        "description": "The sky.",
        "isEnabled": True,
    }
    assert read.json["isBuiltIn"] is False


@pytest.mark.spec("S1-54")
@pytest.mark.parametrize("missing", ["slug", "displayName", "isEnabled"])
async def test_a_bundle_without_a_required_key_is_refused_by_its_name(world, missing):
    body = world.bundle_body()
    del body[missing]
    reply = await world.client.put(world.bundle_path(), body)
    assert reply.status == 400
    assert missing in reply.json["detail"]
    assert reply.json["kind"] == "VALIDATION"
    assert world.files() == {}


@pytest.mark.spec("S1-54", "S1-43", "S1-44", "S1-46")
async def test_a_bundle_with_a_bad_slug_is_refused(world):
    for slug in ["", "a_b", "a b", "a/b", "a.b", "a\\b", "a\x00b", "a🙂", "x" * 65, 7, None, ["a"]]:
        reply = await world.client.put(world.bundle_path(), world.bundle_body(slug))
        assert reply.status == 400, slug
        assert "slug" in reply.json["detail"]
        assert world.files() == {}


@pytest.mark.spec("S1-15")
async def test_a_bundle_id_that_is_no_uuid_of_version_7_is_refused(world):
    for method in ["GET", "PUT", "PATCH", "DELETE"]:
        for bundle_id in [
            "b1",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "018faf50-b7b6-7a01-9a05-a22a6e0af10",
            "018faf50b7b67a019a05a22a6e0af101",
            "{018faf50-b7b6-7a01-9a05-a22a6e0af101}",
            "..",
            "018faf50-b7b6-7a01-9a05-a22a6e0af101%00",
        ]:
            reply = await world.client.ask(method, f"/tools/bundles/{bundle_id}", world.bundle_body())
            assert reply.status == 400, bundle_id
            assert "UUID of version 7" in reply.json["detail"]
            assert world.files() == {}


async def test_a_bundle_that_names_another_id_than_its_path_is_refused(world):
    reply = await world.client.put(world.bundle_path(), world.bundle_body(bundleID=world.other))
    assert reply.status == 400
    assert "bundleID" in reply.json["detail"]
    assert world.files() == {}


async def test_the_letters_of_an_id_have_no_case(world):
    await world.with_bundle()
    assert (await world.client.get(world.bundle_path(world.bundle.upper()))).json["bundleID"] == world.bundle


@pytest.mark.spec("S1-55", "S1-50", "S1-51")
async def test_a_replaced_bundle_keeps_its_tools_and_its_creation_under_a_new_slug(world):
    await world.with_bundle()
    before = (await world.client.get(world.bundle_path())).json
    await world.with_tool()
    replaced = await world.client.put(world.bundle_path(), world.bundle_body("sky", displayName="Sky"))
    assert replaced.status == 200
    assert replaced.json["slug"] == "sky"
    assert replaced.json["createdAt"] == before["createdAt"]
    assert replaced.json["modifiedAt"] >= before["modifiedAt"]
    assert (await world.client.get(world.tool_path())).status == 200
    assert (await world.client.post(f"{world.tool_path()}/invoke", {"args": {"city": "Oslo"}})).json["ok"] is True


@pytest.mark.spec("S1-56", "S1-12", "S1-03")
async def test_one_patch_switches_a_whole_bundle_off_and_on_again(world):
    await world.with_bundle()
    await world.with_tool("one")
    await world.with_tool("two")
    off = await world.client.patch(world.bundle_path(), {"isEnabled": False})
    assert (off.status, off.json["isEnabled"]) == (200, False)
    for slug in ("one", "two"):
        refused = await world.client.post(f"{world.tool_path(slug)}/invoke", {})
        assert refused.status == 409
        assert refused.json["kind"] == "DISABLED"
        assert refused.json["ok"] is False
    assert world.calls == []
    listed = await world.client.get(f"/tools?bundleIDs={world.bundle}")
    assert listed.json["tools"] == []
    all_of_them = await world.client.get(f"/tools?bundleIDs={world.bundle}&includeDisabled=true")
    assert sorted(tool["slug"] for tool in all_of_them.json["tools"]) == ["one", "two"]
    await world.client.patch(world.bundle_path(), {"isEnabled": True})
    assert (await world.client.post(f"{world.tool_path('one')}/invoke", {})).json["ok"] is True
    assert len((await world.client.get(f"/tools?bundleIDs={world.bundle}")).json["tools"]) == 2


@pytest.mark.spec("S1-56")
async def test_a_patch_of_a_bundle_that_says_more_or_less_than_its_switch_is_refused(world):
    await world.with_bundle()
    before = world.files()
    for body in [
        {"isEnabled": False, "slug": "other"},
        {"slug": "other"},
        {},
        {"isEnabled": "false"},
        {"isEnabled": None},
    ]:
        reply = await world.client.patch(world.bundle_path(), body)
        assert reply.status == 400, body
        assert world.files() == before


@pytest.mark.spec("S1-56", "S1-57")
async def test_a_bundle_that_is_not_there_is_not_found(world):
    for method in ["GET", "PATCH", "DELETE"]:
        reply = await world.client.ask(method, world.bundle_path(), {"isEnabled": True})
        assert reply.status == 404, method
        assert reply.json["kind"] == "NOT_FOUND"


@pytest.mark.spec("S1-57", "S1-73")
async def test_a_deleted_bundle_is_gone_from_sight_and_can_be_put_again(world):
    await world.with_bundle()
    deleted = await world.client.delete(world.bundle_path())
    assert deleted.status == 200
    assert deleted.json["softDeletedAt"]
    assert (await world.client.delete(world.bundle_path())).status == 409
    listed = await world.client.get("/tools/bundles?includeDisabled=true")
    assert world.bundle not in [bundle["bundleID"] for bundle in listed.json["bundles"]]
    refused = await world.client.put(world.tool_path(), world.go_body())
    assert refused.status == 409
    back = await world.client.put(world.bundle_path(), world.bundle_body())
    assert back.status in (200, 201)
    assert back.json["softDeletedAt"] is None


@pytest.mark.spec("S1-57")
async def test_a_bundle_that_holds_tools_is_not_deleted(world):
    await world.with_bundle()
    await world.with_tool()
    before = world.files()
    reply = await world.client.delete(world.bundle_path())
    assert (reply.status, reply.json["kind"]) == (409, "CONFLICT")
    assert world.files() == before


@pytest.mark.spec("S1-58")
async def test_bundles_are_listed_filtered_and_paged(world):
    await world.with_bundle()
    await world.with_bundle(world.other, slug="news", isEnabled=False)
    own = f"bundleIDs={world.bundle},{world.other}"
    on = (await world.client.get(f"/tools/bundles?{own}")).json
    assert [bundle["slug"] for bundle in on["bundles"]] == ["weather"]
    both = (
        await world.client.get(f"/tools/bundles?bundleIDs={world.bundle}&bundleIDs={world.other}&includeDisabled=true")
    ).json
    assert sorted(bundle["slug"] for bundle in both["bundles"]) == ["news", "weather"]
    seen, token = [], ""
    while True:
        page = (await world.client.get(f"/tools/bundles?{own}&includeDisabled=true&pageSize=1&pageToken={token}")).json
        seen += [bundle["slug"] for bundle in page["bundles"]]
        assert len(page["bundles"]) <= 1
        token = page["nextPageToken"]
        if token is None:
            break
    assert sorted(seen) == ["news", "weather"]


@pytest.mark.spec("S1-58", "S1-66")
async def test_a_bad_query_is_refused_and_named(world):
    for query in [
        "pageSize=0",
        "pageSize=257",
        "pageSize=-1",
        "pageSize=ten",
        "pageSize=",
        "pageSize=1&pageSize=2",
        "pageSize=%D9%A1",
        "pageToken=garbage",
        "pageToken=AAAA",
        "pageToken=%00",
        "includeDisabled=1",
        "includeDisabled=True",
        "includeDisabled=",
        "bundleIDs=b1",
        "bundleIDs=,",
        "bundleIDs=",
        "unknown=1",
        "pagesize=1",
        "%ff=1",
        "pageToken=%zz",
    ]:
        reply = await world.client.get("/tools/bundles", query=query)
        assert reply.status == 400, query
        assert reply.json["kind"] == "VALIDATION"
        assert reply.json["detail"]


async def test_an_unknown_parameter_is_named_with_those_that_are_known(world):
    reply = await world.client.get("/tools/bundles?pagesize=1")
    assert reply.json["detail"] == (
        "query: unknown parameter 'pagesize'; known are bundleIDs, includeDisabled, pageSize, pageToken"
    )


@pytest.mark.spec("S1-66")
async def test_a_token_of_another_query_is_refused(world):
    for number in range(3):
        await world.with_bundle(f"018faf50-b7b6-7a01-9a05-a22a6e0af20{number}", slug=f"b{number}")
    token = (await world.client.get("/tools/bundles?pageSize=1")).json["nextPageToken"]
    assert token
    assert (await world.client.get(f"/tools/bundles?pageSize=1&pageToken={token}")).status == 200
    assert (await world.client.get(f"/tools/bundles?pageSize=1&includeDisabled=true&pageToken={token}")).status == 400
    assert (await world.client.get(f"/tools?pageToken={token}")).status == 400
    changed = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    assert (await world.client.get(f"/tools/bundles?pageSize=1&pageToken={changed}")).status == 400


async def test_what_is_stored_is_json_that_a_person_can_read(world):
    await world.with_bundle()
    text = world.files()[f"{world.bundle}/bundle.json"].decode()
    assert json.loads(text)["slug"] == "weather"
    assert text.count("\n") > 3
