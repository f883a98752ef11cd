"""What HTTP promises of every resource: methods, tags, heads, ids and headers."""

from __future__ import annotations

import asyncio
import logging

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.storage.file_store import FileStore
from toolcrib.toolkit.http.concurrency import WRITERS

PATHS = {
    "/tools": "GET, HEAD, OPTIONS",
    "/tools/tools": "GET, HEAD, OPTIONS",
    "/tools/search": "GET, HEAD, OPTIONS",
    "/tools/tools/search": "GET, HEAD, OPTIONS",
    "/tools/bundles": "GET, HEAD, OPTIONS",
    "{bundle}/tools": "GET, HEAD, OPTIONS",
    "{bundle}": "DELETE, GET, HEAD, OPTIONS, PATCH, PUT",
    "{tool}": "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
    "{tool}/invoke": "OPTIONS, POST",
    "/call/none": "OPTIONS, POST",
    "/crib/explain": "OPTIONS, POST",
    "/crib/sessions": "OPTIONS, POST",
    "/crib/sessions/x": "DELETE, GET, HEAD, OPTIONS",
    "/crib/sessions/x/turn": "OPTIONS, POST",
    "/crib/tools": "GET, HEAD, OPTIONS",
    "/crib/results/00": "GET, HEAD, OPTIONS",
    "/crib/health": "GET, HEAD, OPTIONS",
    "/openapi.json": "GET, HEAD, OPTIONS",
    "/docs": "GET, HEAD, OPTIONS",
    "/metrics": "GET, HEAD, OPTIONS",
    "/healthz": "GET, HEAD, OPTIONS",
    "/readyz": "GET, HEAD, OPTIONS",
}


@pytest.mark.parametrize(("path", "allowed"), PATHS.items())
async def test_every_path_names_its_methods_and_refuses_the_others(world, path, allowed):
    path = path.format(bundle=world.bundle_path(), tool=world.tool_path())
    options = await world.client.ask("OPTIONS", path)
    assert (options.status, options.headers["allow"], options.raw) == (204, allowed, b"")
    for method in {"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "TRACE", "get", "PROPFIND"} - set(
        allowed.split(", ")
    ):
        reply = await world.client.ask(method, path, {"isEnabled": True})
        assert (reply.status, reply.headers["allow"]) == (405, allowed), method


async def test_what_is_no_path_is_not_found(world):
    for path in [
        "",
        "/tools/",
        "//tools",
        "/tools//bundles",
        "/Tools",
        "/tools/bundles/x/y",
        "/crib",
        "/tools/../docs",
        "/tools%2Fbundles",
        "/docs/",
        "/openapi",
        "/.well-known",
        "/tools/bundles/%00/tool",
        "/%2e%2e/docs",
        "/" + "x" * 20000,
    ]:
        reply = await world.client.get(path)
        assert (reply.status, reply.json["kind"]) == (404, "NOT_FOUND"), path


async def test_a_percent_encoded_letter_is_the_letter(world):
    assert (await world.client.get("/%74ools/bundles")).status == 200


async def test_a_head_says_what_a_get_would_and_sends_no_body(world):
    await world.with_bundle()
    got, head = await world.client.get(world.bundle_path()), await world.client.ask("HEAD", world.bundle_path())
    assert (head.status, head.raw) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]
    assert int(head.headers["content-length"]) == len(got.raw)


async def test_a_tag_changes_with_what_it_names_and_saves_reading_it_again(world):
    await world.with_bundle()
    made = await world.client.put(world.tool_path(), world.go_body())
    for path in (world.bundle_path(), world.tool_path()):
        first = await world.client.get(path)
        tag = first.headers["etag"]
        assert tag.startswith('"')
        for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            same = await world.client.get(path, headers={"If-None-Match": known})
            assert (same.status, same.raw, same.headers["etag"]) == (304, b"", tag)
        assert (await world.client.get(path, headers={"If-None-Match": '"other"'})).status == 200
        switched = await world.client.patch(path, {"isEnabled": False})
        assert switched.headers["etag"] != tag
        assert (await world.client.get(path)).headers["etag"] == switched.headers["etag"]
        await world.client.patch(path, {"isEnabled": True})
    assert made.headers["etag"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_a_change_of_what_has_changed_since_is_refused(world, method):
    await world.with_bundle()
    stale = (await world.client.get(world.bundle_path())).headers["etag"]
    await world.client.patch(world.bundle_path(), {"isEnabled": False})
    body = {"isEnabled": True} if method == "PATCH" else world.bundle_body("new")
    before = world.files()
    for known in (stale, f'"x", {stale}', f"W/{stale}"):
        reply = await world.client.ask(method, world.bundle_path(), body, headers={"If-Match": known})
        assert (reply.status, reply.json["kind"]) == (412, "CONFLICT"), known
    assert world.files() == before
    now = (await world.client.get(world.bundle_path())).headers["etag"]
    weak = await world.client.ask(method, world.bundle_path(), body, headers={"If-Match": f'"x", W/{now}'})
    assert weak.status == 412
    reply = await world.client.ask(method, world.bundle_path(), body, headers={"If-Match": f'"x", {now}'})
    assert reply.status == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_tool_is_changed_only_as_its_client_knows_it(world, method):
    await world.with_bundle()
    await world.with_tool()
    before = world.files()
    reply = await world.client.ask(method, world.tool_path(), {"isEnabled": False}, headers={"If-Match": '"stale"'})
    assert reply.status == 412
    assert world.files() == before
    assert (
        await world.client.ask(method, world.tool_path(), {"isEnabled": False}, headers={"If-Match": "*"})
    ).status < 300


async def test_a_bundle_that_must_be_there_and_is_not_is_not_made(world):
    for known in ("*", '"x"', '"x", "y"'):
        reply = await world.client.put(world.bundle_path(), world.bundle_body(), headers={"If-Match": known})
        assert reply.status == 412, known
    assert world.files() == {}


async def test_a_bundle_that_must_be_new_is_made_once_and_never_replaced(world):
    new = {"If-None-Match": "*"}
    assert (await world.client.put(world.bundle_path(), world.bundle_body(), headers=new)).status == 201
    before = world.files()
    both = await world.client.put(world.bundle_path(), world.bundle_body(), headers={**new, "If-Match": "*"})
    assert (both.status, "send one of them" in both.json["detail"]) == (400, True)
    again = await world.client.put(world.bundle_path(), world.bundle_body("other"), headers=new)
    assert (again.status, again.json["kind"]) == (412, "CONFLICT")
    assert again.json["details"]["etag"] == (await world.client.get(world.bundle_path())).headers["etag"]
    assert world.files() == before


async def test_a_tool_that_must_be_new_is_made_as_any_tool_is(world):
    new = {"If-None-Match": "*"}
    assert (await world.client.put(world.tool_path(), world.go_body(), headers=new)).status == 404
    await world.with_bundle()
    assert (await world.client.put(world.tool_path(), world.go_body(), headers=new)).status == 201
    before = world.files()
    assert (await world.client.put(world.tool_path(), world.go_body(), headers=new)).status == 412
    assert world.files() == before


async def test_a_change_of_anything_but_a_certain_tag_is_refused(world):
    await world.with_bundle()
    before = world.files()
    for method, given in (("PUT", '"x"'), ("PUT", ""), ("PATCH", "*"), ("DELETE", "*")):
        body = {"isEnabled": False} if method == "PATCH" else world.bundle_body()
        reply = await world.client.ask(method, world.bundle_path(), body, headers={"If-None-Match": given})
        assert reply.status == 400, (method, given)
        assert "If-Match" in reply.json["detail"]
    assert world.files() == before


async def test_tags_that_are_none_are_refused(world):
    await world.with_bundle()
    for value in ["", "x", '"', '"a" "b"', "**", '"ä"', "W/", ",", '"a",']:
        for header in ["If-Match", "If-None-Match"]:
            method = "PATCH" if header == "If-Match" else "GET"
            reply = await world.client.ask(method, world.bundle_path(), {"isEnabled": False}, headers={header: value})
            assert reply.status == 400, header
            assert header in reply.json["detail"]


async def test_a_request_keeps_its_id_where_it_is_sane_and_gets_one_where_it_is_not(world):
    assert (await world.client.get("/tools", headers={"X-Request-Id": "a.B_c-9"})).headers["x-request-id"] == "a.B_c-9"
    for bad in ("", "x" * 65, "a b", "a\tb", "<script>", "ä", "a/b"):
        made = (await world.client.get("/tools", headers={"X-Request-Id": bad})).headers["x-request-id"]
        assert made != bad
        assert made.replace("-", "").isalnum()


@pytest.mark.parametrize("path", ["/tools", "/nowhere", "/docs", "/tools/bundles?x=1"])
async def test_every_answer_tells_browsers_to_keep_and_guess_nothing(world, path):
    headers = (await world.client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-request-id"]


async def test_a_problem_says_what_where_and_under_which_id(world):
    reply = await world.client.get("/tools/bundles/b1", headers={"X-Request-Id": "trace-1"})
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json == {
        "type": "/docs#VALIDATION",
        "title": "Bad Request",
        "status": 400,
        "detail": "path: bundleID 'b1' is not a UUID of version 7; list the bundles with: GET /tools/bundles",
        "instance": "trace-1",
        "kind": "VALIDATION",
        "retryable": False,
        "details": {"cure": "list the bundles with: GET /tools/bundles"},
    }


async def test_what_fails_unexpectedly_is_told_by_its_id_alone(world, monkeypatch, caplog):
    def fail(*_, **__):
        raise ZeroDivisionError("the secret of the house")

    monkeypatch.setattr(world.crib.bundles, "list_bundles", fail)
    with caplog.at_level(logging.ERROR):
        reply = await world.client.get("/tools/bundles", headers={"X-Request-Id": "trace-2"})
    assert (reply.status, reply.json["kind"]) == (500, "INTERNAL")
    assert b"secret" not in reply.raw
    assert "trace-2" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_reading_goes_on_while_all_who_write_wait_for_a_lock(world):
    await world.with_bundle()
    await world.with_tool()
    with FileStore(world.root / ".toolcrib").lock(f"bundle/{world.bundle}"):
        writing = [
            asyncio.create_task(world.client.patch(world.bundle_path(), {"isEnabled": True}))
            for _ in range(2 * WRITERS)
        ]
        for path in (world.tool_path(), world.bundle_path(), "/tools", "/tools/search?q=echo"):
            assert (await world.client.get(path)).status == 200
        assert (await world.client.post(world.tool_path(), {})).json["ok"] is True
        assert [task for task in writing if task.done()] == []
    assert {reply.status for reply in await asyncio.wait_for(asyncio.gather(*writing), 20)} == {200}


async def test_a_lock_that_is_not_to_be_had_in_time_is_told_as_such(world, monkeypatch):
    await world.with_bundle()

    def frozen(*_, **__):
        raise ToolError(Kind.TRANSIENT, "the lock is held by another process", retryable=True)

    monkeypatch.setattr(world.crib.bundles, "switch_bundle", frozen)
    reply = await world.client.patch(world.bundle_path(), {"isEnabled": True})
    assert (reply.status, reply.json["kind"], reply.headers["retry-after"]) == (503, "TRANSIENT", "1")


async def test_a_refused_call_is_a_failed_result_at_every_guard(make_world, client_for):
    world = make_world(open_to_loopback=False)
    path = f"{world.tool_path()}/invoke"
    replies = [
        await world.client.post(path, {}),
        await client_for(world.client.app, host="evil.example").post(path, {}),
        await world.client.post(path, {}, headers={"Origin": "https://evil.example"}),
        await world.client.post(path, {}, extra=[(b"host", b"x")]),
    ]
    assert [reply.status for reply in replies] == [401, 421, 403, 400]
    assert [(reply.json["ok"], reply.json["error"]["message"] == reply.json["detail"]) for reply in replies] == [
        (False, True)
    ] * 4


async def test_a_socket_is_not_opened_and_the_life_of_a_server_takes_its_course(world):
    heard, told = [], iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(told)

    async def send(message):
        heard.append(message)

    await asyncio.wait_for(world.client.app({"type": "lifespan"}, receive, send), 25)
    await asyncio.wait_for(world.client.app({"type": "websocket", "path": "/tools"}, receive, send), 25)
    assert [message["type"] for message in heard] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
        "websocket.close",
    ]
