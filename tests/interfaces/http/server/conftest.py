"""A small application behind the real server, and clients that speak bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import pytest

from toolcrib import ToolError
from toolcrib.interfaces.http.server import serve_app
from toolcrib.interfaces.http.server_state import Service
from toolcrib.interfaces.http.settings import ServerSettings

SECONDS = 20
HEAD = b"Host: localhost\r\n"


class Sample:
    """An application that echoes, waits, streams and calls: what the server does to it is what the tests look at."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.go_on = asyncio.Event()
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        self.seen: list[dict] = []
        self.ended: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, scope, receive, send) -> None:
        assert scope["type"] in ("http", "lifespan")
        if scope["type"] == "lifespan":
            return
        self.seen.append(scope)
        path = scope["path"]
        scope["toolcrib.route"] = path
        self.arrived.put_nowait(path)
        try:
            await getattr(self, path.strip("/").split("/")[0] or "echo")(receive, send)
        except ToolError as problem:
            await answer(
                send, getattr(problem, "status", 429), problem.message.encode(), getattr(problem, "headers", ())
            )
        finally:
            self.ended.put_nowait(path)

    async def echo(self, receive, send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        await answer(send, 200, body)

    async def early(self, receive, send) -> None:
        await answer(send, 401, b"no")

    async def wait(self, receive, send) -> None:
        await receive()
        await self.go_on.wait()
        await answer(send, 200, b"done")

    async def call(self, receive, send) -> None:
        async with self.service.admission:
            await self.go_on.wait()
        await answer(send, 200, b"called")

    async def endless(self, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.go_on.is_set():
            await asyncio.wait_for(_one(send), SECONDS)
            await asyncio.sleep(0)

    async def large(self, receive, send) -> None:
        await answer(send, 200, b"x" * 40_000_000)

    async def pieces(self, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": b"two", "more_body": False})

    async def listen(self, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await receive()
        await send({"type": "http.response.body", "body": b"two", "more_body": False})

    async def stay(self, receive, send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def split(self, receive, send) -> None:
        await answer(send, 200, b"", [(b"x", b"a\r\ninjected: yes")])

    async def long(self, receive, send) -> None:
        await self._announce(send, b"2", b"injected")

    async def short(self, receive, send) -> None:
        await self._announce(send, b"200", b"injected")

    async def _announce(self, send, length: bytes, body: bytes) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    async def broken(self, receive, send) -> None:
        raise RuntimeError("on purpose")


async def _one(send) -> None:
    await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})


async def answer(send, status: int, body: bytes, headers=()) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(self.reader.read(), SECONDS)
        return b""

    async def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        """The next answer, whose length is announced."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), SECONDS)
        first, *lines = head[:-4].split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines)
        body = await asyncio.wait_for(self.reader.readexactly(int(headers.get(b"content-length", b"0"))), SECONDS)
        return int(first.split()[1]), headers, body

    async def ask(self, method: str, path: str, body: bytes = b"", head: bytes = HEAD) -> tuple[int, dict, bytes]:
        await self.send(
            f"{method} {path} HTTP/1.1\r\n".encode() + head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        return await self.answer()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@dataclass
class Served:
    """The running server."""

    app: Sample
    service: Service
    port: int
    task: asyncio.Task
    said: list[str]
    clients: list[Client] = field(default_factory=list)

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        self.clients.append(Client(reader, writer))
        return self.clients[-1]

    async def exchange(self, *pieces: bytes) -> bytes:
        """What a fresh connection hears until it is closed."""
        client = await self.connect()
        with contextlib.suppress(ConnectionError):
            await client.send(*pieces)
        return await client.rest()

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(SECONDS * 200):
            if holds():
                return
            await asyncio.sleep(0.005)
        pytest.fail("it never came to that")

    async def end(self) -> None:
        for client in self.clients:
            await client.close()
        self.app.go_on.set()
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(self.task, SECONDS)


@pytest.fixture
async def serving() -> AsyncIterator[Callable]:
    """Start a server with settings of its own; it is ended afterwards."""
    running: list[Served] = []

    async def start(server: Mapping[str, int] | None = None) -> Served:
        # Parts of a second, which an operator cannot write.
        chosen = ServerSettings.of({"drain_seconds": 1, **(server or {})})
        service = Service(chosen)
        app = Sample(service)
        said: list[str] = []
        url = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(
            serve_app(app, chosen, service, host="127.0.0.1", port=0, say=said.append, ready=url.set_result)
        )
        await asyncio.wait_for(asyncio.wait({task, url}, return_when=asyncio.FIRST_COMPLETED), SECONDS)
        if task.done():
            task.result()
        running.append(Served(app, service, int(url.result().rpartition(":")[2]), task, said))
        return running[-1]

    yield start
    for served in running:
        await served.end()
