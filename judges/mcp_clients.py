"""Let the official clients of MCP call one tool of every format, over stdio and over HTTP, and restart the server under one.

`python judges/mcp_clients.py`: the packages of npm are found in `.judges/mcp-clients`. Every client must list the tools and get the
same result from each.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".judges" / "mcp-clients"
NODE_PROGRAM = ROOT / "judges" / "mcp_clients.mjs"
FORMATS = ROOT / "tests" / "interfaces" / "mcp" / "formats.py"
ARGUMENTS = {"first": 20, "second": 22}
RESULT = {"sum": 42}
# Its result is too large, and must fit the schema of the tool all the same: every client checks that.
LARGE = "large_host"
OLD, NEW = "2025-11-25", "2026-07-28"
SECONDS = 60
RESTARTED = "sdk 1.32.2 after a restart of the server"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a client finds the server: a URL, or a command that it starts."""

    command: tuple[str, ...]
    names: tuple[str, ...]
    url: str = ""
    is_bridge: bool = False

    @property
    def transport(self) -> str:
        """The name of its transport."""
        return "HTTP" if self.url else "bridge" if self.is_bridge else "stdio"


def judge(project: Path) -> list[str]:
    """What is wrong."""
    names = tuple(json.loads(subprocess.check_output([sys.executable, FORMATS, project], text=True)))
    command = (sys.executable, "-m", "toolcrib", "mcp", "-C", str(project))
    wrong = judge_clients(Target(command=command, names=names))
    with served(project) as url:
        target = Target(command=command, names=names, url=f"{url}/mcp")
        wrong += judge_clients(target)
        bridge = (sys.executable, "-m", "toolcrib", "mcp", "--url", url)
        wrong += judge_clients(Target(command=bridge, names=names, is_bridge=True))
    return wrong + judge_restart(project, command, names)


def judge_clients(target: Target) -> list[str]:
    """What is wrong with the answers that the clients get from one target."""
    clients: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "Python, legacy": (OLD, lambda: asyncio.run(call_with_python(target, "legacy"))),
        "Python, auto": (NEW, lambda: asyncio.run(call_with_python(target, "auto"))),
        "client 2.4.0, legacy": (OLD, lambda: call_with_node(target, "client", "legacy")),
        "client 2.4.0, auto": (NEW, lambda: call_with_node(target, "client", "auto")),
        # These two do not say which version was agreed on.
        "sdk 1.32.2": ("", lambda: call_with_node(target, "sdk", "")),
        "inspector": ("", lambda: call_with_inspector(target)),
    }
    wrong = []
    for name, (version, call) in clients.items():
        client = f"{name}, {target.transport}"
        try:
            answer = call()
            found = check(client, answer, target.names)
            if answer.get("version", "") != version:
                found.append(f"{client}: speaks {answer.get('version')}, not {version}")
        except Exception as problem:  # noqa: BLE001 - any exception of a client is a finding, and the next one is judged too
            found = [f"{client}: {problem!r:.2000}"]
        print(f"{client}: {'; '.join(found) or 'the same result from every format'}")
        wrong += found
    return wrong


def judge_restart(project: Path, command: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """What is wrong with the calls of a client that was connected before the server was started anew."""
    with served(project) as url:
        target = Target(command=command, names=names, url=f"{url}/mcp")
        live = start_node(target, "sdk", "")
        try:
            wrong = check("sdk 1.32.2 before a restart", read_answer(live), names)
        except BaseException:
            end(live)
            raise
    try:
        with served(project, urlsplit(url).port or 0):
            live.stdin.write("again\n")
            live.stdin.flush()
            wrong += check(RESTARTED, read_answer(live), names)
    finally:
        end(live)
    print(f"{RESTARTED}: {'; '.join(wrong) or 'the same result from every format'}")
    return wrong


def check(client: str, answer: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """What is wrong with an answer: the tools that were listed, and the result of each call."""
    wrong = [] if set(names) <= set(answer["tools"]) else [f"{client}: lists {answer['tools']}, not all of {names}"]
    for name in names:
        result = answer["results"][name]
        if name == LARGE:
            place = (result.get("structuredContent") or {}).get("toolcrib/kept", {})
            if result.get("isError") or not str(place.get("uri")).startswith("crib://results/"):
                wrong.append(f"{client}: the large result is {result!r:.500}")
            continue
        texts = [json.loads(block["text"]) for block in result["content"]]
        if result.get("isError") or texts != [RESULT] or result.get("structuredContent") != RESULT:
            wrong.append(f"{client}: {name} gives {result}")
    return wrong


@contextmanager
def served(project: Path, port: int = 0) -> Iterator[str]:
    """Run `crib serve`; the URL that it says it serves."""
    words = [sys.executable, "-m", "toolcrib", "serve", "-C", str(project), "--port", str(port)]
    log = project / "serve.log"
    with log.open("w") as errors, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        try:
            line = server.stdout.readline()
            if " on http" not in line:
                raise RuntimeError(f"the server did not start: {line}{log.read_text()}")
            yield line.rpartition(" on ")[2].strip()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(SECONDS)


async def call_with_python(target: Target, mode: str) -> dict[str, Any]:
    """List and call with the client of the Python package."""
    program, *words = target.command
    server = target.url or StdioServerParameters(command=program, args=words)
    async with asyncio.timeout(SECONDS), Client(server, mode=mode) as client:
        version, listed = client.protocol_version, await client.list_tools()
        results = {
            name: (await client.call_tool(name, ARGUMENTS)).model_dump(mode="json", by_alias=True)
            for name in target.names
        }
    return {"version": version, "tools": [tool.name for tool in listed.tools], "results": results}


def call_with_node(target: Target, package: str, mode: str) -> dict[str, Any]:
    """List and call with a client of npm."""
    live = start_node(target, package, mode)
    try:
        return read_answer(live)
    finally:
        end(live)


def start_node(target: Target, package: str, mode: str) -> subprocess.Popen[str]:
    """Start the program of the npm clients; it calls once, and again for each line that it is sent."""
    task: dict[str, object] = {"package": package, "mode": mode, "url": target.url, "command": target.command}
    task |= {"names": target.names, "arguments": ARGUMENTS}
    words = ["timeout", str(SECONDS * 2), "node", str(NODE_PROGRAM), str(PLACE), json.dumps(task)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_answer(live: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of a program of npm; its complaints are in the log of the judge."""
    line = live.stdout.readline()
    if not line:
        raise RuntimeError("the client ended without an answer; see the log")
    answer: dict[str, Any] = json.loads(line)
    return answer


def end(live: subprocess.Popen[str]) -> None:
    """Close the input of a program of npm, and wait for its end."""
    live.communicate(timeout=SECONDS)


def call_with_inspector(target: Target) -> dict[str, Any]:
    """List, under its strict check of schemas, and call with the command line of the inspector."""
    listed = inspect(target, "tools/list", "--strict")
    given = [word for name, value in ARGUMENTS.items() for word in ("--tool-arg", f"{name}={value}")]
    results = {name: inspect(target, "tools/call", "--tool-name", name, *given) for name in target.names}
    return {"tools": [tool["name"] for tool in listed["tools"]], "results": results}


def inspect(target: Target, method: str, *options: str) -> dict[str, Any]:
    """The result of one request of the inspector."""
    where = ["--transport", "http", "--server-url", target.url] if target.url else ["--", *target.command]
    words = ["mcp-inspector", "--cli", "--method", method, *options, *where]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        problems = judge(Path(folder))
    print("\n".join(problems) or "every client gets the same result from every format")
    sys.exit(1 if problems else 0)
