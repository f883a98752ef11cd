"""What keeps a web page in a user's browser from using the server: names, pages, and the type of bodies."""

from __future__ import annotations

import pytest

LISTED = "https://console.example"


async def test_the_server_goes_by_the_names_of_this_machine(world, client_for):
    for host in ["127.0.0.1", "127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]:8765"]:
        assert (await client_for(world.client.app, host=host).get("/tools")).status == 200, host


async def test_a_name_that_is_not_the_servers_is_refused(world, client_for):
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "127.0.0.2",
        "evil.example:8765",
        "[::2]",
        "0",
    ]:
        reply = await client_for(world.client.app, host=host).get("/tools")
        assert (reply.status, reply.json["kind"]) == (421, "HOST_NOT_ALLOWED"), host
        assert "ask the operator to add it" in reply.json["detail"]


async def test_a_host_that_is_none_is_refused(world):
    for host in [None, "", "a b", "user@127.0.0.1", "127.0.0.1/x", "127.0.0.1:99999999", "[::1", "a\x00b"]:
        assert (await world.client.get("/tools", headers={"host": host})).status in (400, 421), host


async def test_a_refused_name_is_not_remembered_as_a_good_one(world, client_for):
    evil = client_for(world.client.app, host="evil.example")
    assert [(await evil.get("/tools")).status for _ in range(3)] == [421] * 3
    assert (await world.client.get("/tools")).status == 200
    assert (await evil.get("/tools")).status == 421


async def test_names_of_the_settings_are_taken(make_world, client_for):
    world = make_world(server={"hosts": ["Crib.example", "tools.example:8080"]})
    headers = {"Authorization": f"Bearer {world.crib.tokens.create('reader', ['read'])[1]}"}
    for host, status in [("crib.example:9", 200), ("tools.example:8080", 200), ("tools.example", 421)]:
        reply = await client_for(world.client.app, host=host).get("/tools", headers=headers)
        assert reply.status == status, host


async def test_a_host_twice_is_refused(world):
    reply = await world.client.get("/tools", extra=[(b"host", b"evil.example")])
    assert reply.status == 400
    assert "host" in reply.json["detail"]


async def test_a_page_from_elsewhere_is_refused(world):
    for method in ["GET", "POST"]:
        for origin in [
            "https://evil.example",
            "null",
            "http://127.0.0.1",
            "http://127.0.0.1:9999",
            "file://",
            "http://localhost:8765",
            "x",
        ]:
            path = "/tools" if method == "GET" else "/call/x"
            reply = await world.client.ask(
                method, path, {"name": "x"} if method == "POST" else None, headers={"Origin": origin}
            )
            assert reply.status == 403, origin
            assert "access-control-allow-origin" not in reply.headers


async def test_a_page_of_the_server_itself_is_let_in(world):
    reply = await world.client.get("/tools", headers={"Origin": "http://127.0.0.1:8765"})
    assert reply.status == 200
    assert "access-control-allow-origin" not in reply.headers


async def test_a_listed_page_is_let_in_and_may_read_the_answer(make_world):
    world = make_world(server={"origins": [LISTED]})
    reply = await world.client.get("/tools", headers={"Origin": LISTED})
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == LISTED
    assert reply.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in reply.headers
    refused = await world.client.get("/nowhere", headers={"Origin": LISTED})
    assert refused.headers["access-control-allow-origin"] == LISTED
    assert (await world.client.get("/tools", headers={"Origin": f"{LISTED}.evil"})).status == 403


async def test_a_browser_may_ask_ahead_for_a_listed_page_alone_and_needs_no_token(make_world):
    world = make_world(server={"origins": [LISTED]}, open_to_loopback=False)
    asks = {"Origin": LISTED, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    reply = await world.client.ask("OPTIONS", world.bundle_path(), headers=asks)
    assert reply.status == 204
    assert "PUT" in reply.headers["access-control-allow-methods"]
    assert "content-type" in reply.headers["access-control-allow-headers"]
    other = await world.client.ask("OPTIONS", world.bundle_path(), headers={**asks, "Origin": "https://evil.example"})
    assert other.status == 403
    assert not [name for name in other.headers if name.startswith("access-control")]


async def test_a_body_that_does_not_say_it_is_json_is_refused(world):
    for content_type in [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json; charset=latin-1",
        "application/json, text/plain",
        "text/json",
    ]:
        reply = await world.client.put(world.bundle_path(), world.bundle_body(), headers={"content-type": content_type})
        assert (reply.status, reply.json["kind"]) == (415, "VALIDATION"), content_type
        assert world.files() == {}


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
async def test_json_is_taken_however_it_is_spelled(world, content_type):
    reply = await world.client.put(world.bundle_path(), world.bundle_body(), headers={"content-type": content_type})
    assert reply.status == 201


async def test_a_compressed_body_is_refused(world):
    reply = await world.client.put(world.bundle_path(), world.bundle_body(), headers={"content-encoding": "gzip"})
    assert reply.status == 415
