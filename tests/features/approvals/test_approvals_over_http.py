"""Approvals over HTTP: the scope that decides, the caller that cannot, and the stream of events."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from unittest.mock import ANY

import pytest

import app_lifespan
from app_lifespan import local_app
from toolcrib import Crib, tool
from toolcrib.client.remote_crib import RemoteCrib
from toolcrib.interfaces.http.server import serve


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Client:
    """Speaks ASGI to the application of a crib, with the token it is given."""

    def __init__(self, app) -> None:
        self.app = app

    async def ask(self, method, path, body=None, *, token=None, query=b"", confirmation=None):
        headers = [(b"host", b"127.0.0.1:8765")]
        headers += [] if body is None else [(b"content-type", b"application/json")]
        headers += [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
        headers += [] if confirmation is None else [(b"toolcrib-confirmation", confirmation.encode())]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": headers,
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
        }
        sent = [{"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}]
        heard = []

        async def receive():
            if sent:
                return sent.pop()
            await asyncio.Event().wait()
            return None

        async def send(message):
            heard.append(message)

        async with asyncio.timeout(25):
            await self.app(scope, receive, send)
        return heard[0]["status"], json.loads(b"".join(part.get("body", b"") for part in heard[1:]))


@pytest.fixture
async def crib(tmp_path):
    async with Crib(tmp_path, tools=[pay]) as opened:
        yield opened


@pytest.fixture
async def client(crib):
    app = local_app(crib)
    yield Client(app)
    await app_lifespan.end(app)


def token_of(crib, *scopes):
    return crib.tokens.create("someone", scopes)


async def call(client, token=None):
    return await client.ask("POST", "/call/pay", {"amount": 5}, token=token)


async def file(client, token=None) -> str:
    status, problem = await call(client, token)
    assert status == 409
    return problem["error"]["details"]["approval"]


async def test_a_person_with_a_token_approves_what_another_caller_asked_for(crib, client):
    approval_id = await file(client)
    _, approver = token_of(crib, "approve")
    status, listed = await client.ask("GET", "/approvals", token=approver)
    assert status == 200
    assert [found["id"] for found in listed["approvals"]] == [approval_id]
    status, shown = await client.ask("GET", f"/approvals/{approval_id}", token=approver)
    assert (shown["arguments"], shown["caller"]) == ({"amount": 5}, "local")
    status, decided = await client.ask("POST", f"/approvals/{approval_id}", {"decision": "approve"}, token=approver)
    assert (status, decided["state"]) == (200, "approved")
    status, result = await call(client)
    assert (status, result["value"]) == (200, "paid 5")


@pytest.mark.parametrize(("method", "path"), [("GET", "/approvals"), ("GET", "/approvals/x"), ("POST", "/approvals/x")])
async def test_neither_loopback_nor_another_scope_may_approve(crib, client, method, path):
    body = {"decision": "approve"} if method == "POST" else None
    status, problem = await client.ask(method, path, body)
    assert (status, problem["kind"]) == (403, "AUTH")
    assert "may not approve; ask the operator for a token that may" in problem["detail"]
    _, manager = token_of(crib, "read", "invoke", "manage")
    assert (await client.ask(method, path, body, token=manager))[0] == 403


async def test_the_token_that_called_cannot_approve_its_own_call(crib, client):
    _, both = token_of(crib, "invoke", "approve")
    approval_id = await file(client, both)
    status, problem = await client.ask("POST", f"/approvals/{approval_id}", {"decision": "approve"}, token=both)
    assert "cannot decide about it" in problem["detail"]
    assert status == 403
    assert crib.approvals.show(approval_id).state == "pending"


async def test_a_second_decision_is_a_conflict(crib, client):
    approval_id = await file(client)
    _, approver = token_of(crib, "approve")
    await client.ask("POST", f"/approvals/{approval_id}", {"decision": "refuse", "note": "no"}, token=approver)
    status, problem = await client.ask("POST", f"/approvals/{approval_id}", {"decision": "approve"}, token=approver)
    assert (status, "refused already" in problem["detail"]) == (409, True)
    status, refused = await call(client)
    assert refused["error"]["type"] == "BLOCKED"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "yes"},
        {"decision": None},
        {"decision": "approve", "by": "x"},
        {"decision": "approve", "note": "x" * 1001},
    ],
)
async def test_a_wrong_decision_changes_nothing(crib, client, body):
    approval_id = await file(client)
    _, approver = token_of(crib, "approve")
    assert (await client.ask("POST", f"/approvals/{approval_id}", body, token=approver))[0] == 400
    assert crib.approvals.show(approval_id).state == "pending"


async def test_an_unknown_approval_is_not_found(crib, client):
    _, approver = token_of(crib, "approve")
    for method, body in (("GET", None), ("POST", {"decision": "approve"})):
        assert (await client.ask(method, "/approvals/nothing", body, token=approver))[0] == 404


async def test_decided_ones_are_listed_on_request(crib, client):
    approval_id = await file(client)
    _, approver = token_of(crib, "approve")
    await client.ask("POST", f"/approvals/{approval_id}", {"decision": "refuse"}, token=approver)
    assert (await client.ask("GET", "/approvals", token=approver))[1]["approvals"] == []
    for query in (b"state=refused", b"state=all"):
        _, listed = await client.ask("GET", "/approvals", token=approver, query=query)
        assert [found["state"] for found in listed["approvals"]] == ["refused"]


@pytest.fixture
async def url(crib):
    """The address of a real server over the crib."""
    ready = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=ready.set_result))
    yield await asyncio.wait_for(ready, 60)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


async def test_a_remote_client_lists_shows_and_decides(crib, client, url):
    approval_id = await file(client)
    other_id = (await client.ask("POST", "/call/pay", {"amount": 6}))[1]["error"]["details"]["approval"]
    _, approver = token_of(crib, "approve", "read")

    def decide():
        with RemoteCrib(url, token=approver) as remote:
            assert {found.id for found in remote.approvals.list()} == {approval_id, other_id}
            assert remote.approvals.show(approval_id) == replace(crib.approvals.show(approval_id), created_at=ANY)
            assert remote.approvals.approve(approval_id, note="seen").state == "approved"
            assert remote.approvals.refuse(other_id).state == "refused"
            assert remote.approvals.list() == []
            assert len(remote.approvals.list(None)) == 2

    await asyncio.to_thread(decide)
    assert (await call(client))[1]["value"] == "paid 5"
    assert crib.approvals.show(approval_id).note == "seen"


async def test_events_tell_what_waits_and_what_was_decided(crib, client, url):
    approval_id = await file(client)
    _, approver = token_of(crib, "approve")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(
        f"GET /approvals/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {approver}\r\n\r\n".encode()
    )

    async def event() -> tuple[str, str]:
        name = data = ""
        while not data:
            line = (await asyncio.wait_for(reader.readline(), 60)).decode().strip()
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            data = line.removeprefix("data: ") if line.startswith("data: ") else ""
        return name, json.loads(data)["id"]

    assert await event() == ("pending", approval_id)
    crib.approvals.refuse(approval_id, by="ann")
    assert await event() == ("refused", approval_id)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_token_that_is_not_a_persons_cannot_confirm_its_own_call(tmp_path):
    async with Crib(tmp_path, tools=[pay]) as crib:
        client = Client(local_app(crib))
        _, agent = crib.tokens.create("agent", ("invoke",))
        _, person = crib.tokens.create("ann", ("invoke", "confirm"))
        body = {"amount": 5}
        for token in (None, person):
            _, refused = await client.ask("POST", "/call/pay", body, token=token)
            again = refused["error"]["details"]["confirmation"]
            assert (await client.ask("POST", "/call/pay", body, token=agent, confirmation=again))[0] == 409
            assert (await client.ask("POST", "/call/pay", body, token=token, confirmation=again))[1]["ok"] is True
        status, refused = await client.ask("POST", "/call/pay", body, token=agent)
        assert status == 409
        assert set(refused["error"]["details"]) & {"confirmation", "approval"} == {"approval"}
        assert "ask the operator to approve it" in refused["error"]["message"]


@tool(confirm=True)
def jot(text: str) -> str:
    """Jot\u3164 it down.

    Args:
        text: What\u202e to jot.
    """
    return text


async def test_what_a_person_reads_of_an_approval_hides_no_character_and_names_tool_arguments_and_asker(tmp_path):
    async with Crib(tmp_path, tools=[jot]) as crib:
        client = Client(local_app(crib))
        model, approver = token_of(crib, "invoke")[1], crib.tokens.create("ann", ["approve"])[1]
        _, refused = await client.ask("POST", "/call/jot", {"text": "a\u115f\u2067b\U000e0041"}, token=model)
        place = f"/approvals/{refused['error']['details']['approval']}"
        _, one = await client.ask("GET", place, token=approver)
        _, listed = await client.ask("GET", "/approvals", token=approver)
        _, decided = await client.ask("POST", place, {"decision": "refuse", "note": "\u202eno"}, token=approver)
        await app_lifespan.end(client.app)
    shown = {"text": "a\\u115f\\u2067b\\U000e0041"}
    assert [one["arguments"], listed["approvals"][0]["arguments"], decided["arguments"]] == [shown] * 3
    assert decided["note"] == "\\u202eno"
    assert one["about"] == {
        "title": "jot",
        "description": "Jot\\u3164 it down.",
        "sideEffects": "",
        "arguments": {"text": "What\\u202e to jot."},
        "asker": "someone",
    }
