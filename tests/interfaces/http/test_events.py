"""Server-sent events over a real connection: every event once and in order, and an orderly end in every case."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tool_requests import queue_of
from toolcrib import Crib
from toolcrib.interfaces.http.server import serve
from toolcrib.toolkit.http import event_stream

SECONDS = 20
WANTED = {
    "name": "word_counter",
    "description": "Count the words of a text",
    "inputs": [{"name": "text", "type": "string", "description": "What to count in", "required": True}],
}


@dataclass
class Listener:
    """One connection that follows a request; what it hears, taken out of its chunks."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0
    version: str = "1.1"

    async def ask(self, path: str, *, method: str = "GET", headers: str = "") -> None:
        self.writer.write(f"{method} {path} HTTP/{self.version}\r\nHost: localhost\r\n{headers}\r\n".encode())
        head = (await self.within(self.reader.readuntil(b"\r\n\r\n"))).decode()
        first, *lines = head.strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}

    async def piece(self) -> str | None:
        """The next thing that the server says; None behind the last."""
        size = int(await self.within(self.reader.readline()), 16)
        data = await self.within(self.reader.readexactly(size + 2))
        return data[:-2].decode() if size else None

    async def event(self) -> dict:
        """The next event, with its fields."""
        piece = await self.piece()
        while piece is not None and (piece.startswith((":", "retry:"))):
            piece = await self.piece()
        assert piece is not None, "the stream ended"
        assert piece.endswith("\n\n")
        found = dict(line.split(": ", 1) for line in piece.strip().split("\n"))
        return {**found, "data": json.loads(found["data"])}

    async def until_end(self) -> tuple[list[dict], bool]:
        """Every step, and whether the stream said that it is over."""
        steps: list[dict] = []
        while (piece := await self.piece()) is not None:
            if piece.startswith("event: step\n"):
                steps.append(json.loads(piece.split("data: ")[1]))
            elif piece.startswith("event: end\n"):
                assert await self.piece() is None
                return steps, True
        return steps, False

    async def body(self) -> dict:
        return json.loads(await self.within(self.reader.readexactly(int(self.headers["content-length"]))))

    async def within(self, work):
        return await asyncio.wait_for(work, SECONDS)

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@dataclass
class Post:
    """A server over a project with one request, and a builder on the other side of its queue."""

    crib: Crib
    queue: Any
    request_id: str
    port: int
    task: asyncio.Task
    listeners: list[Listener] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/requests/{self.request_id}/events"

    async def connect(self, *, version: str = "1.1", room: int = 0) -> Listener:
        connection = socket.socket()
        if room:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=room or 2**20)
        self.listeners.append(Listener(reader, writer, version=version))
        return self.listeners[-1]

    async def listen(self, *, headers: str = "", **more) -> Listener:
        listener = await self.connect(**more)
        await listener.ask(self.path, headers=headers)
        return listener

    def claim(self):
        return self.queue.claim("somebody", 60.0)

    async def end(self) -> None:
        for listener in self.listeners:
            await listener.close()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(self.task, SECONDS)
        self.queue.close()
        await self.crib.close()


@pytest.fixture
async def posts(tmp_path):
    """Start servers with settings of their own, one after the other."""
    opened: list[Post] = []

    async def start(**settings) -> Post:
        crib = Crib(tmp_path, **settings)
        filed = crib.requests.new(WANTED).filed
        url = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=url.set_result))
        port = int((await asyncio.wait_for(url, SECONDS)).rpartition(":")[2])
        queue = queue_of(tmp_path)
        opened.append(Post(crib, queue, filed.id, port, task))
        return opened[-1]

    yield start
    for post in opened:
        await post.end()


@pytest.fixture
async def post(posts):
    return await posts()


async def test_every_event_is_told_once_and_in_order_until_it_is_over(post):
    listener = await post.listen()
    assert (listener.status, listener.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (listener.headers["cache-control"], listener.headers["transfer-encoding"]) == ("no-store", "chunked")
    assert listener.headers["x-accel-buffering"] == "no"
    assert await listener.piece() == "retry: 1000\n\n"
    first = await listener.event()
    assert (first["event"], first["id"], first["data"]["step"]) == ("step", "1", "filed")
    claim = post.claim()
    assert (await listener.event())["data"]["step"] == "building"
    post.queue.note(claim, "making", "a text\nof two lines\r\nand: a colon")
    said = await listener.event()
    assert (said["id"], said["data"]["text"]) == ("3", "a text\nof two lines\r\nand: a colon")
    post.queue.fail(claim, "it cannot be built")
    assert (await listener.event())["data"]["step"] == "failed"
    end = await listener.event()
    assert (end["event"], end["data"]["status"], end["data"]["error"]) == ("end", "failed", "it cannot be built")
    assert "id" not in end
    assert await listener.piece() is None


async def test_a_client_that_comes_again_misses_nothing_and_hears_nothing_twice(post):
    claim = post.claim()
    for number in range(20):
        post.queue.note(claim, "making", f"attempt {number}")
    heard, last = [], ""
    for count in (1, 3, 0, 7):
        listener = await post.listen(headers=last)
        for _ in range(count):
            event = await listener.event()
            heard.append(event["data"]["number"])
            last = f"Last-Event-ID: {event['id']}\r\n"
        await listener.close()
    post.queue.fail(claim, "no")
    steps, is_over = await (await post.listen(headers=last)).until_end()
    assert is_over
    assert [*heard, *(step["number"] for step in steps)] == list(range(1, 24))
    steps, is_over = await (await post.listen(headers="Last-Event-ID: 23\r\n")).until_end()
    assert (steps, is_over) == ([], True)


@pytest.mark.parametrize("last", ["", "-1", "x", "1e3", "٣", "9" * 30, "1, 2"])
async def test_a_number_that_is_none_is_refused(post, last):
    listener = await post.connect()
    await listener.ask(post.path, headers=f"Last-Event-ID: {last.encode().decode('latin-1')}\r\n")
    assert listener.status == 400
    assert "Last-Event-ID" in (await listener.body())["detail"]


async def test_two_numbers_are_refused_and_so_are_parameters(post):
    listener = await post.connect()
    await listener.ask(post.path, headers="Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n")
    assert (listener.status, await listener.body() is None) == (400, False)
    await listener.ask(f"{post.path}?after=1")
    assert listener.status == 400


async def test_who_hears_nothing_for_a_while_hears_that_the_server_is_there(post, monkeypatch):
    monkeypatch.setattr(event_stream, "KEEP_ALIVE_SECONDS", 0.05)
    listener = await post.listen(headers="Last-Event-ID: 1\r\n")
    assert [await listener.piece() for _ in range(4)] == ["retry: 1000\n\n", *[": keep-alive\n\n"] * 3]


async def test_a_stream_ends_in_order_before_the_time_of_an_answer_is_up(posts):
    post = await posts(server={"total_seconds": 1})
    listener = await post.listen()
    steps, is_over = await listener.until_end()
    assert ([step["step"] for step in steps], is_over) == (["filed"], False)
    await listener.ask(f"/requests/{post.request_id}")
    assert (listener.status, (await listener.body())["id"]) == (200, post.request_id)


@pytest.mark.parametrize("path", ["events", "history?after=1&wait=30"])
async def test_a_client_that_announces_a_body_and_sends_none_is_told_so(posts, caplog, path):
    post = await posts(server={"body_seconds": 1})
    listener = await post.connect()
    await listener.ask(f"/requests/{post.request_id}/{path}", headers="Content-Length: 9\r\n")
    assert (listener.status, "the body did not arrive" in (await listener.body())["detail"]) == (408, True)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_head_says_what_a_stream_would_be_and_leaves_the_connection_in_order(post):
    listener = await post.connect()
    await listener.ask(post.path, method="HEAD")
    assert (listener.status, listener.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "content-length" not in listener.headers
    await listener.ask(f"/requests/{post.request_id}")
    assert (await listener.body())["id"] == post.request_id


async def test_a_client_of_the_old_protocol_hears_a_stream_that_ends_with_the_connection(post):
    post.queue.fail(post.claim(), "no")
    listener = await post.listen(version="1.0")
    assert "transfer-encoding" not in listener.headers
    assert listener.headers["connection"] == "close"
    told = (await listener.within(listener.reader.read())).decode()
    assert [line for line in told.split("\n") if line.startswith("event")] == [*["event: step"] * 3, "event: end"]


async def test_so_many_listen_at_once_and_who_leaves_makes_room(post, monkeypatch):
    monkeypatch.setattr(event_stream, "MAX_LISTENERS", 2)
    first, second = await post.listen(), await post.listen()
    refused = await post.listen()
    assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    assert (await refused.body())["kind"] == "OVERLOADED"
    await first.close()
    async with asyncio.timeout(SECONDS):
        while (await post.listen()).status == 429:
            pass
    assert (await second.event())["data"]["step"] == "filed"


async def test_a_client_that_never_reads_is_dropped_without_disturbing_others(posts):
    post = await posts(server={"body_seconds": 1})
    claim = post.claim()
    deaf, hearing = await post.listen(room=4_096), await post.listen()
    heard = 0
    # More than any system keeps for a connection, in portions that a history holds.
    while heard < 1_500:
        for _ in range(150):
            post.queue.note(claim, "making", "x" * 4_000)
            heard += 1
        while (await hearing.event())["data"]["number"] < heard + 2:
            pass
    async with asyncio.timeout(SECONDS):
        while "\ntoolcrib_http_requests_in_flight 3\n" in await metrics_of(post):
            pass
    post.queue.fail(claim, "no")
    assert (await hearing.until_end())[1]
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await deaf.until_end()


async def metrics_of(post):
    probe = await post.connect()
    await probe.ask("/metrics")
    text = await probe.within(probe.reader.readexactly(int(probe.headers["content-length"])))
    await probe.close()
    return text.decode()


async def test_a_server_that_ends_ends_its_streams_at_once_and_in_order(posts):
    post = await posts(server={"drain_seconds": 60})
    listener = await post.listen(headers="Last-Event-ID: 1\r\n")
    waiting = await post.connect()
    asked = asyncio.create_task(waiting.ask(f"/requests/{post.request_id}/history?after=1&wait=30"))
    assert await listener.piece() == "retry: 1000\n\n"
    os.kill(os.getpid(), signal.SIGTERM)
    assert await listener.piece() is None
    await asked
    assert (waiting.status, await waiting.body()) == (200, {"status": "pending", "history": []})
    assert await asyncio.wait_for(post.task, SECONDS) == 0


async def test_a_queue_that_is_closed_ends_a_stream_without_saying_that_it_is_over(post):
    listener = await post.listen()
    assert (await listener.event())["data"]["step"] == "filed"
    post.crib.requests.close()
    assert await listener.until_end() == ([], False)
