"""The processor time of `tools/call` and `tools/list` over MCP, against an echo and FastMCP, and the start of `crib mcp`.

Each server is a process of its own; what counts is the time that processors worked for it. The peers live in an environment of
their own (make bench-peers); run as a script, this file is one of the servers.
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
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bench_http import MANY, PEERS, Target, _serve, _tell, add, serve_starlette

ROUNDS = 7
PEER_CALLS = 160
MANY_TOOLS, LISTED = 5_000, 1_000
# A call costs the same however many tools there are; the rest is what two servers differ by in one run.
MANY_SHARE = 1.25
STARTS, MOST_STARTS = 15, 5.0
NEW, OLD = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = "Accept: application/json, text/event-stream\r\n"
STATELESS = f"{ACCEPT}MCP-Protocol-Version: {NEW}\r\n"
CALLING = f"{STATELESS}Mcp-Method: tools/call\r\nMcp-Name: add\r\n"
INITIALIZE = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def message(method: str, params: dict) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 3, "method": method, "params": params}).encode()


CALL = message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": META})
OLD_CALL = message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
LIST = message("tools/list", {"_meta": META})


async def run() -> bool:
    from run import show

    with contextlib.ExitStack() as stack:
        one, many = (_start(stack, sys.executable, kind) for kind in ("crib-1", f"crib-{MANY_TOOLS}"))
        listing = _start(stack, sys.executable, f"crib-list-{LISTED}")
        echo = _start(stack, sys.executable, "starlette")
        call = "tools/call of add"
        targets = [
            Target(call, *one, "/mcp", CALL, CALLING),
            Target("the same in a session of 2025-11-25", *one, "/mcp", OLD_CALL, _session(one[1])),
            Target(f"the same among {MANY_TOOLS:,} tools", *many, "/mcp", CALL, CALLING),
            Target(f"tools/list of {LISTED:,} tools", *listing, "/mcp", LIST, f"{STATELESS}Mcp-Method: tools/list\r\n"),
            Target("bare Starlette echo", *echo, "/echo", b'{"args":{"a":1,"b":3}}'),
        ]
        if PEERS.exists():
            for name, kind in (("FastMCP as installed", "fastmcp"), ("FastMCP, httptools and uvloop", "fastmcp-quick")):
                peer = _start(stack, str(PEERS), kind)
                targets.append(Target(name, *peer, "/mcp", CALL, CALLING))
        for target in targets:
            await target.measure(PEER_CALLS)
            target.seconds.clear()
        for _ in range(ROUNDS):
            for target in targets:
                await target.measure(PEER_CALLS if "FastMCP" in target.name or "list" in target.name else MANY)
    took = {target.name: statistics.median(target.seconds) for target in targets}
    limits = {"FastMCP as installed": 1 / 10, "FastMCP, httptools and uvloop": 1 / 8}
    rows = [(name, seconds, took[call] / seconds, limits.get(name)) for name, seconds in took.items()]
    kept = show("Processor time of a request over MCP: the call's share of each", rows)
    many = took[f"the same among {MANY_TOOLS:,} tools"]
    kept = show("More tools, against one", [("tools/call", many, many / took[call], MANY_SHARE)]) and kept
    listed = took[f"tools/list of {LISTED:,} tools"]
    kept = show("A prepared list, against 1 ms", [("tools/list", listed, listed / 1e-3, 1.0)]) and kept
    starts = _starts()
    for what in ("seconds", "processor time"):
        bare, first = (statistics.median(times) for times in starts[what])
        rows = [("bare interpreter", bare, None, None), ("crib mcp", first, first / bare, MOST_STARTS)]
        kept = show(f"From start to first answer, {what}", rows) and kept
    return kept


def _start(stack: contextlib.ExitStack, python: str, kind: str) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen([python, __file__, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the server {kind} did not start")
    return process, json.loads(line)["port"]


def _session(port: int) -> str:
    """The headers of a session that was opened."""
    import urllib.request

    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", message("initialize", INITIALIZE), headers)
    with urllib.request.urlopen(request) as reply:
        return f"{ACCEPT}MCP-Protocol-Version: {OLD}\r\nMcp-Session-Id: {reply.headers['mcp-session-id']}\r\n"


def _starts() -> dict[str, tuple[list[float], list[float]]]:
    """How long a bare interpreter takes, and `crib mcp` until its first answer, interleaved; in seconds and in processor time."""
    found: dict[str, tuple[list[float], list[float]]] = {"seconds": ([], []), "processor time": ([], [])}
    crib = str(Path(sys.executable).parent / "crib")
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(STARTS):
            started = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-c", "pass"])
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            found["seconds"][0].append(time.perf_counter() - started)
            found["processor time"][0].append(used.ru_utime + used.ru_stime)
            started = time.perf_counter()
            process = subprocess.Popen(
                [crib, "mcp", "-C", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            process.stdin.write(message("initialize", INITIALIZE) + b"\n")
            process.stdin.flush()
            process.stdout.readline()
            found["seconds"][1].append(time.perf_counter() - started)
            found["processor time"][1].append(Target("crib mcp", process, 0, "").worked())
            process.communicate()
    return found


def serve_crib(tools: int, limit: int = 100) -> None:
    from toolcrib import Crib
    from toolcrib.features.functions.definition import tool_of
    from toolcrib.interfaces.http.server import new_loop, serve

    def made(number: int):
        def function(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        function.__name__ = f"add_{number}"
        return tool_of(function)

    async def main() -> None:
        given = [add, *(made(number) for number in range(tools - 1))]
        settings = {"server": {"calls_per_minute": 2_000_000_000}, "builtins": {"enabled": False}}
        with tempfile.TemporaryDirectory() as folder:
            async with Crib(folder, tools=given, mcp={"list_limit": limit}, **settings) as crib:
                await serve(
                    crib,
                    host="127.0.0.1",
                    port=0,
                    say=lambda _: None,
                    ready=lambda url: _tell(int(url.rpartition(":")[2])),
                )

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def serve_fastmcp(*, quick: bool) -> None:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    server.tool(add)
    app = server.http_app(path="/mcp", stateless_http=True, json_response=True)
    if quick:
        _serve(app)
        return
    import uvicorn

    config = uvicorn.Config(app, port=0, http="h11", loop="asyncio", access_log=False, log_level="error")
    running = uvicorn.Server(config)
    started = running.startup

    async def startup(sockets=None) -> None:
        await started(sockets=sockets)
        _tell(running.servers[0].sockets[0].getsockname()[1])

    running.startup = startup
    running.run()


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind.startswith("crib-list-"):
        serve_crib(int(kind.removeprefix("crib-list-")), limit=MANY_TOOLS)
    elif kind.startswith("crib-"):
        serve_crib(int(kind.removeprefix("crib-")))
    elif kind == "starlette":
        serve_starlette()
    else:
        serve_fastmcp(quick=kind == "fastmcp-quick")
