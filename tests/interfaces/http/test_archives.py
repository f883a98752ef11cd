"""Archives of bundles over HTTP: raw bodies with a limit of their own."""

from __future__ import annotations

import pytest

from toolcrib.features.access.view import make_view
from toolcrib.features.bundles.archive import unpack
from toolcrib.lib.zip_archive import write_archive

ZIP = {"content-type": "application/zip"}


def archive_path(world, bundle_id=None):
    return f"{world.bundle_path(bundle_id or world.bundle)}/archive"


@pytest.fixture
async def archive(world):
    """The archive of a bundle with one tool."""
    await world.with_bundle()
    await world.with_tool()
    return (await world.client.get(archive_path(world))).raw


@pytest.mark.spec("S1-93")
async def test_an_archive_is_downloaded_once_and_then_known_by_its_tag(world, archive):
    reply = await world.client.get(archive_path(world))
    assert (reply.status, reply.headers["content-type"], reply.raw) == (200, "application/zip", archive)
    assert "filename*=UTF-8''weather.zip" in reply.headers["content-disposition"]
    assert list(unpack(archive).tools) == ["tools/echo@v1.json"]
    known = await world.client.get(archive_path(world), headers={"if-none-match": reply.headers["etag"]})
    assert (known.status, known.raw) == (304, b"")
    await world.client.patch(world.tool_path(), {"isEnabled": False})
    assert (await world.client.get(archive_path(world))).headers["etag"] != reply.headers["etag"]


@pytest.mark.spec("S1-94")
async def test_an_archive_makes_a_bundle_that_is_disabled_unless_it_is_asked_for(world, archive):
    path = archive_path(world, world.other)
    reply = await world.client.post(path, raw=archive, headers=ZIP, query="slug=climate")
    assert reply.status == 201, reply.raw
    assert reply.headers["location"] == world.bundle_path(world.other)
    assert (reply.json["slug"], reply.json["isEnabled"]) == ("climate", False)
    refused = await world.client.post(f"{world.tool_path(bundle_id=world.other)}/invoke", {"args": {}})
    assert (refused.status, refused.json["kind"]) == (409, "DISABLED")
    await world.client.patch(world.bundle_path(world.other), {"isEnabled": True})
    called = await world.client.post(f"{world.tool_path(bundle_id=world.other)}/invoke", {"args": {"city": "Oslo"}})
    assert called.json["value"] == {"city": "Oslo"}


@pytest.mark.spec("S1-94")
async def test_an_archive_over_an_existing_bundle_is_a_conflict(world, archive):
    before = world.files()
    for bundle_id, query in [(world.bundle, ""), (world.bundle, "slug=climate"), (world.other, "")]:
        reply = await world.client.post(archive_path(world, bundle_id), raw=archive, headers=ZIP, query=query)
        assert (reply.status, reply.json["kind"]) == (409, "CONFLICT")
    assert world.files() == before


async def test_a_body_that_is_no_archive_is_refused(world, archive):
    path = archive_path(world, world.other)
    for raw, headers, query, status in [
        (archive, {"content-type": "application/json"}, "", 415),
        (archive, {"content-type": "multipart/form-data; boundary=x"}, "", 415),
        (archive, {"content-type": None}, "", 415),
        (archive, {**ZIP, "content-encoding": "gzip"}, "", 415),
        (b"", ZIP, "", 400),
        (archive[:-1], ZIP, "", 400),
        (write_archive({"x": b""}), ZIP, "", 400),
        (archive, ZIP, "slug=a_b", 400),
        (archive, ZIP, "enable=maybe", 400),
        (archive, ZIP, "overwrite=true", 400),
    ]:
        reply = await world.client.post(path, raw=raw, headers=headers, query=query)
        assert reply.status == status, (headers, query, reply.raw)
    assert (await world.client.get(archive_path(world, world.other))).status == 404


async def test_an_archive_has_a_size_limit_of_its_own(make_world, tmp_path):
    (tmp_path / "toolcrib.toml").write_text("[server]\nbody_bytes = 100\n[bundles]\narchive_bytes = 900\n")
    world = make_world()
    reply = await world.client.post(archive_path(world), raw=b"x" * 901, headers=ZIP)
    assert (reply.status, reply.json["details"]) == (413, {"limit": 900, "cure": "send less"})
    assert reply.json["detail"] == "the body is larger than 900 bytes; send less"
    reply = await world.client.post(archive_path(world), raw=b"x" * 900, headers=ZIP)
    assert reply.status == 400


async def test_scopes_and_views_hold_for_archives(make_world):
    world = make_world(open_to_loopback=False)
    world.crib.bundles.put_bundle(world.bundle, world.bundle_body())

    def token(scopes, view=None):
        return {"authorization": f"Bearer {world.crib.tokens.create('x', scopes, view=view)[1]}"}

    reader = token(["read"])
    path = archive_path(world)
    assert (await world.client.get(path)).status == 401
    assert (await world.client.get(path, headers=token(["invoke"]))).status == 403
    downloaded = await world.client.get(path, headers=reader)
    assert downloaded.status == 200
    assert (await world.client.post(path, raw=downloaded.raw, headers={**ZIP, **reader})).status == 403
    seeing_some = token(["read"], view=make_view(tools=["echo"], bundles=None, tags=None, mode=None))
    assert (await world.client.get(path, headers=seeing_some)).status in (403, 404)


async def test_bundles_of_other_sources_have_no_archive(world):
    listed = (await world.client.get("/tools/bundles")).json["bundles"]
    (builtin,) = [bundle["bundleID"] for bundle in listed if bundle["slug"] == "builtin"]
    reply = await world.client.get(archive_path(world, builtin))
    assert (reply.status, reply.json["kind"]) == (403, "BLOCKED")
    assert (await world.client.post(archive_path(world, builtin), raw=b"", headers=ZIP)).status in (400, 403)
