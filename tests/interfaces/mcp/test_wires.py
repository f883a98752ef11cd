"""Both wires of the protocol over HTTP: how a client opens, what each request must say, and what it is answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.interfaces.mcp.conftest import META, NEW, OLD, McpClient, meta

from toolcrib import Context, Kind, ToolError, tool


@tool
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@tool
async def wait_for_ever() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


@tool
async def ask_name(context: Context) -> str:
    """Ask the user for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer: Any = await context.elicit("Your name?", schema, key="name")
    return f"Hello, {answer['content']['name']}" if answer["action"] == "accept" else answer["action"]


@tool
async def talk(context: Context) -> str:
    """Log and tell of progress."""
    context.log("debug", "quiet")
    context.log("warning", {"loud": True})
    context.progress(1, 2, "half")
    return "done"


@pytest.fixture
def client(client_of) -> McpClient:
    return client_of(add, wait_for_ever, ask_name, talk)


# --- the stateless wire ------------------------------------------------------------------------------------------------


async def test_a_stateless_client_discovers_lists_and_calls_without_a_session(client):
    found = (await client.ask("server/discover")).result
    listed = (await client.ask("tools/list")).result
    called = await client.call("add", {"first": 1, "second": 2})
    assert NEW in found["supportedVersions"]
    assert found["_meta"][f"{META}serverInfo"]["name"] == "toolcrib"
    assert [each["name"] for each in listed["tools"]] == ["add", "ask_name", "talk", "wait_for_ever"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    assert called.result["structuredContent"] == 3
    assert called.result["content"] == [{"type": "text", "text": "3"}]
    assert called.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in called.headers


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"_meta": {}}, "protocolVersion"),
        ({"_meta": {f"{META}protocolVersion": NEW}}, "clientCapabilities"),
        ({"_meta": meta() | {f"{META}clientCapabilities": []}}, "clientCapabilities"),
    ],
)
async def test_a_stateless_request_without_its_meta_is_refused_as_invalid(client, change, missing):
    reply = await client.ask("tools/list", change)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert missing in reply.error["message"]


async def test_an_unknown_version_is_told_which_ones_there_are(client):
    reply = await client.ask(
        "tools/list", {"_meta": meta("2099-01-01")}, headers={"mcp-protocol-version": "2099-01-01"}
    )
    assert (reply.status, reply.error["code"]) == (400, -32022)
    assert reply.error["data"] == {"supported": [NEW], "requested": "2099-01-01"}


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": None},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": None},
        {"mcp-name": "subtract"},
        {"mcp-name": "=?base64?YWRk=?="},
        {"mcp-protocol-version": None},
        {"mcp-protocol-version": OLD},
    ],
)
async def test_headers_that_differ_from_the_body_are_refused(client, headers):
    reply = await client.ask("tools/call", {"name": "add", "arguments": {"first": 1, "second": 2}}, headers=headers)
    assert (reply.status, reply.error["code"]) == (400, -32020)


@pytest.mark.parametrize("name", ["=?base64?YWRk?=", "  add\t"])
async def test_a_name_may_be_encoded_or_stand_between_spaces(client, name):
    arguments = {"first": 1, "second": 2}
    reply = await client.ask("tools/call", {"name": "add", "arguments": arguments}, headers={"mcp-name": name})
    assert reply.result["structuredContent"] == 3


async def test_a_header_that_stands_twice_is_refused(client):
    reply = await client.ask("tools/list", extra=((b"mcp-method", b"tools/list"),))
    assert reply.status == 400


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"])
async def test_methods_of_the_older_wire_are_not_there_on_the_stateless_one(client, method):
    reply = await client.ask(method)
    assert (reply.status, reply.error["code"]) == (404, -32601)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_stateless_wire_has_nothing_but_post(client, method):
    reply = await client.send(b"", method=method)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


async def test_an_unknown_tool_is_an_error_of_the_protocol_and_wrong_arguments_are_a_result(client):
    unknown = await client.call("adds")
    wrong = await client.call("add", {"first": "one", "second": 2})
    assert (unknown.status, unknown.error["code"]) == (400, -32602)
    assert "did you mean add" in unknown.error["message"]
    assert wrong.result["isError"] is True
    assert wrong.result["content"][0]["text"].startswith("VALIDATION: Invalid arguments for add")
    assert wrong.result["_meta"]["toolcrib/error"]["type"] == "VALIDATION"


async def test_messages_of_the_log_reach_only_a_request_that_wants_them(client):
    quiet = await client.call("talk")
    loud = await client.ask(
        "tools/call",
        {"name": "talk", "_meta": meta(progressToken="t1", **{f"{META}logLevel": "info"})},
    )
    assert quiet.headers["content-type"] == "application/json"
    assert loud.headers["content-type"] == "text/event-stream"
    assert [message.get("method") for message in loud.messages] == [
        "notifications/message",
        "notifications/progress",
        None,
    ]
    assert loud.messages[0]["params"] == {"level": "warning", "data": {"loud": True}, "logger": "talk"}
    assert loud.messages[1]["params"] == {"progressToken": "t1", "progress": 1, "total": 2, "message": "half"}


# --- questions on the stateless wire -----------------------------------------------------------------------------------


async def test_a_question_is_an_answer_that_the_client_repeats_the_call_with(client):
    asked = (await client.call("ask_name")).result
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["name"]["method"] == "elicitation/create"
    answer = {"name": {"action": "accept", "content": {"name": "Ada"}}, "other": {"action": "cancel"}}
    told = await client.call("ask_name", requestState=asked["requestState"], inputResponses=answer)
    assert told.result["content"][0]["text"] == "Hello, Ada"


@pytest.mark.parametrize(("first", "second", "heard"), [("info", None, False), (None, "info", True)])
async def test_a_repeated_request_says_for_itself_what_it_wants_to_hear(client_of, first, second, heard):
    @tool
    async def ask_and_tell(context: Context) -> str:
        """Ask, then log and tell of progress."""
        await context.elicit("?", {"type": "object", "properties": {}}, key="k")
        context.log("info", "after")
        return "done"

    def said(level: str | None) -> dict:
        return meta() if level is None else {**meta(), f"{META}logLevel": level}

    client = client_of(ask_and_tell)
    asked = (await client.call("ask_and_tell", _meta=said(first))).result
    answered = {"requestState": asked["requestState"], "inputResponses": {"k": {"action": "accept", "content": {}}}}
    told = await client.call("ask_and_tell", _meta=said(second), **answered)
    assert told.result["content"][0]["text"] == "done"
    assert ("notifications/message" in [message.get("method") for message in told.messages]) is heard


async def test_a_repeated_request_is_asked_only_what_it_declares_itself_able_to_answer(client_of):
    @tool
    async def ask_twice(context: Context) -> str:
        """Ask the user, then the folders."""
        await context.elicit("?", {"type": "object", "properties": {}}, key="k")
        return str(await context.roots())

    client = client_of(ask_twice)
    asked = (await client.call("ask_twice")).result
    answered = {"requestState": asked["requestState"], "inputResponses": {"k": {"action": "accept", "content": {}}}}
    told = await client.call("ask_twice", _meta=meta(capabilities={"elicitation": {}}), **answered)
    assert (told.status, told.error["code"]) == (400, -32021)
    assert told.error["data"] == {"requiredCapabilities": {"roots": {}}}


async def test_answers_that_come_with_the_call_are_taken_at_once(client):
    told = await client.call("ask_name", inputResponses={"name": {"action": "decline"}})
    assert told.result["content"][0]["text"] == "decline"


@pytest.mark.parametrize("given", [None, [], "x", {"name": 5}])
async def test_answers_that_are_none_are_refused(client, given):
    reply = await client.call("ask_name", inputResponses=given)
    assert (reply.status, reply.error["code"]) == (400, -32602)


async def test_a_question_whose_answer_does_not_fit_is_asked_again_under_a_new_state(client):
    asked = (await client.call("ask_name")).result
    wrong = {"name": {"action": "accept", "content": {"name": 5}}}
    again = (await client.call("ask_name", requestState=asked["requestState"], inputResponses=wrong)).result
    assert again["inputRequests"] == asked["inputRequests"]
    old = await client.call("ask_name", requestState=asked["requestState"], inputResponses={})
    assert "used before" in old.error["message"]
    right = {"name": {"action": "accept", "content": {"name": "Ada"}}}
    told = await client.call("ask_name", requestState=again["requestState"], inputResponses=right)
    assert told.result["content"][0]["text"] == "Hello, Ada"


async def test_no_answer_fits_a_question_whose_schema_is_none(client_of):
    @tool
    async def broken(context: Context) -> str:
        """Ask with a schema that is none."""
        return str(await context.elicit("?", {"type": "no such type"}, key="k"))

    client = client_of(broken)
    asked = (await client.call("broken")).result
    given = {"k": {"action": "accept", "content": {}}}
    again = (await client.call("broken", requestState=asked["requestState"], inputResponses=given)).result
    assert again["resultType"] == "input_required"


async def test_a_state_goes_once_with_the_very_same_call_of_the_same_caller(client):
    answer = {"name": {"action": "accept", "content": {"name": "Ada"}}}

    async def state() -> str:
        return (await client.call("ask_name")).result["requestState"]

    first = await state()
    other_call = await client.ask(
        "tools/call", {"name": "talk", "arguments": {}, "requestState": first, "inputResponses": answer}
    )
    assert "another request" in other_call.error["message"]
    used = await state()
    assert "result" in (await client.call("ask_name", requestState=used, inputResponses=answer)).last
    assert "used before" in (await client.call("ask_name", requestState=used, inputResponses=answer)).error["message"]
    token = client.crib.tokens.create("other", ["read", "invoke"])[1]
    stranger = McpClient(client.app, token=token)
    foreign = await stranger.call("ask_name", requestState=await state(), inputResponses=answer)
    assert "another caller" in foreign.error["message"]


@pytest.mark.parametrize("state", ["", "x", "AAAA", 5, None, "é" * 20, "A" * 10_000])
async def test_a_state_that_was_not_made_here_is_refused(client, state):
    reply = await client.call("ask_name", requestState=state, inputResponses={})
    if state is None:
        assert reply.result["resultType"] == "input_required"
    else:
        assert (reply.status, reply.error["code"]) == (400, -32602)


async def test_an_altered_state_is_refused_wherever_it_was_altered(client):
    state = (await client.call("ask_name")).result["requestState"]
    for at in range(0, len(state), 7):
        altered = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
        reply = await client.call("ask_name", requestState=altered, inputResponses={})
        assert reply.error["code"] == -32602


async def test_a_question_that_the_client_did_not_declare_is_an_error_that_names_the_capability(client):
    reply = await client.ask("tools/call", {"name": "ask_name", "_meta": meta(capabilities={"sampling": {}})})
    assert (reply.status, reply.error["code"]) == (400, -32021)
    assert reply.error["data"] == {"requiredCapabilities": {"elicitation": {}}}


async def test_questions_of_one_client_that_wait_are_bounded(client):
    replies = [await client.call("ask_name") for _ in range(34)]
    assert [reply.status for reply in replies].count(200) == 32
    assert replies[-1].status == 429


# --- the older wire ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [OLD, "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_older_versions_open_a_session_and_call(client, version):
    session = await client.open(version)
    assert session.version == version
    assert (await session.tell("notifications/initialized")).status == 202
    listed = (await session.ask("tools/list")).result
    called = (await session.call("add", {"first": 1, "second": 2})).result
    assert {each["name"] for each in listed["tools"]} == {"add", "ask_name", "talk", "wait_for_ever"}
    assert "resultType" not in listed
    assert called["content"] == [{"type": "text", "text": "3"}]
    has_structure = version >= "2025-06-18"
    assert ("outputSchema" in listed["tools"][0]) is has_structure
    assert called.get("structuredContent") == ({"result": 3} if has_structure else None)


@pytest.mark.parametrize("version", [NEW, "1999-01-01", "x"])
async def test_a_version_that_no_session_can_have_is_answered_with_the_newest_that_can(client, version):
    assert (await client.open(version)).version == OLD


async def test_a_session_outlives_the_server(client_of, tmp_path):
    first = await client_of(add, project=tmp_path).open()
    second = client_of(add, project=tmp_path)
    again = McpClient(second.app, session=first.session, version=OLD)
    assert (await again.call("add", {"first": 1, "second": 2})).result["structuredContent"] == {"result": 3}


async def test_a_session_that_ended_stays_ended_after_a_restart(client_of, tmp_path):
    first = await client_of(add, project=tmp_path).open()
    assert (await first.send(b"", method="DELETE")).status == 204
    assert (await first.ask("tools/list")).status == 404
    again = McpClient(client_of(add, project=tmp_path).app, session=first.session, version=OLD)
    assert (await again.ask("tools/list")).status == 404


async def test_a_session_belongs_to_its_caller_and_to_its_project(client_of, tmp_path):
    client = client_of(add, project=tmp_path)
    mine = await client.open()
    token = client.crib.tokens.create("other", ["read", "invoke"])[1]
    for stranger in (
        McpClient(client.app, token=token, session=mine.session, version=OLD),
        McpClient(client_of(add).app, session=mine.session, version=OLD),
        McpClient(client.app, session=mine.session[:-2] + "AA", version=OLD),
        McpClient(client.app, session="AAAA", version=OLD),
    ):
        assert (await stranger.ask("tools/list")).status == 404


async def test_an_older_request_without_a_session_is_refused(client):
    reply = await McpClient(client.app, version=OLD).ask("tools/list")
    assert reply.status == 400
    assert "initialize" in reply.error["message"]


async def test_a_question_on_the_older_wire_is_a_request_on_the_stream(client):
    session = await client.open()
    calling = asyncio.create_task(session.call("ask_name"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (await session.respond("crib-1", {"action": "accept", "content": {"name": "Ada"}})).status == 202
    called = await asyncio.wait_for(calling, 25)
    assert [message.get("method") for message in called.messages] == ["elicitation/create", None]
    assert called.result["content"][0]["text"] == "Hello, Ada"


async def test_only_the_client_that_was_asked_can_answer(client):
    session, other = await client.open(), await client.open()
    calling = asyncio.create_task(session.call("ask_name"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (await other.respond("crib-1", {"action": "accept", "content": {"name": "Eve"}})).status == 400
    assert (await session.respond("crib-1", error={"code": -1, "message": "no"})).status == 202
    refused = (await asyncio.wait_for(calling, 25)).result
    assert "the client refused the question: no" in refused["content"][0]["text"]


async def test_a_client_without_the_capability_gets_a_typed_refusal_on_the_older_wire(client):
    session = await client.open(capabilities={})
    refused = (await session.call("ask_name")).result
    assert refused["isError"] is True
    assert refused["_meta"]["toolcrib/error"]["type"] == "CAPABILITY_MISSING"


async def test_a_request_can_be_cancelled_by_its_own_client_alone(client):
    session, other = await client.open(), await client.open()
    calling = asyncio.create_task(session.ask("tools/call", {"name": "wait_for_ever"}, request_id="slow"))
    for _ in range(20):
        await asyncio.sleep(0)
    await other.tell("notifications/cancelled", {"requestId": "slow"})
    for _ in range(20):
        await asyncio.sleep(0)
    assert not calling.done()
    await session.tell("notifications/cancelled", {"requestId": "slow"})
    assert (await asyncio.wait_for(calling, 25)).error["message"] == "the request was cancelled"
    metrics = await session.send(b"", method="GET", path="/metrics")
    assert 'toolcrib_calls_total{tool="wait_for_ever",outcome="CANCELLED"} 1' in metrics.raw.decode()


async def test_a_truth_value_cancels_no_request(client):
    session = await client.open()
    calling = asyncio.create_task(session.ask("tools/call", {"name": "wait_for_ever"}, request_id=1))
    for _ in range(20):
        await asyncio.sleep(0)
    await session.tell("notifications/cancelled", {"requestId": True})
    for _ in range(20):
        await asyncio.sleep(0)
    assert not calling.done()
    await session.tell("notifications/cancelled", {"requestId": 1})
    assert (await asyncio.wait_for(calling, 25)).error["message"] == "the request was cancelled"


async def test_the_level_of_the_log_is_that_of_the_session(client):
    session = await client.open()
    assert (await session.ask("logging/setLevel", {"level": "error"})).result == {}
    assert len((await session.call("talk")).messages) == 1
    await session.ask("logging/setLevel", {"level": "debug"})
    assert [message.get("method") for message in (await session.call("talk")).messages] == [
        "notifications/message",
        "notifications/message",
        None,
    ]
    assert (await session.ask("logging/setLevel", {"level": "loud"})).error["code"] == -32602


async def test_a_client_that_leaves_a_stateless_call_has_it_stopped(client_of):
    stopped = asyncio.Event()

    @tool
    async def slow(context: Context) -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    client, gone = client_of(slow), asyncio.Event()
    calling = asyncio.create_task(client.ask("tools/call", {"name": "slow"}, gone=gone))
    for _ in range(20):
        await asyncio.sleep(0)
    gone.set()
    await asyncio.wait_for(stopped.wait(), 25)
    await asyncio.gather(calling, return_exceptions=True)


async def test_an_id_comes_back_as_it_was_sent(client):
    for request_id in (0, -1, 2**53 + 1, "", "x" * 256, "é☃"):
        assert (await client.ask("server/discover", request_id=request_id)).last["id"] == request_id


def _message(**changes: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}, **changes}
    return json.dumps({key: value for key, value in message.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
        (b'{"a":' * 100 + b"1" + b"}" * 100, -32700),
        (b"[]", -32600),
        (b"[" + _message() + b"]", -32600),
        (b"5", -32600),
        (b"null", -32600),
        (_message(jsonrpc="1.0"), -32600),
        (_message(jsonrpc=...), -32600),
        (_message(id=None), -32600),
        (_message(id=1.5), -32600),
        (_message(id=True), -32600),
        (_message(id={}), -32600),
        (_message(id="x" * 257), -32600),
        (_message(id=2**63), -32600),
        (_message(method=5), -32600),
        (_message(method=""), -32600),
        (_message(method="x" * 300), -32600),
        (_message(method=..., result=5), -32600),
        (_message(result={}), -32600),
        (_message(method=...), -32600),
        (_message(params=[]), -32602),
        (_message(params="x"), -32602),
        (_message(params={"_meta": []}), -32602),
    ],
)
async def test_what_is_no_message_is_refused_with_the_code_of_json_rpc(client, raw, code):
    reply = await client.send(raw, headers={"mcp-method": "server/discover"})
    assert (reply.status, reply.error["code"]) == (400, code)


async def test_a_body_beyond_the_limit_and_of_another_type_is_refused(client):
    assert (await client.send(b" " * 1_000_001)).status == 413
    assert (await client.send(_message(), headers={"content-type": "text/plain"})).status == 415
    assert (await client.send(_message(), headers={"content-encoding": "gzip"})).status == 415


@pytest.mark.parametrize("cursor", ["x", "cDk=", "", 5, "cDAwMQ==", "-" * 100])
async def test_a_cursor_that_is_none_is_refused(client, cursor):
    assert (await client.ask("tools/list", {"cursor": cursor})).error["code"] == -32602


# --- guards ------------------------------------------------------------------------------------------------------------


async def test_every_guard_of_the_server_stands_before_the_protocol(client_of):
    client = client_of(add, open_to_loopback=False)
    assert (await client.ask("tools/list")).status == 401
    assert (await client.send(b"{")).status == 401
    read = McpClient(client.app, token=client.crib.tokens.create("reader", ["read"])[1])
    assert (await read.ask("tools/list")).status == 200
    refused = await read.call("add", {"first": 1, "second": 2})
    assert refused.status == 403
    assert 'scope="invoke"' in refused.headers["www-authenticate"]
    both = McpClient(client.app, token=client.crib.tokens.create("caller", ["read", "invoke"])[1])
    assert (await both.call("add", {"first": 1, "second": 2})).status == 200
    assert (await both.ask("tools/list", headers={"host": "evil.example"})).status == 421
    assert (await both.ask("tools/list", headers={"origin": "https://evil.example"})).status == 403


async def test_a_call_that_needs_a_person_gets_no_token_and_runs_once_when_it_was_approved(client_of, tmp_path):
    ran = []

    @tool(confirm=True)
    def delete_all() -> str:
        """Delete everything."""
        ran.append(1)
        return "gone"

    client = client_of(delete_all, project=tmp_path, approvals={"wait_seconds": 1})
    held = (await client.call("delete_all")).result
    error = held["_meta"]["toolcrib/error"]
    assert (held["isError"], error["type"]) == (True, "CONFIRMATION_REQUIRED")
    assert "confirmation" not in error["details"]
    assert f"crib approvals approve {error['details']['approval']}" in held["content"][0]["text"]
    calling = asyncio.create_task(client.call("delete_all"))
    client.crib.approvals.approve(error["details"]["approval"], by="a person")
    assert (await calling).result["content"][0]["text"] == "gone"
    assert (await client.call("delete_all")).result["isError"] is True
    assert ran == [1]
    assert {line["caller"] for line in client.crib.journal.read() if line["event"] == "call"} == {"mcp:local"}


async def test_a_caller_gets_no_more_questions_by_opening_more_sessions(client_of):
    asked = asyncio.Semaphore(0)
    refused = asyncio.Event()

    @tool
    async def ask(context: Context) -> str:
        """Ask."""
        asked.release()
        try:
            return str(await context.roots())
        except ToolError as problem:
            if problem.kind is Kind.OVERLOADED:
                refused.set()
            raise

    client = client_of(ask)
    calling = []
    for _ in range(4):
        session = await client.open()
        calling += [asyncio.create_task(session.call("ask")) for _ in range(11)]
    async with asyncio.timeout(25):
        for _ in calling:
            await asked.acquire()
        await refused.wait()
    for task in calling:
        task.cancel()
    await asyncio.wait(calling)


async def test_of_many_calls_that_need_a_person_only_some_wait(client_of, tmp_path):
    @tool(confirm=True)
    def delete_all() -> str:
        """Delete everything."""
        return "gone"

    client = client_of(delete_all, project=tmp_path, approvals={"wait_seconds": 600})
    calling = [asyncio.create_task(client.call("delete_all")) for _ in range(34)]
    done: set[asyncio.Task] = set()
    async with asyncio.timeout(25):
        while len(done) < 2:
            done, _ = await asyncio.wait(calling, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)
    answers = {task.result().result["_meta"]["toolcrib/error"]["type"] for task in done}
    assert (len(done), answers) == (2, {"CONFIRMATION_REQUIRED"})
    for task in calling:
        task.cancel()
    await asyncio.wait(calling)


async def test_a_question_to_the_user_hides_no_characters(client_of):
    @tool
    async def ask(context: Context) -> str:
        """Ask."""
        context.log("info", "a\u202eb")
        answer = await context.elicit("pay\u202e 001", {"type": "object", "properties": {}})
        return str(answer["action"])

    asked = (await client_of(ask).call("ask", _meta=meta(**{f"{META}logLevel": "info"}))).messages
    assert asked[0]["params"]["data"] == "a\\u202eb"
    [question] = asked[-1]["result"]["inputRequests"].values()
    assert question["params"]["message"] == "pay\\u202e 001"
