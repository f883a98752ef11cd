"""Calls of tools over HTTP: what they come to, and what is refused before anything runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from toolcrib import Intent, Kind, ToolError, tool
from toolcrib.model.result import Outcome
from toolcrib.toolkit.http import Request, until_gone


@pytest.mark.spec("S1-01", "S1-63", "S1-80")
@pytest.mark.parametrize("end", ["/invoke", ""])
async def test_an_invoke_runs_the_registered_function_and_answers_its_value(world, end):
    await world.with_bundle()
    await world.with_tool()
    reply = await world.client.post(f"{world.tool_path()}{end}", {"args": {"city": "Oslo"}})
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert {key: reply.json[key] for key in ("ok", "value", "intents")} == {
        "ok": True,
        "value": {"city": "Oslo"},
        "intents": [],
    }
    assert "error" not in reply.json
    assert reply.json["meta"]["tool"] == "echo"
    assert world.calls == [{"city": "Oslo"}]


@pytest.mark.spec("S1-77")
async def test_a_registered_function_receives_its_context_and_the_arguments_as_json(make_world):
    heard = []
    world = make_world(functions={"listen": lambda context, arguments: heard.append((context, arguments))})
    await world.with_bundle()
    await world.with_tool(impl={"goFunc": "listen"})
    reply = await world.client.post(world.tool_path(), {"args": {"city": "Oslo"}})
    [(context, arguments)] = heard
    assert arguments == {"city": "Oslo"}
    assert (context.caller, context.call_id, context.tool.slug) == ("local", reply.json["meta"]["callId"], "echo")


@pytest.mark.spec("S1-78")
@pytest.mark.parametrize(("method", "attempts"), [("GET", 2), ("PUT", 2), ("POST", 1)])
async def test_a_passing_failure_is_tried_again_where_that_does_no_harm(make_world, stand_in, method, attempts):
    stand_in.statuses[:] = [503]
    world = make_world(
        grants={"*": ["net.http"]},
        http_tools={"hosts": [f"127.0.0.1:{stand_in.port}"]},
        egress={"private": [f"127.0.0.1:{stand_in.port}"]},
    )
    await world.with_bundle()
    impl = {"method": method, "urlTemplate": f"http://127.0.0.1:{stand_in.port}/v1"}
    await world.with_tool("weather", type="http", impl=impl)
    reply = await world.client.post(f"{world.tool_path('weather')}/invoke", {})
    assert (reply.status, reply.json["ok"], len(stand_in.asked)) == (200, attempts > 1, attempts), reply.raw


@pytest.mark.spec("S1-63")
async def test_arguments_that_are_absent_are_none(world):
    await world.with_bundle()
    await world.with_tool()
    assert (await world.client.post(world.tool_path(), {})).json["value"] == {}


@pytest.mark.spec("S1-63")
@pytest.mark.parametrize("end", ["/invoke", ""])
@pytest.mark.parametrize("content_type", [None, "application/json", "application/x-www-form-urlencoded"])
async def test_an_invoke_without_a_body_has_no_arguments(world, end, content_type):
    await world.with_bundle()
    await world.with_tool()
    reply = await world.client.post(f"{world.tool_path()}{end}", headers={"content-type": content_type})
    assert (reply.status, reply.json["value"], world.calls) == (200, {}, [{}])


async def test_a_body_that_is_not_declared_as_json_is_refused_although_none_would_do(world):
    await world.with_bundle()
    await world.with_tool()
    for content_type in (None, "text/plain", "application/x-www-form-urlencoded"):
        reply = await world.client.post(world.tool_path(), {"args": {}}, headers={"content-type": content_type})
        assert reply.status == 415, content_type
    assert world.calls == []
    assert (await world.client.post("/call/x", {}, headers={"content-type": "text/plain"})).status == 415


async def test_an_invoke_with_comments_in_its_body_is_refused(world):
    await world.with_bundle()
    await world.with_tool()
    assert (await world.client.post(world.tool_path(), raw=b'{"args": {}} // none')).status == 400
    assert world.calls == []


@pytest.mark.spec("S1-63")
async def test_arguments_that_are_no_object_are_refused(world):
    await world.with_bundle()
    await world.with_tool()
    for args in [[], "x", 1, None, True]:
        reply = await world.client.post(world.tool_path(), {"args": args})
        assert reply.status == 400, args
        assert "args" in reply.json["detail"]
        assert (reply.json["ok"], reply.json["error"]["type"]) == (False, "VALIDATION")
        assert world.calls == []


@pytest.mark.spec("S1-76")
async def test_arguments_that_break_the_schema_are_refused_with_their_path_and_nothing_runs(world):
    await world.with_bundle()
    await world.with_tool()
    wrong = await world.client.post(f"{world.tool_path()}/invoke", {"args": {"city": 7}})
    more = await world.client.post(f"{world.tool_path()}/invoke", {"args": {"town": "Oslo"}})
    assert (wrong.status, more.status) == (400, 400)
    assert "city" in wrong.json["detail"]
    assert "town" in more.json["detail"]
    assert wrong.headers["content-type"] == "application/problem+json"
    assert wrong.json["error"]["message"] == wrong.json["detail"]
    assert wrong.json["instance"] == wrong.headers["x-request-id"]
    assert world.calls == []


@pytest.mark.spec("S1-80", "S1-09")
async def test_from_dispatch_on_a_failure_is_an_answer_with_status_200(make_world):
    def crash(context, arguments):
        raise ZeroDivisionError("the secret of the house")

    def half(context, arguments):
        raise ToolError(Kind.NOT_FOUND, "no such page", value="the first half")

    world = make_world(functions={"crash": crash, "half": half})
    await world.with_bundle()
    await world.with_tool("crash", impl={"goFunc": "crash"})
    await world.with_tool("half", impl={"goFunc": "half"})
    crashed = await world.client.post(world.tool_path("crash"), {})
    halved = await world.client.post(world.tool_path("half"), {})
    assert (crashed.status, crashed.json["ok"], crashed.json["error"]["type"]) == (200, False, "INTERNAL")
    assert b"secret of the house" not in crashed.raw
    assert (halved.status, halved.json["ok"], halved.json["error"]["type"]) == (200, False, "NOT_FOUND")
    assert "value" not in halved.json
    assert halved.json["error"]["details"]["partialValue"] == "the first half"


@pytest.mark.spec("S1-79")
async def test_a_value_that_breaks_its_promise_is_an_answer_with_status_200(world):
    await world.with_bundle()
    await world.with_tool(outputSchema={"type": "string"})
    reply = await world.client.post(world.tool_path(), {})
    assert (reply.status, reply.json["ok"], reply.json["error"]["type"]) == (200, False, "OUTPUT_INVALID")


@pytest.mark.spec("S1-63")
async def test_an_unknown_tool_and_one_that_is_off_are_refused_with_their_status(world):
    await world.with_bundle()
    await world.with_tool()
    unknown = await world.client.post(f"{world.tool_path('other')}/invoke", {})
    elsewhere = await world.client.post(f"{world.tool_path(bundle_id=world.other)}/invoke", {})
    await world.client.patch(world.tool_path(), {"isEnabled": False})
    off = await world.client.post(f"{world.tool_path()}/invoke", {})
    assert (unknown.status, unknown.json["kind"]) == (404, "NOT_FOUND")
    assert (elsewhere.status, elsewhere.json["kind"]) == (404, "NOT_FOUND")
    assert (off.status, off.json["kind"]) == (409, "DISABLED")
    assert [reply.json["ok"] for reply in (unknown, elsewhere, off)] == [False] * 3
    assert world.calls == []


@pytest.mark.spec("S1-63")
async def test_an_invoke_of_what_is_not_there_is_told_as_a_get_of_it_is(world):
    await world.with_bundle()
    await world.with_tool("weather")
    path = world.tool_path("weather", "v77")
    got, invoked = await world.client.get(path), await world.client.post(f"{path}/invoke")
    assert got.json["detail"] == f"there is no tool weather@v77 in the bundle {world.bundle}"
    assert (invoked.status, invoked.json["detail"]) == (404, got.json["detail"])
    assert invoked.json["error"]["message"] == got.json["detail"]


@pytest.mark.spec("S1-40")
async def test_a_host_that_is_not_allowed_is_refused_before_anything_is_sent(make_world):
    world = make_world(grants={"*": ["net.http"]})
    await world.with_bundle()
    impl = {"urlTemplate": "https://weather.example/?q=${city}"}
    await world.with_tool("weather", type="http", impl=impl)
    reply = await world.client.post(world.tool_path("weather"), {"args": {"city": "Oslo"}})
    assert (reply.status, reply.json["kind"], reply.json["ok"]) == (403, "HOST_NOT_ALLOWED", False)


@pytest.mark.spec("S1-01", "S1-41", "S1-79")
async def test_an_http_tool_makes_its_request_and_answers_what_was_extracted(make_world, stand_in):
    world = make_world(
        grants={"*": ["net.http"]},
        http_tools={"hosts": [f"127.0.0.1:{stand_in.port}"]},
        egress={"private": [f"127.0.0.1:{stand_in.port}"]},
    )
    await world.with_bundle()
    impl = {
        "method": "GET",
        "urlTemplate": f"http://127.0.0.1:{stand_in.port}/v1?q=${{city}}",
        "responseEncoding": "json",
        "extractExpr": "$.current.condition.text",
    }
    await world.with_tool("weather", type="http", impl=impl, outputSchema={"type": "string"})
    reply = await world.client.post(f"{world.tool_path('weather')}/invoke", {"args": {"city": "São Paulo"}})
    assert (reply.status, reply.json["ok"], reply.json.get("value")) == (200, True, "sunny"), reply.raw
    assert stand_in.asked == ["/v1?q=S%C3%A3o%20Paulo"]


async def test_an_invoke_that_says_something_else_is_refused(world):
    await world.with_bundle()
    await world.with_tool()
    for body in [
        {"args": {}, "extra": 1},
        {"arguments": {}},
        {"mode": 1},
        {"confirmation": {}},
        {"session": []},
        {"name": "echo"},
    ]:
        reply = await world.client.post(world.tool_path(), body)
        assert (reply.status, reply.json["ok"]) == (400, False), body
        assert world.calls == []


async def test_a_call_that_waits_for_confirmation_runs_with_the_token_of_its_refusal(make_world):
    @tool(confirm=True, bundle="danger")
    def wipe(what: str) -> str:
        """Wipe something out."""
        return f"wiped {what}"

    world = make_world(wipe)
    [found] = (await world.client.get("/tools/search?q=wipe")).json["tools"]
    place = f"/tools/bundles/{found['bundleID']}/tools/wipe/version/{found['version']}"
    asked = await world.client.post(place, {"args": {"what": "all"}})
    assert (asked.status, asked.json["kind"]) == (409, "CONFIRMATION_REQUIRED")
    token = asked.json["details"]["confirmation"]
    other = await world.client.post(place, {"args": {"what": "more"}, "confirmation": token})
    assert other.status == 409
    done = await world.client.post(place, {"args": {"what": "all"}, "confirmation": token})
    assert (done.status, done.json["value"]) == (200, "wiped all")
    again = await world.client.post(place, {"args": {"what": "all"}, "confirmation": token})
    assert again.status == 409


async def test_a_mode_that_a_tool_is_not_for_is_refused(make_world):
    @tool(modes=["voice"])
    def speak() -> str:
        """Say something."""
        return "said"

    world = make_world(speak)
    assert (await world.client.post("/call/speak", {})).status == 403
    assert (await world.client.post("/call/speak", headers={"Toolcrib-Mode": "voice"})).json["value"] == "said"
    assert (await world.client.post("/call/speak", headers={"Toolcrib-Mode": "song"})).status == 400


async def test_a_missing_capability_is_refused_with_its_name(make_world):
    @tool(requires=["mail.send"])
    def send() -> str:
        """Send a letter."""
        return "sent"

    world = make_world(send)
    reply = await world.client.post("/call/send", {})
    assert (reply.status, reply.json["kind"], reply.json["details"]["missing"]) == (
        403,
        "CAPABILITY_MISSING",
        ["mail.send"],
    )


async def test_intents_travel_beside_the_value(make_world):
    @tool
    def end_it() -> object:
        """End the conversation."""
        return Outcome(value="bye", intents=(Intent(type="END_SESSION", fields={"after": "reply"}),))

    world = make_world(end_it)
    reply = await world.client.post("/call/end_it", {})
    assert reply.json["intents"] == [{"type": "END_SESSION", "after": "reply"}]


async def test_the_journal_names_a_call_by_the_id_of_its_request(world):
    await world.with_bundle()
    await world.with_tool()
    for _ in range(2):
        reply = await world.client.post(world.tool_path(), {}, headers={"X-Request-Id": "trace-7"})
        assert reply.headers["x-request-id"] == "trace-7"
    made = await world.client.post(world.tool_path(), {})
    ids = [line["id"] for line in world.crib.journal.read() if line["event"] == "call"]
    assert [name.split(".")[0] for name in ids] == ["trace-7", "trace-7", made.headers["x-request-id"]]
    assert len(set(ids)) == 3


async def test_a_caller_is_told_apart_in_the_journal(world):
    await world.with_bundle()
    await world.with_tool()
    token, text = world.crib.tokens.create("laptop", ["invoke"])
    await world.client.post(world.tool_path(), {}, headers={"Authorization": f"Bearer {text}"})
    await world.client.post(world.tool_path(), {})
    assert [line["caller"] for line in world.crib.journal.read() if line["event"] == "call"] == [token.id, "local"]


async def test_a_call_is_stopped_when_its_client_goes_away(make_world):
    begun, ended = asyncio.Event(), []

    @tool
    async def wait_long() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
        return "never"

    world = make_world(wait_long)
    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive():
        if (message := next(messages, None)) is not None:
            return message
        await begun.wait()
        return {"type": "http.disconnect"}

    reply = await world.client.post("/call/wait_long", {}, receive=receive)
    assert ended == ["stopped"]
    assert reply.json["kind"] == "CANCELLED"
    assert asyncio.current_task().cancelling() == 0
    metrics = (await world.client.get("/metrics")).raw.decode()
    assert 'toolcrib_calls_total{tool="wait_long",outcome="CANCELLED"} 1' in metrics


async def test_details_of_an_error_that_are_no_object_are_shown_in_one(make_world):
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolError(Kind.PERMANENT, "it failed", details=["a", 1])  # type: ignore[arg-type]  # as a tool without type checks does

    reply = await make_world(fail).client.post("/call/fail", {})
    assert (reply.status, reply.json["error"]["details"]) == (200, {"details": ["a", 1]})


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_call_whose_client_goes_away_in_the_queue_never_begins(make_world, accept):
    holds, begun, gone, calls = asyncio.Event(), asyncio.Event(), asyncio.Event(), []

    @tool
    async def hold(name: str) -> str:
        """Hold on."""
        calls.append(name)
        begun.set()
        await holds.wait()
        return name

    world = make_world(hold, server={"concurrency": 1, "queue": 1})
    messages = iter([{"type": "http.request", "body": b'{"name": "queued"}', "more_body": False}])

    async def receive():
        if (message := next(messages, None)) is not None:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    first = asyncio.create_task(world.client.post("/call/hold", {"name": "first"}))
    await asyncio.wait_for(begun.wait(), 25)
    queued = asyncio.create_task(
        world.client.post("/call/hold", {"name": "queued"}, receive=receive, headers={"accept": accept})
    )
    await asyncio.sleep(0)  # it is in the queue, which is full with it
    assert (await world.client.post("/call/hold", {"name": "refused"})).status == 429
    gone.set()
    assert (await asyncio.wait_for(queued, 25)).json["kind"] == "CANCELLED"
    metrics = (await world.client.get("/metrics")).raw.decode()
    assert 'toolcrib_calls_total{tool="hold",outcome="CANCELLED"} 1' in metrics
    # Its place in the queue is free for the next.
    second = asyncio.create_task(world.client.post("/call/hold", {"name": "second"}))
    await asyncio.sleep(0)
    holds.set()
    assert [(await asyncio.wait_for(each, 25)).json["value"] for each in (first, second)] == ["first", "second"]
    assert calls == ["first", "second"]


async def test_a_client_that_goes_away_as_the_work_ends_cancels_nothing_that_follows():
    loop, done, left = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    async def receive():
        await left.wait()
        return {"type": "http.disconnect"}

    async def work():
        await done.wait()
        return "done"

    async def respond() -> str:
        result = await until_gone(Request({"type": "http", "headers": []}, receive, 1), work())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return result

    responding = asyncio.create_task(respond())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    # The watcher finishes between the end of the work and the moment that its task goes on.
    loop.call_soon(done.set)
    left.set()
    assert await asyncio.wait_for(responding, 25) == "done"


async def test_a_call_is_stopped_when_the_server_stops_it(make_world):
    begun, ended = asyncio.Event(), []

    @tool
    async def wait_long() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
        return "never"

    world = make_world(wait_long)
    asking = asyncio.create_task(world.client.post("/call/wait_long", {}))
    await asyncio.wait_for(begun.wait(), 25)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, 25)
    assert ended == ["stopped"]


async def test_a_client_is_watched_only_as_long_as_its_call_takes(make_world):
    @tool
    async def wait_a_moment() -> str:
        """Wait."""
        await asyncio.sleep(0)
        return "done"

    world = make_world(wait_a_moment)
    assert (await world.client.post("/call/wait_a_moment", {})).json["value"] == "done"
    await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if "gone" in repr(task.get_coro())] == []


async def test_a_body_that_never_ends_is_nothing(world):
    async def receive():
        return {"type": "http.disconnect"}

    reply = await world.client.post("/call/x", {}, receive=receive)
    assert reply.status == 400


async def test_too_many_calls_at_once_are_told_to_come_again(make_world):
    holds, begun = asyncio.Event(), asyncio.Event()

    @tool
    async def hold() -> str:
        """Hold on."""
        begun.set()
        await holds.wait()
        return "done"

    world = make_world(hold, server={"concurrency": 1, "queue": 1})
    first = asyncio.create_task(world.client.post("/call/hold", {}))
    await asyncio.wait_for(begun.wait(), 25)
    second = asyncio.create_task(world.client.post("/call/hold", {}))
    await asyncio.sleep(0)  # the second is in the queue, which is full with it
    third = await world.client.post("/call/hold", {})
    assert (third.status, third.json["kind"], third.headers["retry-after"]) == (429, "OVERLOADED", "1")
    assert (await world.client.post("/call/made_up", {})).status == 429
    metrics = (await world.client.get("/metrics")).raw.decode()
    assert 'toolcrib_calls_total{tool="hold",outcome="OVERLOADED"} 1' in metrics
    assert 'toolcrib_calls_total{tool="(unknown)",outcome="OVERLOADED"} 1' in metrics
    holds.set()
    assert (await first).json["value"] == "done"
    assert (await second).json["value"] == "done"


@dataclass
class Echo:
    """A server that answers one body to every request, or nothing at all; and the verbs that it heard."""

    port: int = 0
    body: bytes = b'{"a": {"b": 1}}'
    verbs: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.verbs.append(head.split(b" ")[0].decode())
        if self.body:
            start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(start + b"Content-Length: %d\r\n\r\n" % len(self.body) + self.body)
        else:
            await reader.read()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def echo():
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = server.sockets[0].getsockname()[1]
    async with server:
        yield echo


async def invoke(make_world, echo: Echo, **impl: object) -> dict:
    """Store a tool with this implementation, and call it."""
    here = f"127.0.0.1:{echo.port}"
    world = make_world(grants={"*": ["net.http"]}, http_tools={"hosts": [here]}, egress={"private": [here]})
    await world.with_bundle()
    await world.with_tool(type="http", impl={"urlTemplate": f"http://{here}/", **impl})
    return (await world.client.post(f"{world.tool_path()}/invoke")).json


@pytest.mark.spec("S1-27", "S1-33", "S1-101")
@pytest.mark.parametrize(
    ("impl", "verb", "value"),
    [
        ({}, "GET", {"a": {"b": 1}}),
        ({"method": "DELETE"}, "DELETE", {"a": {"b": 1}}),
        ({"method": "PATCH", "responseEncoding": "json"}, "PATCH", {"a": {"b": 1}}),
        ({"responseEncoding": "text"}, "GET", '{"a": {"b": 1}}'),
        ({"extractExpr": "$.a.b"}, "GET", 1),
        ({"extractExpr": "[ab]", "responseEncoding": "text"}, "GET", ["a", "b"]),
    ],
)
async def test_a_stored_request_is_sent_and_read_as_its_document_says(make_world, echo, impl, verb, value):
    result = await invoke(make_world, echo, **impl)
    assert (echo.verbs, result.get("value")) == ([verb], value), result


@pytest.mark.spec("S1-33")
async def test_an_answer_that_is_no_json_fails_unless_it_is_read_as_text(make_world, echo):
    echo.body = b"<sunny>"
    result = await invoke(make_world, echo)
    assert (result["ok"], result["error"]["type"]) == (False, "OUTPUT_INVALID")


@pytest.mark.spec("S1-32")
async def test_a_stored_request_ends_at_its_own_time_limit(make_world, echo):
    echo.body = b""
    result = await invoke(make_world, echo, timeoutMs=100)
    assert (result["ok"], result["error"]["type"], result["error"]["details"]["timeoutMs"]) == (False, "TIMEOUT", 100)
