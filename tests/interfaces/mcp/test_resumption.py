"""Streams of the older wire that are cut off: what a client gets when it comes back, and what ends when it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.interfaces.mcp.conftest import McpClient, Stream

from toolcrib import Context, tool
from toolcrib.interfaces.mcp import http_transport, resumption, subscriptions


class Work:
    """A tool that tells something, waits until it may go on, and knows how it ended."""

    def __init__(self, name: str = "work", last: tuple[str, ...] = ("second",)) -> None:
        self.name = name
        self.last = last
        self.may_go_on = asyncio.Event()
        self.ended = asyncio.Event()
        self.was_cancelled = False

    @property
    def tool(self) -> Any:
        @tool(name=self.name)
        async def work(context: Context, says: str = "first") -> str:
            """Work."""
            try:
                if says:
                    context.log("info", says)
                await self.may_go_on.wait()
                for text in self.last:
                    context.log("info", text)
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
            finally:
                self.ended.set()
            return "done"

        return work


def working(session: McpClient, request_id: object = 7, **arguments: object) -> Stream:
    params = {"name": "work", "arguments": arguments}
    return Stream(session.ask, "tools/call", params, request_id=request_id)


def resuming(session: McpClient, event_id: str) -> Stream:
    return Stream(session.send, b"", method="GET", headers={"last-event-id": event_id})


async def until_begun(stream: Stream) -> None:
    async with asyncio.timeout(25):
        while not stream.ids:  # noqa: ASYNC110 - the events come from the server
            await asyncio.sleep(0.01)


async def cut_off(session: McpClient, **arguments: object) -> Stream:
    """A call whose client is gone after the first message."""
    async with working(session, **arguments) as stream:
        await stream.next()
    return stream


async def test_a_client_that_comes_back_gets_what_it_missed(client_of):
    work = Work()
    session = await client_of(work.tool).open()
    stream = await cut_off(session)
    assert stream.raw.startswith(f"id: {stream.ids[0]}\nretry: 1000\ndata: \n\n".encode())
    assert len(stream.ids) == 2
    work.may_go_on.set()
    await asyncio.wait_for(work.ended.wait(), 25)
    async with resuming(session, stream.ids[-1]) as rest:
        second, answer = await rest.next(), await rest.next()
    assert second["params"]["data"] == "second"
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "done")
    # What a client may have lost last is there for a while, also twice.
    async with resuming(session, stream.ids[0]) as again:
        assert [(await again.next()).get("method") for _ in range(3)] == ["notifications/message"] * 2 + [None]
    assert not work.was_cancelled


async def test_a_stream_that_is_resumed_while_it_runs_goes_on_there(client_of):
    work = Work()
    session = await client_of(work.tool).open()
    async with working(session) as first:
        await first.next()
        async with resuming(session, first.ids[0]) as second:
            assert (await second.next())["params"]["data"] == "first"
            work.may_go_on.set()
            assert (await second.next())["params"]["data"] == "second"
            assert (await second.next())["id"] == 7
    assert first.is_quiet


async def test_a_silent_call_gets_a_stream_to_come_back_to_when_it_takes_long(client_of, monkeypatch):
    monkeypatch.setattr(http_transport, "BEGIN_SECONDS", 0.05)
    work = Work()
    session = await client_of(work.tool).open()
    async with working(session, says="") as stream:
        await until_begun(stream)
    work.may_go_on.set()
    async with resuming(session, stream.ids[0]) as rest:
        assert (await rest.next())["params"]["data"] == "second"
        assert (await rest.next())["result"]["content"][0]["text"] == "done"


async def test_work_whose_client_does_not_come_back_is_ended(client_of, monkeypatch):
    monkeypatch.setattr(resumption, "RESUME_SECONDS", 0.05)
    work = Work()
    session = await client_of(work.tool).open()
    stream = await cut_off(session)
    await asyncio.wait_for(work.ended.wait(), 25)
    assert work.was_cancelled
    async with resuming(session, stream.ids[0]) as late:
        answer = await late.next()
    assert (answer["id"], answer["error"]["message"]) == (
        7,
        "the stream of this request is gone; make the request again",
    )


async def test_a_caller_has_so_many_streams_that_wait_for_it(client_of):
    works = [Work(f"work{place}") for place in range(resumption.MAX_LEFT_BY_CALLER + 1)]
    client = client_of(*(work.tool for work in works))
    session = await client.open()
    for place in range(len(works)):
        async with Stream(session.ask, "tools/call", {"name": f"work{place}", "arguments": {}}) as stream:
            await stream.next()
    await asyncio.wait_for(works[0].ended.wait(), 25)
    assert [work.was_cancelled for work in works] == [True] + [False] * (len(works) - 1)


@pytest.mark.parametrize("how", ["altered", "another session", "ended session"])
async def test_another_caller_cannot_resume_a_stream(client_of, how):
    work = Work()
    client = client_of(work.tool)
    session, other = await client.open(), await client.open()
    stream = await cut_off(session)
    event_id, asking = stream.ids[0], session
    if how == "altered":
        event_id = event_id.replace("-0", "-9")
    elif how == "another session":
        asking = other
    else:
        assert (await session.send(b"", method="DELETE")).status == 204
        await asyncio.wait_for(work.ended.wait(), 25)
        assert (await session.send(b"", method="GET", headers={"last-event-id": event_id})).status == 404
        return
    async with resuming(asking, event_id) as foreign:
        answer = await foreign.next()
    assert (answer["id"], "result" in answer) == (7, False)


async def test_changes_that_were_missed_are_told(client_of, monkeypatch):
    monkeypatch.setattr(subscriptions, "LOOK_SECONDS", 0.01)
    client = client_of(Work().tool)
    session = await client.open()
    async with Stream(session.send, b"", method="GET") as stream:
        await until_begun(stream)
        client.crib.add(tool(name="second")(lambda: ""))
        assert (await stream.next())["method"] == "notifications/tools/list_changed"
    async with resuming(session, stream.ids[0]) as again:
        assert (await again.next())["method"] == "notifications/tools/list_changed"
    # The server may have started anew, and knows nothing of the stream: everything may have changed.
    async with resuming(session, "changes.unknown-3") as unknown:
        heard = [(await unknown.next())["method"] for _ in range(3)]
    assert sorted(heard) == sorted(subscriptions.LISTS.values())


async def test_streams_that_wait_take_no_place_from_new_ones(client_of):
    session = await client_of(Work().tool).open()
    for _ in range(subscriptions.MAX_LISTENERS_IN_SESSION + 4):
        async with Stream(session.send, b"", method="GET") as stream:
            await until_begun(stream)


async def test_older_versions_get_no_empty_event(client_of):
    work = Work()
    session = await client_of(work.tool).open("2025-06-18")
    stream = await cut_off(session)
    assert b"retry" not in stream.raw
    work.may_go_on.set()
    async with resuming(session, stream.ids[-1]) as rest:
        assert (await rest.next())["params"]["data"] == "second"


async def test_events_are_kept_up_to_a_size(client_of, monkeypatch):
    monkeypatch.setattr(resumption, "MAX_EVENTS", 1)
    work = Work(last=("second", "third"))
    session = await client_of(work.tool).open()
    stream = await cut_off(session)
    work.may_go_on.set()
    await asyncio.wait_for(work.ended.wait(), 25)
    async with resuming(session, stream.ids[-1]) as rest:
        assert "error" in await rest.next()
