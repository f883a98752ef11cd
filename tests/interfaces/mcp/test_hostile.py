"""Clients that send rubbish, too much, too slowly, or vanish: the real server goes on, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interfaces.mcp.conftest import NEW, meta
from tests.interfaces.mcp.test_stdio import Program

from soaks import size
from toolcrib import Context, tool
from toolcrib.interfaces.mcp import parked, seals
from toolcrib.interfaces.mcp.stdio_handshake import MAX_LINE
from warm_python import WarmPython

SECONDS = 60
MEGABYTE = 1_000_000
PIECE = 65_536
STALL_SECONDS = 0.3
# The launcher of the sandbox, and a supervisor with its worker, which wait for the next call.
AT_REST = 3
STREAMS = 8
SLOW = 'import time\n\n\ndef slow() -> str:\n    """Take long."""\n    time.sleep(300)\n    return ""\n'
QUICK = 'def quick() -> str:\n    """Be quick."""\n    return "quick"\n'


class Server:
    """`crib serve` in a process of its own, spoken to over plain connections."""

    def __init__(self, project: Path) -> None:
        words = ["-m", "toolcrib", "serve", "-C", str(project), "--port", "0"]
        self.process = WarmPython(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    @property
    def memory(self) -> int:
        """The resident memory of the server, in kB."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def descendants(self) -> set[int]:
        """The processes below the server."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue
        found = {self.process.pid}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.process.pid}

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=MEGABYTE)

    def head(self, method: str, name: str, length: int) -> bytes:
        named = f"Mcp-Name: {name}\r\n" if name else ""
        return (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {NEW}\r\nMcp-Method: {method}\r\n"
            f"{named}Content-Length: {length}\r\n\r\n"
        ).encode()

    def message(self, method: str, params: dict, request_id: object = 1) -> bytes:
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta()}}
        raw = json.dumps(body).encode()
        return self.head(method, str(params.get("name", "")), len(raw)) + raw

    async def ask(self, raw: bytes) -> tuple[int, bytes]:
        """Send the bytes of a request; the status and the first piece of the body. A server that does not read on may cut off: 0."""
        reader, writer = await self.connect()
        answer = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
        try:
            async with asyncio.timeout(SECONDS):
                for start in range(0, len(raw), PIECE):
                    if answer.done():
                        break
                    writer.write(raw[start : start + PIECE])
                    await writer.drain()
                head = await answer
                return int(head.split()[1]), await reader.read(MEGABYTE)
        except ConnectionError:
            return 0, b""
        finally:
            answer.cancel()
            writer.transport.abort()

    async def goes_on(self) -> None:
        """An honest client is served."""
        status, body = await self.ask(self.message("tools/call", {"name": "quick", "arguments": {}}))
        assert (status, b'"quick"' in body) == (200, True), body

    async def vanish(self, name: str) -> None:
        """Call a tool, and be gone as soon as it may have begun."""
        _, writer = await self.connect()
        writer.write(self.message("tools/call", {"name": name, "arguments": {}}))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async def processes_left(self) -> int:
        """How many processes there are beside those of a server at rest, once they had time to end."""
        until = time.monotonic() + SECONDS
        while (left := len(self.descendants()) - AT_REST) > 0 and time.monotonic() < until:  # noqa: ASYNC110 - the system's
            await asyncio.sleep(0.1)
        return max(0, left)


@pytest.fixture
def server(project) -> Iterator[Server]:
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "slow.py").write_text(SLOW)
    (project / "tools" / "quick.py").write_text(QUICK)
    (project / "toolcrib.toml").write_text(f"[mcp]\nstreams = {STREAMS}\n")
    running = Server(project)
    yield running
    running.process.terminate()
    running.process.communicate(timeout=SECONDS)


async def test_what_is_no_message_is_refused_by_a_real_server(server):
    for raw, code in (
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"null", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", -32700),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 10_000 + b', "method": "ping"}', None),
    ):
        status, body = await server.ask(server.head("ping", "", len(raw)) + raw)
        assert 400 <= status < 500, raw[:80]
        assert code in (None, json.loads(body)["error"]["code"]), raw[:80]
        await server.goes_on()


async def send_large(server: Server, megabytes: int) -> None:
    before = server.memory
    status, _ = await server.ask(server.head("tools/call", "quick", megabytes * MEGABYTE) + b"x" * megabytes * MEGABYTE)
    # The same without a length, in chunks.
    head = server.head("tools/call", "quick", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunk = b"%x\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n"
    chunked, _ = await server.ask(head + chunk * megabytes + b"0\r\n\r\n")
    assert {status, chunked} <= {413, 0}
    assert server.memory - before < 16 * 1024, f"{before} kB before, {server.memory} kB after"
    await server.goes_on()


async def test_a_body_that_is_too_large_is_refused_and_not_kept(server):
    await server.goes_on()
    await send_large(server, 20)


@pytest.mark.soak
async def test_bodies_of_100_megabytes_are_refused_and_not_kept(server):
    await server.goes_on()
    for _ in range(size(5)):
        await send_large(server, 100)


def send_long_line(program: Program, megabytes: int) -> None:
    for _ in range(megabytes):
        program.process.stdin.write(b"x" * MEGABYTE)
    program.send(b"")
    error = program.read()["error"]
    assert (error["code"], f"more than {MAX_LINE} bytes" in error["message"]) == (-32700, True)


@pytest.mark.parametrize("megabytes", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_a_line_that_is_too_long_is_refused_and_not_kept(project, megabytes):
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "quick.py").write_text(QUICK)
    program = Program(project)
    try:
        send_long_line(program, megabytes)
        for rubbish in (b"{", b"\xff", b"[]", b"[" * 100_000):
            program.send(rubbish)
            assert program.read()["error"]["code"] in {-32700, -32600}
        called = program.ask("tools/call", {"name": "quick", "arguments": {}, "_meta": meta()})
        assert called["result"]["content"][0]["text"] == "quick"
        status = Path(f"/proc/{program.process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0])
        assert peak < 200 * 1024, f"{peak} kB"
        assert program.end()[0] == 0
    finally:
        program.process.kill()
        program.process.communicate()


def test_of_a_client_that_sends_and_never_reads_nothing_more_is_read_until_it_does(project):
    (project / "tools").mkdir(exist_ok=True)
    for number in range(40):
        (project / "tools" / f"tool_{number}.py").write_text(
            QUICK.replace("quick()", f"tool_{number}()", 1).replace("Be", "Be " * 200)
        )
    program = Program(project)
    try:
        assert len(json.dumps(program.ask("tools/list", {"_meta": meta()}))) > 20_000
        numbers, line, sent = itertools.count(1), b"", 0
        pipe = program.process.stdin.fileno()
        os.set_blocking(pipe, False)
        while sent < MEGABYTE and is_read(pipe, program.process.pid):
            if not line:
                asked = {"jsonrpc": "2.0", "id": next(numbers), "method": "tools/list", "params": {"_meta": meta()}}
                line = json.dumps(asked).encode() + b"\n"
            written = os.write(pipe, line)
            line, sent = line[written:], sent + written
        assert sent < MEGABYTE, "the server reads on, and keeps answers that nobody reads"
        answered = {program.read()["id"] for _ in range(next(numbers) - (2 if line else 1))}
        assert answered
        os.set_blocking(pipe, True)
        program.send(line)
        assert program.ask("server/discover", {"_meta": meta()})
        assert program.end()[0] == 0
    finally:
        program.process.kill()
        program.process.communicate()


def is_read(pipe: int, process: int) -> bool:
    """Whether a pipe takes more; not if it stays full although the process that should read it has nothing else to do."""
    worked = -1
    while not select.select([], [pipe], [], STALL_SECONDS)[1]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        before, worked = worked, int(fields[11]) + int(fields[12])
        if worked == before:
            return False
    return True


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.soak)])
async def test_slow_writers_block_no_other_client(server, count):
    opened = []
    raw = server.message("tools/call", {"name": "quick", "arguments": {}})
    for place in range(count):
        _, writer = await server.connect()
        # Some stop in the head, some in the body.
        writer.write(raw[: len(raw) // 4] if place % 2 else raw[:-1])
        opened.append(writer)
    await server.goes_on()
    for writer in opened:
        writer.transport.abort()
    await server.goes_on()


@pytest.mark.parametrize("count", [40, pytest.param(1_000, marks=pytest.mark.soak)])
async def test_a_flood_of_subscriptions_is_bounded(server, count):
    raw = server.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "s")
    opened = []
    statuses = []
    for _ in range(count):
        reader, writer = await server.connect()
        writer.write(raw)
        async with asyncio.timeout(SECONDS):
            statuses.append(int((await reader.readuntil(b"\r\n\r\n")).split()[1]))
        opened.append(writer)
    assert 0 < statuses.count(200) <= STREAMS
    assert set(statuses) <= {200, 429, 503}, set(statuses)
    await server.goes_on()
    for writer in opened:
        writer.transport.abort()
    until = time.monotonic() + SECONDS
    while (await server.ask(raw))[0] != 200:
        assert time.monotonic() < until, "the places were not given back"


async def test_clients_that_vanish_in_a_call_leave_no_process(server):
    await server.goes_on()
    for _ in range(5):
        await asyncio.gather(*(server.vanish("slow") for _ in range(8)))
    assert await server.processes_left() == 0
    await server.goes_on()


@pytest.mark.soak
async def test_a_thousand_clients_that_vanish_leave_no_process_and_no_memory(server, capsys):
    await server.goes_on()
    for _ in range(5):
        await asyncio.gather(*(server.vanish("slow") for _ in range(8)))
    assert await server.processes_left() == 0
    warm = server.memory
    for _ in range(size(1_000) // 8):
        await asyncio.gather(*(server.vanish("slow") for _ in range(8)))
    assert await server.processes_left() == 0
    with capsys.disabled():
        print(f"\nafter 40 clients {warm} kB, after {size(1_000)} more {server.memory} kB")
    assert server.memory < warm * 1.1, f"{warm} kB, then {server.memory} kB"
    await server.goes_on()


@tool
async def ask(context: Context) -> str:
    """Ask."""
    return str((await context.elicit("?", {"type": "object", "properties": {}}))["action"])


async def test_a_state_that_has_expired_is_refused(client_of, monkeypatch):
    monkeypatch.setattr(parked, "PARKED_SECONDS", -1.0)
    client = client_of(ask)
    asked = (await client.call("ask")).result
    answers = {"requestState": asked["requestState"], "inputResponses": {}}
    assert "it has expired" in (await client.call("ask", **answers)).error["message"]


async def test_a_session_that_has_expired_is_not_found(client_of, monkeypatch):
    monkeypatch.setattr(seals, "SESSION_SECONDS", -1)
    session = await client_of(ask).open()
    assert (await session.ask("tools/list")).status == 404
