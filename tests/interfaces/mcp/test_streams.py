"""Streams over HTTP: changes that clients hear of, and what ends with the server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.interfaces.mcp.conftest import META, McpClient, Stream, meta
from tests.interfaces.mcp.test_resumption import until_begun

from toolcrib import Context, prompt, resource, tool
from toolcrib.features.access.view import make_view
from toolcrib.interfaces.http.app import make_app
from toolcrib.interfaces.http.server_state import Service
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.interfaces.mcp import subscriptions
from toolcrib.interfaces.mcp.client_link import Peer
from toolcrib.interfaces.mcp.versions import STATELESS


@tool
def first() -> str:
    """Be there first."""
    return "first"


@resource("notes://one")
def note(context) -> str:
    """A note."""
    return "one"


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "LOOK_SECONDS", 0.01)


def listening(client: McpClient, request_id: str = "s1", **wanted: object) -> Stream:
    """A subscription of a stateless client."""
    asked = {"notifications": wanted, "_meta": meta()}
    return Stream(client.ask, "subscriptions/listen", asked, request_id=request_id)


async def test_a_subscription_hears_what_it_asked_for_and_nothing_else(client_of):
    client = client_of(first)
    async with listening(client, toolsListChanged=True) as stream:
        acknowledged = await stream.next()
        client.crib.publications.add(prompt(name="new")(lambda _: "new"))
        client.crib.add(tool(name="second")(lambda: "second"))
        changed = await stream.next()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"] == acknowledged["params"]["_meta"] == {f"{META}subscriptionId": "s1"}
    assert stream.is_quiet


async def test_a_watched_resource_is_told_of_and_another_is_not(client_of):
    client = client_of(first)
    client.crib.publications.add(note)
    async with listening(client, resourceSubscriptions=["notes://one"]) as stream:
        acknowledged = await stream.next()
        client.crib.publications.tell_changed("notes://two")
        client.crib.publications.tell_changed("notes://one")
        updated = await stream.next()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": ["notes://one"]}
    assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", "notes://one")
    assert stream.is_quiet


async def test_a_session_hears_of_every_changed_list_on_its_own_stream(client_of):
    client = client_of(first)
    session = await client.open()
    # The stateless one is acknowledged once changes are looked for, so that the other cannot miss one.
    async with listening(client, toolsListChanged=True) as other:
        await other.next()
        async with Stream(session.send, b"", method="GET") as stream:
            client.crib.add(tool(name="second")(lambda: "second"))
            heard = {(await stream.next())["method"], (await stream.next())["method"]}
    assert heard == {"notifications/tools/list_changed", "notifications/resources/list_changed"}


async def test_streams_of_one_caller_are_bounded(client_of):
    client = client_of(first, mcp={"streams": 3})
    async with AsyncExitStack() as stack:
        for number in range(3):
            stream = await stack.enter_async_context(listening(client, f"s{number}", toolsListChanged=True))
            await stream.next()
        refused = await client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert refused.status == 429
    async with listening(client, toolsListChanged=True) as stream:
        assert (await stream.next())["method"] == "notifications/subscriptions/acknowledged"


async def test_streams_of_one_session_are_bounded_and_those_of_another_are_not_touched(client_of):
    client = client_of(first)
    session = await client.open()
    async with AsyncExitStack() as stack:
        for _ in range(subscriptions.MAX_LISTENERS_IN_SESSION):
            await until_begun(await stack.enter_async_context(Stream(session.send, b"", method="GET")))
        refused = await session.send(b"", method="GET")
        assert (refused.status, "4 streams of one session" in refused.error["message"]) == (429, True)
        other = await client.open()
        assert (await other.send(b"", method="HEAD")).status == 200


async def test_an_unread_stream_takes_no_place(client_of):
    client = client_of(first)
    session = await client.open()
    statuses = {(await session.send(b"", method="HEAD")).status for _ in range(17)}
    assert statuses == {200}


async def test_a_client_that_goes_before_it_is_listened_for_takes_no_place(client_of):
    changes = subscriptions.Changes(client_of(first).crib, 16)
    for _ in range(17):
        listener = subscriptions.Listener(Peer(caller="ann", wire=STATELESS), lambda _: None, frozenset(), set())
        listening_for = asyncio.create_task(changes.add(listener))
        await asyncio.sleep(0)
        listening_for.cancel()
        await asyncio.wait({listening_for})
        assert listening_for.cancelled()


@pytest.mark.parametrize("wanted", [None, [], {"resourceSubscriptions": "x"}, {"resourceSubscriptions": [5]}])
async def test_a_subscription_to_what_is_none_is_refused(client_of, wanted):
    reply = await client_of(first).ask("subscriptions/listen", {"notifications": wanted})
    assert (reply.status, reply.error["code"]) == (400, -32602)


async def test_what_waits_for_an_answer_and_what_listens_ends_with_the_server(client_of):
    ended = asyncio.Event()

    @tool
    async def ask(context: Context) -> str:
        """Ask."""
        try:
            return str(await context.roots())
        finally:
            ended.set()

    crib = client_of(ask).crib
    service = Service(crib.settings.table(ServerSettings))
    client = McpClient(make_app(crib, open_to_loopback=True, service=service))
    assert (await client.call("ask")).result["resultType"] == "input_required"
    async with listening(client, toolsListChanged=True) as stream:
        await stream.next()
        service.ending.set()
        await asyncio.wait_for(ended.wait(), 25)
        last = await stream.next()
    assert (last["id"], last["result"]["_meta"][f"{META}subscriptionId"]) == ("s1", "s1")
    assert [line["error"] for line in crib.journal.read() if line["event"] == "call"] == ["CANCELLED"]


async def test_a_limited_client_hears_only_of_changes_of_tools_that_it_sees(client_of, tmp_path):
    client = client_of(first, project=tmp_path)
    view = make_view(tools=["first", "third"])
    limited = McpClient(client.app, token=client.crib.tokens.create("agent", ("read",), view=view)[1])
    async with (
        listening(client, "all", toolsListChanged=True) as everything,
        listening(limited, toolsListChanged=True) as stream,
    ):
        await everything.next()
        await stream.next()
        client.crib.add(tool(name="second")(lambda: "second"))
        await everything.next()
        assert stream.is_quiet
        client.crib.add(tool(name="third")(lambda: "third"))
        assert (await stream.next())["method"] == "notifications/tools/list_changed"


async def test_a_limited_client_hears_only_of_resources_and_prompts_that_it_sees(client_of, tmp_path):
    client = client_of(first, project=tmp_path)
    publications = client.crib.publications
    publications.add(note)
    publications.add(resource("notes://two", name="two")(lambda _: "two"))
    view = make_view(tools=["first", "two", "loud"])
    limited = McpClient(client.app, token=client.crib.tokens.create("agent", ("read",), view=view)[1])
    wanted = {"promptsListChanged": True, "resourceSubscriptions": ["notes://one", "notes://two"]}
    async with listening(client, "all", **wanted) as everything, listening(limited, **wanted) as stream:
        await everything.next()
        await stream.next()
        publications.add(prompt(name="quiet")(lambda _: "quiet"))
        await everything.next()
        publications.tell_changed("notes://one")
        await everything.next()
        assert stream.is_quiet
        publications.add(prompt(name="loud")(lambda _: "loud"))
        assert (await stream.next())["method"] == "notifications/prompts/list_changed"
        publications.tell_changed("notes://two")
        assert (await stream.next())["params"]["uri"] == "notes://two"
    assert stream.is_quiet
