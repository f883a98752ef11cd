"""The question for approval in the client itself: asked on both wires, an answer only where the operator says so, and hostile states."""

import base64
import json

import pytest
from tests.interfaces.mcp.conftest import McpClient, Stream

from toolcrib import tool
from toolcrib.interfaces.mcp import confirmation, parked

ran: list[int] = []


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay."""
    ran.append(amount)
    return f"paid {amount}"


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()


@pytest.fixture
def asking(client_of, tmp_path):
    """A client whose answers count as a person's."""
    return client_of(pay, project=tmp_path, approvals={"wait_seconds": 1, "elicitation": True})


def answers(asked: dict, action: str = "accept", **content: object) -> dict:
    [key] = asked["inputRequests"]
    return {key: {"action": action, **({"content": content} if content else {})}}


async def begin(client: McpClient, amount: int = 5) -> dict:
    asked = (await client.call("pay", {"amount": amount})).result
    assert asked["resultType"] == "input_required", asked
    return asked


async def go_on(client: McpClient, asked: dict, given: dict, amount: int = 5, **more):
    return await client.call(
        "pay", {"amount": amount}, requestState=asked["requestState"], inputResponses=given, **more
    )


async def test_the_stateless_wire_asks_shows_what_would_run_and_runs_once(asking):
    asked = await begin(asking)
    [question] = asked["inputRequests"].values()
    assert question["method"] == "elicitation/create"
    assert "host/pay@1.0.0" in question["params"]["message"]
    assert '{"amount":5}' in question["params"]["message"]
    done = (await go_on(asking, asked, answers(asked, approve=True))).result
    assert (done["content"][0]["text"], ran) == ("paid 5", [5])
    [approval] = asking.crib.approvals.list(None)
    assert (approval.state, approval.decided_by) == ("used", "user of mcp:local")


async def test_the_older_wire_asks_by_a_request_of_the_server(asking):
    session = await asking.open()
    async with Stream(session.ask, "tools/call", {"name": "pay", "arguments": {"amount": 7}}) as stream:
        question = await stream.next()
        assert question["method"] == "elicitation/create"
        await session.respond(question["id"], {"action": "accept", "content": {"approve": True}})
        answer = await stream.next()
    assert (answer["result"]["content"][0]["text"], ran) == ("paid 7", [7])


@pytest.mark.parametrize(("action", "content"), [("decline", {}), ("accept", {"approve": False})])
async def test_a_no_refuses_the_call_and_its_repetition(asking, action, content):
    asked = await begin(asking)
    refused = (await go_on(asking, asked, answers(asked, action, **content))).result
    assert refused["isError"] is True
    assert "user of mcp:local refused it" in refused["content"][0]["text"]
    again = (await asking.call("pay", {"amount": 5})).result
    assert ("refused it" in again["content"][0]["text"], ran) == (True, [])


async def test_no_answer_leaves_the_call_to_another_person(asking):
    asked = await begin(asking)
    held = (await go_on(asking, asked, answers(asked, "cancel"))).result
    [approval] = asking.crib.approvals.list()
    assert f"crib approvals approve {approval.id}" in held["content"][0]["text"]
    assert ran == []


async def test_without_the_setting_no_person_is_asked_and_the_answer_says_how_to_approve(client_of, tmp_path):
    client = client_of(pay, project=tmp_path, approvals={"wait_seconds": 1})
    for each in (client, await client.open()):
        held = (await each.call("pay", {"amount": 5})).result
        [approval] = client.crib.approvals.list()
        assert f"crib approvals approve {approval.id}" in held["content"][0]["text"]
    assert ran == []


async def test_a_client_that_cannot_ask_is_told_how_to_approve(asking):
    session = await asking.open(capabilities={})
    held = (await session.call("pay", {"amount": 5})).result
    assert "crib approvals approve" in held["content"][0]["text"]


async def test_arguments_that_cannot_be_read_at_a_glance_are_not_asked_for(asking, monkeypatch):
    monkeypatch.setattr(confirmation, "MAX_SHOWN_LETTERS", 5)
    held = (await asking.call("pay", {"amount": 5})).result
    assert "crib approvals approve" in held["content"][0]["text"]


async def test_an_answer_that_comes_before_the_question_answers_nothing(asking):
    asked = await begin(asking)
    [key] = asked["inputRequests"]
    [approval] = asking.crib.approvals.list()
    for guessed in (key, f"approval-{approval.id}", "elicitation-1"):
        given = {guessed: {"action": "accept", "content": {"approve": True}}}
        again = (await asking.call("pay", {"amount": 5}, inputResponses=given)).result
        assert again["resultType"] == "input_required"
    assert ran == []


async def test_a_state_is_good_once(asking):
    asked = await begin(asking)
    given = answers(asked, approve=True)
    assert (await go_on(asking, asked, given)).result["content"][0]["text"] == "paid 5"
    assert "used before" in (await go_on(asking, asked, given)).error["message"]
    assert ran == [5]


async def test_a_state_is_good_for_the_same_arguments_and_caller_alone(asking):
    asked = await begin(asking)
    given = answers(asked, approve=True)
    other = McpClient(asking.app, token=asking.crib.tokens.create("other", ["read", "invoke"])[1])
    for reply in (
        await go_on(asking, asked, given, amount=500),
        await go_on(other, asked, given),
        await asking.call("other", {"amount": 5}, requestState=asked["requestState"], inputResponses=given),
    ):
        assert reply.status == 400 or "error" in reply.last or reply.result.get("isError")
    assert ran == []
    assert (await go_on(asking, asked, given)).result["content"][0]["text"] == "paid 5"


async def test_an_altered_or_made_up_state_is_refused(asking):
    asked = await begin(asking)
    state, given = asked["requestState"], answers(asked, approve=True)
    raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
    flipped = base64.urlsafe_b64encode(bytes([raw[0] ^ 1]) + raw[1:]).rstrip(b"=").decode()
    for forged in (flipped, state[:-1], state + "A", "", "x" * 5_000, json.dumps(["a"]), 5, [], {}):
        reply = await asking.call("pay", {"amount": 5}, requestState=forged, inputResponses=given)
        assert "requestState" in reply.error["message"], forged
    assert ran == []


async def test_a_state_expires(asking, monkeypatch):
    monkeypatch.setattr(parked, "PARKED_SECONDS", -1.0)
    asked = await begin(asking)
    reply = await go_on(asking, asked, answers(asked, approve=True))
    assert "requestState" in reply.error["message"]
    assert ran == []


async def test_a_decision_of_another_person_counts_while_the_client_asks(asking):
    asked = await begin(asking)
    [approval] = asking.crib.approvals.list()
    asking.crib.approvals.refuse(approval.id, by="ann")
    refused = (await go_on(asking, asked, answers(asked, approve=True))).result
    assert ("ann refused it" in refused["content"][0]["text"], ran) == (True, [])
