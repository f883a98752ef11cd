"""A call whose client accepts events gets progress and chunks before the result; a client that leaves ends the tool."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from toolcrib import Chunk, Context, Crib, Kind, Progress, tool
from toolcrib.client.remote_crib import RemoteCrib
from toolcrib.interfaces.http import call_endpoints
from toolcrib.interfaces.http.server import serve

SECONDS = 20
EVENTS = {"accept": "text/event-stream"}


async def letters(word: str, context: Context) -> AsyncIterator[str]:
    """The letters of a word."""
    for number, letter in enumerate(word):
        context.progress(number + 1, len(word), letter)
        yield letter


def add(first: int, second: int) -> int:
    """Add."""
    return first + second


@tool(confirm=True)
def confirmed() -> int:
    """Need a person."""
    return 1


def events_in(raw: bytes) -> list[tuple[str, dict]]:
    """The events of a body, and nothing else but comments."""
    found = []
    for block in raw.decode().split("\n\n"):
        if block.startswith("event: "):
            name, data = block.split("\n")
            found.append(
                (name.removeprefix("event: "), json.loads(data.removeprefix("data: "), parse_constant=pytest.fail))
            )
        else:
            assert not block or block.startswith(":"), block
    return found


@pytest.mark.spec("S1-92")
async def test_progress_and_chunks_come_before_the_result(make_world):
    world = make_world(letters)
    reply = await world.client.post("/call/letters", {"word": "ab"}, headers=EVENTS)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["x-accel-buffering"] == "no"
    *told, (last, result) = events_in(reply.raw)
    assert told == [
        ("progress", {"progress": 1, "total": 2, "message": "a"}),
        ("chunk", {"number": 1, "value": "a", "checked": False}),
        ("progress", {"progress": 2, "total": 2, "message": "b"}),
        ("chunk", {"number": 2, "value": "b", "checked": False}),
    ]
    plain = (await world.client.post("/call/letters", {"word": "ab"})).json
    assert (last, result.keys(), result["value"]) == ("result", plain.keys(), plain["value"])
    assert b"retry:" not in reply.raw


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize("suffix", ["/invoke", ""])
async def test_every_path_of_a_call_streams(make_world, suffix):
    async def count(context: Context, arguments: dict) -> AsyncIterator[int]:
        for number in range(2):
            yield number

    world = make_world(functions={"echo": count})
    await world.with_bundle()
    await world.with_tool()
    reply = await world.client.post(world.tool_path() + suffix, {"args": {}}, headers=EVENTS)
    assert [(name, data.get("value")) for name, data in events_in(reply.raw)] == [
        ("chunk", 0),
        ("chunk", 1),
        ("result", [0, 1]),
    ]
    missing = await world.client.post(world.tool_path("none") + suffix, {"args": {}}, headers=EVENTS)
    assert (missing.status, missing.json["kind"]) == (404, "NOT_FOUND")
    assert missing.json["detail"].startswith("there is no tool none@v1")


@pytest.mark.parametrize(
    ("path", "headers", "status", "kind"),
    [
        ("/call/letters", {}, 400, Kind.VALIDATION),
        ("/call/unknown", {}, 404, Kind.NOT_FOUND),
        ("/call/confirmed", {}, 409, Kind.CONFIRMATION_REQUIRED),
        ("/call/letters", {"Toolcrib-Session": "none"}, 409, Kind.SESSION_INACTIVE),
        ("/call/letters?nonsense=1", {}, 400, Kind.VALIDATION),
    ],
)
async def test_a_call_that_is_refused_keeps_its_status(make_world, path, headers, status, kind):
    reply = await make_world(letters, confirmed).client.post(path, {}, headers={**EVENTS, **headers})
    assert (reply.status, reply.json["kind"], reply.json["ok"]) == (status, kind, False)
    assert reply.headers["content-type"] == "application/problem+json"


async def test_a_tool_that_does_not_stream_answers_with_the_result_alone(make_world):
    world = make_world(add)
    reply = await world.client.post("/call/add", {"first": 1, "second": 2}, headers=EVENTS)
    [(name, result)] = events_in(reply.raw)
    assert (name, result["value"]) == ("result", 3)


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        ("text/event-stream", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0.9, application/json", False),
        ("text/event-stream;q=0", False),
        ("Text/Event-Stream; q=1", True),
        ("text/event-stream; q=nonsense", True),
        ("*/*", False),
        ("application/json", False),
    ],
)
async def test_a_client_gets_events_where_it_accepts_them_and_would_not_rather_have_json(make_world, accept, streams):
    body = {"first": 1, "second": 2}
    reply = await make_world(add).client.post("/call/add", body, headers={"accept": accept})
    assert reply.headers["content-type"].startswith("text/event-stream" if streams else "application/json")


async def test_the_description_of_the_api_says_so(make_world):
    document = (await make_world().client.get("/openapi.json")).json
    for path in ("/call/{name}", "/crib/trial", "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}/invoke"):
        operation = document["paths"][path]["post"]
        assert set(operation["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
        assert "`chunk` (number, value, checked" in operation["description"]


async def test_a_silent_tool_is_heard_to_be_there(make_world, monkeypatch):
    monkeypatch.setattr(call_endpoints, "BEGIN_SECONDS", 0.01)
    monkeypatch.setattr(call_endpoints, "SILENT_TURNS", 1)
    going = asyncio.Event()

    async def silent() -> int:
        """Say nothing for a while."""
        await going.wait()
        return 1

    world = make_world(silent)
    asyncio.get_running_loop().call_later(0.8, going.set)
    reply = await world.client.post("/call/silent", {}, headers=EVENTS)
    assert reply.raw.startswith(b": the call has begun\n\n: keep-alive\n\n")
    assert [name for name, _ in events_in(reply.raw)] == ["result"]


async def test_a_call_that_takes_longer_than_a_request_may_ends_with_its_result(make_world, monkeypatch):
    monkeypatch.setattr(call_endpoints, "SHARE_OF_TIME", 0.05)

    async def slow() -> AsyncIterator[int]:
        """Yield, and wait for ever."""
        yield 1
        await asyncio.Event().wait()

    reply = await make_world(slow, server={"total_seconds": 1}).client.post("/call/slow", {}, headers=EVENTS)
    assert [name for name, _ in events_in(reply.raw)] == ["chunk", "result"]
    assert events_in(reply.raw)[-1][1]["error"]["type"] == Kind.TIMEOUT


@asynccontextmanager
async def server_of(*tools, **settings) -> AsyncIterator[tuple[Crib, int]]:
    """A server on loopback, and its port."""
    async with Crib(tools=tools, **settings) as crib:
        url = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=url.set_result))
        try:
            yield crib, int((await asyncio.wait_for(url, SECONDS)).rpartition(":")[2])
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, SECONDS)


def ask_for(name: str) -> bytes:
    head = f"POST /call/{name} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    return f"{head}Content-Length: 0\r\n\r\n".encode()


@pytest.mark.spec("S1-92")
async def test_a_client_that_leaves_in_the_middle_ends_the_tool():
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        """Count for ever."""
        try:
            number = 0
            while True:
                number += 1
                yield number
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with asyncio.timeout(SECONDS), server_of(endless) as (crib, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ask_for("endless"))
        await reader.readuntil(b"event: chunk")
        writer.close()
        await ended.wait()
        lines = [line for line in crib.journal.read() if line["event"] == "call"]
        assert lines == [] or lines[0]["error"] == Kind.CANCELLED


async def test_a_call_that_is_over_when_its_client_leaves_is_counted_by_its_outcome(make_world):
    world = make_world(add)
    messages = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive():
        return messages.pop() if messages else {"type": "http.disconnect"}

    await world.client.post("/call/unheard_of", {}, receive=receive, headers=EVENTS)
    metrics = (await world.client.get("/metrics")).raw.decode()
    # The name of a tool that does not exist would be one more series for each name that a client makes up.
    assert 'toolcrib_calls_total{tool="(unknown)",outcome="NOT_FOUND"} 1' in metrics
    assert "unheard_of" not in metrics


@pytest.mark.parametrize("key", ["text", ("a", "tuple")])
async def test_a_log_message_without_a_json_form_does_not_cost_the_result(make_world, key):
    @tool
    def say_odd(context: Context) -> str:
        """Log something."""
        context.log("info", {key: 2**70, "rate": math.nan})
        return "done"

    world = make_world(say_odd)
    reply = await world.client.post("/call/say_odd", {}, headers=EVENTS)
    (_, said), (_, result) = events_in(reply.raw)
    assert (said["data"], result["value"]) == ({str(key): 2**70, "rate": None}, "done")


async def test_a_client_that_never_reads_slows_the_tool_down_and_holds_little():
    yielded = 0

    async def flood() -> AsyncIterator[str]:
        """Yield as much as it can."""
        nonlocal yielded
        while True:
            yielded += 1
            yield "x" * 10_000

    async with asyncio.timeout(SECONDS), server_of(flood, server={"body_seconds": 1}) as (_, port):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, ("127.0.0.1", port))
        await loop.sock_sendall(connection, ask_for("flood"))
        # The server gives up on a client that does not read; until then the tool has waited.
        before = -1
        while before != yielded or not yielded:
            before = yielded
            await asyncio.sleep(0.1)
        assert yielded < 2_000
        connection.close()


async def test_a_remote_crib_hears_the_same_events():
    async with asyncio.timeout(SECONDS), server_of(letters, add) as (_, port):
        remote = Crib.connect(f"http://127.0.0.1:{port}")
        events = [event async for event in remote.stream("letters", word="ab")]
        assert events[:-1] == [
            Progress(progress=1, total=2, message="a"),
            Chunk(number=1, value="a"),
            Progress(progress=2, total=2, message="b"),
            Chunk(number=2, value="b"),
        ]
        assert events[-1].value == ["a", "b"]
        [refused] = [event async for event in remote.stream("letters", word=1)]
        assert (refused.error.kind, refused.refused) == (Kind.VALIDATION, True)
        [plain] = [event async for event in remote.stream("add", first=1, second=2)]
        assert plain.value == 3
        await remote.close()


async def test_to_close_the_stream_of_a_remote_crib_ends_the_tool_there():
    ended = threading.Event()

    async def endless() -> AsyncIterator[int]:
        """Count for ever."""
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            ended.set()

    def read_one(port: int) -> object:
        with RemoteCrib(f"http://127.0.0.1:{port}") as remote:
            events = remote.stream_sync("endless")
            first = next(events)
            events.close()
            return first

    async with asyncio.timeout(SECONDS), server_of(endless) as (_, port):
        assert await asyncio.to_thread(read_one, port) == Chunk(number=1, value=1)
        assert await asyncio.to_thread(ended.wait, SECONDS)
