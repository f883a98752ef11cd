"""Calls of one client share a session: budgets and rules about sessions hold for them, and an ended session ends everywhere."""

from typing import ClassVar

import pytest
from tests.interfaces.mcp.conftest import McpClient

from app_lifespan import local_app
from toolcrib import ALLOW, tool
from toolcrib.interfaces.mcp import seals
from toolcrib.interfaces.mcp.client_link import Peer
from toolcrib.interfaces.mcp.conversations import IDLE_SECONDS, Conversations
from toolcrib.interfaces.mcp.versions import STATELESS


@tool
def add(first: int, second: int) -> int:
    """Add."""
    return first + second


@tool(requires=["fs.read"])
def read_diary() -> str:
    """Read private data."""
    return "dear diary"


@tool(requires=["net.http"])
def post(text: str = "") -> str:
    """Send something."""
    return "sent"


ARGUMENTS = {"first": 1, "second": 2}


async def test_a_budget_holds_for_a_caller_of_the_stateless_wire(client_of):
    client = client_of(add, mcp={"max_calls": 2})
    results = [(await client.call("add", ARGUMENTS)).result for _ in range(3)]
    assert [result.get("isError", False) for result in results] == [False, False, True]
    assert results[2]["_meta"]["toolcrib/error"]["type"] == "BUDGET_EXCEEDED"


async def test_a_budget_holds_for_each_session_of_the_older_wire(client_of):
    client = client_of(add, mcp={"max_calls": 1})
    first, second = await client.open(), await client.open()
    found = [(await each.call("add", ARGUMENTS)).result.get("isError", False) for each in (first, first, second)]
    assert found == [False, True, False]


async def test_one_caller_does_not_use_up_the_budget_of_another(client_of, tmp_path):
    client = client_of(add, project=tmp_path, mcp={"max_calls": 1})
    other = McpClient(client.app, token=client.crib.tokens.create("other", ["read", "invoke"])[1])
    assert [(await each.call("add", ARGUMENTS)).result.get("isError", False) for each in (client, other, client)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_client_that_has_private_data_sends_nothing_unasked(client_of, is_old, monkeypatch):
    client = client_of(read_diary, post, safety_rules={"private": ["read_diary"]}, grants={"*": ["fs.*", "net.*"]})
    monkeypatch.setitem(client.crib.settings["approvals"].__dict__, "wait_seconds", 0)
    used = await client.open() if is_old else client
    assert (await used.call("post")).result["content"][0]["text"] == "sent"
    assert (await used.call("read_diary")).result["content"][0]["text"] == "dear diary"
    refused = (await used.call("post")).result
    assert refused["isError"] is True
    assert "host/read-diary@1.0.0 has private data" in refused["content"][0]["text"]


async def test_a_rule_of_the_host_program_sees_the_session(client_of):
    class Watch:
        name = "watch"
        seen: ClassVar[list] = []

        def __call__(self, tool, call):
            self.seen.append(call.session)
            return ALLOW

    client = client_of(add)
    client.crib.add_rule(Watch())
    await client.call("add", ARGUMENTS)
    await client.call("add", ARGUMENTS)
    assert Watch.seen[0] is not None
    assert {id(session) for session in Watch.seen} == {id(Watch.seen[0])}


async def test_a_conversation_ends_after_an_hour_without_a_call(client_of):
    now = [0.0]
    crib = client_of(add, mcp={"max_calls": 1}).crib
    conversations = Conversations(crib, clock=lambda: now[0])
    peer = Peer(caller="ann", wire=STATELESS)
    first = conversations.session(peer, None)
    now[0] += IDLE_SECONDS
    assert conversations.session(peer, None) is first
    now[0] += IDLE_SECONDS + 1
    assert conversations.session(peer, None) is not first


async def test_a_session_that_another_process_ended_is_not_found_any_more(client_of, tmp_path, monkeypatch):
    monkeypatch.setattr(seals, "LOOK_SECONDS", 0.0)
    client = client_of(add, project=tmp_path)
    session = await client.open()
    other = McpClient(local_app(client.crib), session=session.session, version=session.version)
    assert (await other.ask("ping")).result == {}
    assert (await session.send(b"", method="DELETE")).status == 204
    assert [(await each.ask("ping")).status for each in (session, other)] == [404, 404]
