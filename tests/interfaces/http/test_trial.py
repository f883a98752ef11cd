"""A tool that is tried before it is stored: under all guards, and nothing is stored."""

from __future__ import annotations

import pytest

DOCUMENT = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Echo",
    "description": "Give back what it gets.",
    "type": "http",
    "isEnabled": True,
    "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://example.com/${city}"},
}


async def test_a_document_is_called_and_nothing_is_stored(make_world, stand_in):
    here = f"127.0.0.1:{stand_in.port}"
    world = make_world(http_tools={"hosts": [here]}, egress={"private": [here]})
    impl = {"urlTemplate": f"http://{here}/${{city}}", "extractExpr": "$.current.condition.text"}
    reply = await world.client.post("/crib/trial", {"document": {**DOCUMENT, "impl": impl}, "args": {"city": "Oslo"}})
    assert (reply.status, reply.json["value"]) == (200, "sunny")
    assert stand_in.asked == ["/Oslo"]
    assert world.files() == {}
    assert world.crib.find("trial") is None


async def test_arguments_of_a_trial_are_checked_as_those_of_a_stored_tool(world):
    reply = await world.client.post("/crib/trial", {"document": DOCUMENT, "args": {"city": 1}})
    assert reply.status == 400
    assert "city" in reply.json["detail"]


async def test_a_host_that_is_not_allowed_is_not_reached_by_a_trial(world):
    reply = await world.client.post("/crib/trial", {"document": DOCUMENT, "args": {"city": "Oslo"}})
    assert reply.json["error"]["type"] == "HOST_NOT_ALLOWED"


@pytest.mark.parametrize(
    "document",
    [
        None,
        1,
        [],
        "x",
        {},
        {**DOCUMENT, "type": "other"},
        {**DOCUMENT, "type": "go", "impl": {"goFunc": "echo"}},
        {**DOCUMENT, "isBuiltIn": True},
    ],
)
async def test_what_is_no_document_is_refused_with_the_reason(world, document):
    reply = await world.client.post("/crib/trial", {"document": document})
    assert reply.status == 400
    assert reply.json["detail"]


@pytest.mark.parametrize("scopes", [["read"], ["invoke"], ["manage"], ["read", "invoke"]])
async def test_a_trial_takes_a_token_that_may_manage_and_invoke(make_world, scopes):
    guarded = make_world(open_to_loopback=False)
    _, text = guarded.crib.tokens.create("someone", scopes)
    reply = await guarded.client.post(
        "/crib/trial", {"document": DOCUMENT}, headers={"authorization": f"Bearer {text}"}
    )
    assert reply.status in {401, 403}
    assert guarded.calls == []
