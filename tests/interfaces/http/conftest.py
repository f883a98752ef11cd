"""A crib behind its HTTP application, and a client that speaks to it without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

import app_lifespan
from toolcrib import Crib
from toolcrib.interfaces.http.app import App, make_app

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
OTHER = "018faf50-b7b6-7a01-9a05-a22a6e0af102"
JSON = "application/json"


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    raw: bytes
    chunks: list[dict] = field(default_factory=list)

    @property
    def json(self):
        return json.loads(self.raw)


class Client:
    """Speaks ASGI to an application, as a server would for a client on this machine."""

    def __init__(self, app, *, address: str = "127.0.0.1", host: str = "127.0.0.1:8765") -> None:
        self.app = app
        self.address = address
        self.host = host

    async def ask(self, method, path, body=None, *, headers=None, raw=None, query="", extra=(), receive=None) -> Reply:
        """Send a request; `path` is percent-encoded unless it is already."""
        path, _, given = path.partition("?")
        sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        listed = {"host": self.host, **({"content-type": JSON} if sent else {}), **(headers or {})}
        encoded = path if "%" in path else quote(path, safe="/")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": encoded.encode(),
            "query_string": (query or given).encode(),
            "headers": [
                *(
                    (name.lower().encode(), value.encode("latin-1"))
                    for name, value in listed.items()
                    if value is not None
                ),
                *extra,
            ],
            "client": (self.address, 50_000),
            "server": ("127.0.0.1", 8765),
        }
        pending = [{"type": "http.request", "body": sent, "more_body": False}]
        heard: list[dict] = []

        async def hear():
            if pending:
                return pending.pop()
            await asyncio.Event().wait()
            return None

        async def send(message):
            heard.append(message)

        async with asyncio.timeout(25):
            await self.app(scope, receive or hear, send)
        start, *rest = heard
        found = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Reply(start["status"], found, b"".join(part.get("body", b"") for part in rest), heard)

    async def get(self, path, **more) -> Reply:
        return await self.ask("GET", path, **more)

    async def put(self, path, body=None, **more) -> Reply:
        return await self.ask("PUT", path, body, **more)

    async def patch(self, path, body=None, **more) -> Reply:
        return await self.ask("PATCH", path, body, **more)

    async def post(self, path, body=None, **more) -> Reply:
        return await self.ask("POST", path, body, **more)

    async def delete(self, path, **more) -> Reply:
        return await self.ask("DELETE", path, **more)


def bundle_path(bundle_id: str = BUNDLE) -> str:
    return f"/tools/bundles/{bundle_id}"


def bundle_body(slug: str = "weather", **changes) -> dict:
    return {"slug": slug, "displayName": "Weather", "isEnabled": True, "description": "The sky.", **changes}


def go_body(**changes) -> dict:
    """The document of a tool that runs the registered function `echo`."""
    return {
        "schemaVersion": "xyz",
        "displayName": "Echo",
        "description": "Give back what it gets.",
        "type": "go",
        "isEnabled": True,
        "argSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "additionalProperties": False,
        },
        "outputSchema": {},
        "impl": {"goFunc": "echo"},
        **changes,
    }


def tool_path(slug: str = "echo", version: str = "v1", bundle_id: str = BUNDLE) -> str:
    return f"/tools/bundles/{bundle_id}/tools/{quote(slug, safe='')}/version/{quote(version, safe='')}"


@dataclass
class World:
    """A project, the crib over it, its application and a client."""

    root: Path
    crib: Crib
    client: Client
    calls: list

    bundle = BUNDLE
    other = OTHER
    bundle_path = staticmethod(bundle_path)
    bundle_body = staticmethod(bundle_body)
    tool_path = staticmethod(tool_path)
    go_body = staticmethod(go_body)

    async def with_bundle(self, bundle_id: str = BUNDLE, **changes) -> None:
        reply = await self.client.put(bundle_path(bundle_id), bundle_body(**changes))
        assert reply.status == 201, reply.raw

    async def with_tool(self, slug: str = "echo", version: str = "v1", bundle_id: str = BUNDLE, **changes) -> dict:
        reply = await self.client.put(tool_path(slug, version, bundle_id), go_body(**changes))
        assert reply.status == 201, reply.raw
        return reply.json

    def files(self) -> dict[str, bytes]:
        """Everything that is kept of bundles, by file."""
        folder = self.root / ".toolcrib" / "bundles"
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.json")}


@pytest.fixture
async def make_world(tmp_path: Path):
    """Make a project, its crib and its application; all are closed at the end."""
    opened: list[tuple[Crib, App]] = []

    def make(*tools, root=None, open_to_loopback=True, functions=None, **settings) -> World:
        calls: list = []

        def echo(context, arguments):
            calls.append(arguments)
            return arguments

        folder = root or tmp_path
        crib = Crib(folder, tools=tools, functions={"echo": echo, **(functions or {})}, **settings)
        app = make_app(crib, open_to_loopback=open_to_loopback)
        opened.append((crib, app))
        return World(folder, crib, Client(app), calls)

    yield make
    for crib, app in opened:
        await app_lifespan.end(app)
        await crib.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """A project with nothing in it but the function `echo`."""
    return make_world()


@pytest.fixture
def client_for() -> type[Client]:
    """Make another client of an application."""
    return Client


@dataclass
class StandIn:
    """A web server of our own, and what was asked of it."""

    port: int
    asked: list[str]
    statuses: list[int]


@pytest.fixture
async def stand_in():
    """A service on this machine that answers every request with the weather, and with these statuses before it."""
    asked: list[str] = []
    statuses: list[int] = []
    answer = b'{"current": {"condition": {"text": "sunny"}}}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b" ")[1].decode())
        status = statuses.pop(0) if statuses else 200
        head = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nConnection: close\r\n" % status
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield StandIn(server.sockets[0].getsockname()[1], asked, statuses)
