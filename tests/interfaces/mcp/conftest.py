"""Cribs behind the protocol, and clients that speak it in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

import app_lifespan
from toolcrib import Crib
from toolcrib.interfaces.http.app import App, make_app

NEW = "2026-07-28"
OLD = "2025-11-25"
META = "io.modelcontextprotocol/"
EVERYTHING: dict[str, dict] = {"elicitation": {}, "sampling": {}, "roots": {}}


def meta(version: str = NEW, capabilities: dict | None = None, **more: object) -> dict:
    """What every stateless request says about itself."""
    return {
        f"{META}protocolVersion": version,
        f"{META}clientCapabilities": EVERYTHING if capabilities is None else capabilities,
        **more,
    }


@dataclass
class Reply:
    """What came back: one message, or the events of a stream."""

    status: int
    headers: dict[str, str]
    raw: bytes
    messages: list[Any] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def last(self) -> Any:
        return self.messages[-1]

    @property
    def result(self) -> Any:
        assert "error" not in self.last, self.last
        return self.last["result"]

    @property
    def error(self) -> Any:
        return self.last["error"]


class McpClient:
    """Speaks the protocol to an application, as a server would for a client on this machine."""

    def __init__(self, app: Any, *, token: str = "", session: str = "", version: str = NEW) -> None:
        self.app = app
        self.token = token
        self.session = session
        self.version = version
        self.ids = 0

    async def send(
        self,
        raw: bytes,
        *,
        method: str = "POST",
        path: str = "/mcp",
        headers: dict[str, str | None] | None = None,
        extra: tuple = (),
        gone: asyncio.Event | None = None,
        hear: Callable[[bytes], None] = lambda _: None,
    ) -> Reply:
        """Send a body; `gone` has the client leave once it is set, and `hear` gets each piece of the answer."""
        listed: dict[str, str | None] = {
            "host": "127.0.0.1:8765",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self.version or None,
            "mcp-session-id": self.session or None,
            "authorization": f"Bearer {self.token}" if self.token else None,
            **(headers or {}),
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [
                *((name.encode(), value.encode("latin-1")) for name, value in listed.items() if value is not None),
                *extra,
            ],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
        }
        pending = [{"type": "http.request", "body": raw, "more_body": False}]
        heard: list[dict] = []

        async def receive() -> dict:
            if pending:
                return pending.pop()
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: dict) -> None:
            heard.append(message)
            hear(message.get("body", b""))

        async with asyncio.timeout(25):
            await self.app(scope, receive, send)
        start, *rest = heard
        found = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        body = b"".join(part.get("body", b"") for part in rest)
        return Reply(start["status"], found, body, list(_messages(found.get("content-type", ""), body)))

    async def ask(
        self,
        method: str,
        params: dict | None = None,
        *,
        headers: dict | None = None,
        request_id: Any = None,
        **more: Any,
    ) -> Reply:
        """Make a request, with all that its wire asks for."""
        self.ids += 1
        params = dict(params or {})
        beside: dict[str, str | None] = {}
        if self.version == NEW:
            params.setdefault("_meta", meta())
            named = params.get("uri") if method == "resources/read" else params.get("name")
            beside = {"mcp-method": method, "mcp-name": named if isinstance(named, str) else None}
        message = {
            "jsonrpc": "2.0",
            "id": self.ids if request_id is None else request_id,
            "method": method,
            "params": params,
        }
        return await self.send(json.dumps(message).encode(), headers={**beside, **(headers or {})}, **more)

    async def tell(self, method: str, params: dict | None = None) -> Reply:
        """Send a notification."""
        return await self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    async def respond(self, request_id: Any, result: dict | None = None, error: dict | None = None) -> Reply:
        """Answer a question of the server."""
        beside = {"result": result} if error is None else {"error": error}
        return await self.send(json.dumps({"jsonrpc": "2.0", "id": request_id, **beside}).encode())

    async def call(self, name: str, arguments: dict | None = None, **more: Any) -> Reply:
        """Call a tool."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}, **more})

    async def open(self, version: str = OLD, capabilities: dict | None = None) -> McpClient:
        """A client of an older version, in a session."""
        client = McpClient(self.app, token=self.token, version="")
        params = {
            "protocolVersion": version,
            "capabilities": EVERYTHING if capabilities is None else capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        reply = await client.ask("initialize", params)
        client.session = reply.headers["mcp-session-id"]
        client.version = reply.result["protocolVersion"]
        return client


class Stream:
    """An answer that goes on, heard message by message: `async with Stream(client.ask, "subscriptions/listen", …) as stream:`."""

    def __init__(self, ask: Callable[..., Any], *words: Any, **more: Any) -> None:
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._gone = asyncio.Event()
        self.raw = b""
        self._asking = ask(*words, **more, gone=self._gone, hear=self._hear)

    def _hear(self, piece: bytes) -> None:
        self.raw += piece
        for message in _messages("text/event-stream", piece):
            self._heard.put_nowait(message)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._asking)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gone.set()
        await asyncio.wait_for(self._task, 25)

    async def next(self) -> Any:
        """The next message."""
        return await asyncio.wait_for(self._heard.get(), 25)

    @property
    def ids(self) -> list[str]:
        """The ids of its events."""
        return [line.removeprefix(b"id: ").decode() for line in self.raw.split(b"\n") if line.startswith(b"id: ")]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing more was heard."""
        return self._heard.empty()


def _messages(content_type: str, body: bytes):
    if content_type.startswith("text/event-stream"):
        for line in body.split(b"\n"):
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))
    elif content_type.startswith("application/json") and body:
        yield json.loads(body)


@pytest.fixture
async def client_of() -> AsyncIterator[Callable[..., McpClient]]:
    """Make a client of a crib over the given functions; the crib is closed at the end."""
    opened: list[tuple[Crib, App]] = []

    def make(*tools, crib: Crib | None = None, project=None, open_to_loopback: bool = True, **settings) -> McpClient:
        crib = crib or Crib(project, tools=tools, builtins={"enabled": False}, **settings)
        app = make_app(crib, open_to_loopback=open_to_loopback)
        opened.append((crib, app))
        client = McpClient(app)
        client.crib = crib  # type: ignore[attr-defined]
        return client

    yield make
    for crib, app in opened:
        await app_lifespan.end(app)
        await crib.close()
