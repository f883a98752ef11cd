"""The processor time of an invoke of `add` over HTTP, against an echo behind the same guards and against peers.

Each server is a process of its own, the clients are in this one, and what counts is the time that processors worked for the
server. The peers live in an environment of their own (make bench-peers); run as a script, this file is one of the servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

PEERS = Path(__file__).parent / ".envs" / "peers" / "bin" / "python"
ROUNDS = 9
LINES = 8
REQUESTS = {"FastMCP, stateless JSON": 160}
MANY = 2_400

ARGUMENTS = json.dumps({"args": {"a": 1, "b": 2}}).encode()
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}


@dataclass
class Target:
    """A server, and what is asked of it."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    path: str
    body: bytes = ARGUMENTS
    headers: str = ""
    seconds: list[float] = field(default_factory=list)

    def request(self) -> bytes:
        """What goes over the wire."""
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        return f"{head}{self.headers}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body

    def worked(self) -> float:
        """Seconds that processors have worked for the server, over all its threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    async def measure(self, requests: int) -> None:
        """Ask so often, and note how long the server worked for one request."""
        before = self.worked()
        await asyncio.gather(*(self._ask(requests // LINES) for _ in range(LINES)))
        self.seconds.append((self.worked() - before) / (requests // LINES * LINES))

    async def _ask(self, times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        request = self.request()
        for _ in range(times):
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 200") or b"3" not in answer:
                raise RuntimeError(f"{self.name}: {head!r} {answer[:200]!r}")
        writer.close()


async def run() -> bool:
    sys.path.insert(0, str(Path(__file__).parent))
    from run import show

    with contextlib.ExitStack() as stack:
        ours, facts = _start(stack, sys.executable, "toolcrib")
        invoke = "invoke of add"
        targets = [
            Target(invoke, ours, facts["port"], facts["invoke"]),
            Target("echo behind the same guards", ours, facts["port"], "/echo", b'{"args":{"a":1,"b":3}}'),
            _target(stack, "bare Starlette echo", sys.executable, "starlette", "/echo", b'{"args":{"a":1,"b":3}}'),
            _target(stack, "Toolcrib with its log on", sys.executable, "toolcrib-logged", None),
        ]
        if PEERS.exists():
            accept = "Accept: application/json, text/event-stream\r\n"
            targets += [
                _target(stack, "FastAPI", str(PEERS), "fastapi", "/invoke"),
                _target(stack, "FastAPI with its log on", str(PEERS), "fastapi-logged", "/invoke"),
                _target(
                    stack, "FastMCP, stateless JSON", str(PEERS), "fastmcp", "/mcp", json.dumps(CALL).encode(), accept
                ),
            ]
        for target in targets:
            await target.measure(160)
            target.seconds.clear()
        for _ in range(ROUNDS):
            for target in targets:
                await target.measure(REQUESTS.get(target.name, MANY))
    took = {target.name: statistics.median(target.seconds) for target in targets}
    limits = {"echo behind the same guards": 1 / 0.75, "FastAPI": 1 / 2, "FastMCP, stateless JSON": 1 / 15}
    rows = [(name, seconds, took[invoke] / seconds, limits.get(name)) for name, seconds in took.items()]
    kept = show("Processor time of a request over HTTP: an invoke's share of each", rows)
    if not PEERS.exists():
        print("  peers: not installed here; `make bench-peers` installs them in an environment of their own")
    return kept


def _target(
    stack: contextlib.ExitStack,
    name: str,
    python: str,
    kind: str,
    path: str | None,
    body: bytes = ARGUMENTS,
    headers: str = "",
) -> Target:
    process, facts = _start(stack, python, kind)
    return Target(name, process, facts["port"], path or facts["invoke"], body, headers)


def _start(stack: contextlib.ExitStack, python: str, kind: str) -> tuple[subprocess.Popen[bytes], dict]:
    process = subprocess.Popen([python, __file__, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the server {kind} did not start")
    return process, json.loads(line)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def serve_toolcrib(*, log: bool) -> None:
    from toolcrib import Crib
    from toolcrib.core.plugins import Plugins
    from toolcrib.interfaces.http.app import make_app
    from toolcrib.interfaces.http.exchange import log_to
    from toolcrib.interfaces.http.routes import registered_tables
    from toolcrib.interfaces.http.server import new_loop, serve_app
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.interfaces.http.settings import ServerSettings
    from toolcrib.model.call import Scope
    from toolcrib.toolkit.http import answer_json, read_body
    from toolcrib.toolkit.http.contract import ANYTHING, Body
    from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

    async def echo(_, request):
        return answer_json(await read_body(request))

    endpoint = Endpoint(
        name="echo",
        method="POST",
        path="/echo",
        handler=echo,
        scope=Scope.INVOKE,
        summary="Echo.",
        # Past the router as an invoke is, so that the two differ in the call alone.
        is_call=True,
        body=Body(name="Echo", schema={**ANYTHING, "properties": {}}, example={}, open_keys=True),
        replies={},
    )
    table = EndpointTable(tag="echo", summary="Echo.", make=lambda host: host, endpoints=(endpoint,))

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with Crib(folder, tools=[add], server={"calls_per_minute": 2_000_000_000}) as crib:
                settings = crib.settings.table(ServerSettings)
                service = Service(settings)
                app = make_app(
                    crib, open_to_loopback=True, service=service, tables=(*registered_tables(Plugins()), table)
                )
                kept = next(kept for kept in crib.bundles.list_tools().items if kept.slug == "add")
                path = f"/tools/bundles/{kept.bundle.id}/tools/add/version/{kept.version}/invoke"
                await serve_app(
                    app,
                    settings,
                    service,
                    host="127.0.0.1",
                    port=0,
                    say=lambda _: None,
                    ready=lambda url: _tell(int(url.rpartition(":")[2]), invoke=path),
                )

    with (
        log_to(sys.stderr, hide=str) if log else contextlib.nullcontext(),
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        runner.run(main())


def serve_starlette() -> None:
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def echo(request):
        return JSONResponse(await request.json())

    _serve(Starlette(routes=[Route("/echo", echo, methods=["POST"])]))


def serve_fastapi(*, log: bool) -> None:
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Arguments(BaseModel):
        a: int
        b: int

    class Invoke(BaseModel):
        args: Arguments

    class Answer(BaseModel):
        ok: bool
        value: int

    app = FastAPI()

    # The names of the annotations are those of this function.
    async def invoke(body):
        return Answer(ok=True, value=add(body.args.a, body.args.b))

    invoke.__annotations__ = {"body": Invoke, "return": Answer}
    app.post("/invoke")(invoke)
    _serve(app, log=log)


def serve_fastmcp() -> None:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    server.tool(add)
    _serve(server.http_app(path="/mcp", stateless_http=True, json_response=True))


def _serve(app, *, log: bool = False) -> None:
    import uvicorn

    config = uvicorn.Config(
        app, port=0, http="httptools", loop="uvloop", access_log=log, log_level="info" if log else "error"
    )
    server = uvicorn.Server(config)
    started = server.startup

    async def startup(sockets=None) -> None:
        await started(sockets=sockets)
        _tell(server.servers[0].sockets[0].getsockname()[1])

    server.startup = startup
    server.run()


def _tell(port: int, **facts: str) -> None:
    print(json.dumps({"port": port, **facts}), flush=True)
    # Nobody reads on: what a server logs afterwards is written, and thrown away.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


SERVERS = {
    "toolcrib": lambda: serve_toolcrib(log=False),
    "toolcrib-logged": lambda: serve_toolcrib(log=True),
    "starlette": serve_starlette,
    "fastapi": lambda: serve_fastapi(log=False),
    "fastapi-logged": lambda: serve_fastapi(log=True),
    "fastmcp": serve_fastmcp,
}

if __name__ == "__main__":
    SERVERS[sys.argv[1]]()
