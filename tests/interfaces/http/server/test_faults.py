"""The real server, `crib serve`, under everything that clients and operators can do to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from soaks import size
from toolcrib import Crib
from warm_python import WarmPython

SECONDS = 60
MODULE = '''
import asyncio

from toolcrib import tool


@tool
async def nap(n: int, seconds: float = 0.05) -> int:
    """Sleep, and give the number back."""
    await asyncio.sleep(seconds)
    return n
'''
BUNDLE = "0198f000-0000-7000-8000-000000000001"


@dataclass
class Server:
    """A running `crib serve`."""

    process: WarmPython
    port: int
    lines: list[Line]

    async def connect(self, receive_buffer: int = 0) -> Line:
        one = socket.socket()
        one.setblocking(False)
        if receive_buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", self.port)), SECONDS)
        self.lines.append(Line(*await asyncio.open_connection(sock=one)))
        return self.lines[-1]

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        line = await self.connect()
        try:
            return await line.ask(method, path, body)
        finally:
            line.close()

    async def figure(self, name: str) -> float:
        line = await self.connect()
        await line.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _, text = await line.answer()
        line.close()
        (figure,) = re.findall(rf"^{re.escape(name)} (\S+)$", text.decode(), re.MULTILINE)
        return float(figure)

    async def has(self, name: str, value: float) -> bool:
        return await self.figure(name) == value

    def memory(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, SECONDS)


@dataclass
class Line:
    """One connection to it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await asyncio.wait_for(self.writer.drain(), SECONDS)

    async def answer(self) -> tuple[int, bytes]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), SECONDS)
        (length,) = re.findall(rb"content-length: (\d+)", head)
        body = await asyncio.wait_for(self.reader.readexactly(int(length)), SECONDS)
        return int(head.split()[1]), body

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        data = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        await self.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data)
        status, found = await self.answer()
        return status, json.loads(found) if found else None

    async def is_closed(self) -> bytes:
        """What is heard until the server has closed."""
        heard = b""
        with contextlib.suppress(ConnectionError):
            while piece := await asyncio.wait_for(self.reader.read(1_000_000), SECONDS):
                heard = (heard + piece)[-1_000:]
        return heard

    def close(self) -> None:
        self.writer.transport.abort()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "napping.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def served(project: Path, **http: int) -> AsyncIterator[Server]:
    settings = "".join(f"{name} = {value}\n" for name, value in http.items())
    text = f'modules.tools = ["napping"]\nbuiltins.enabled = false\n[server]\n{settings}'
    (project / "toolcrib.toml").write_text(text, encoding="utf-8")
    with (project / "log.txt").open("ab") as log:
        process = WarmPython(
            ["-m", "toolcrib", "serve", "--port", "0", "-C", project],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        while b"http://" not in (line := await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), SECONDS)):
            assert line, (project / "log.txt").read_text(encoding="utf-8")
        reading = asyncio.ensure_future(asyncio.to_thread(process.stdout.read))
        server = Server(process, int(line.strip().rpartition(b":")[2]), [])
        yield server
        for one in server.lines:
            one.close()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            await server.ended()
        await reading
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(SECONDS)
        process.stdout.close()


async def nap(server: Server, number: int, seconds: float = 0.05) -> tuple[int, Any]:
    return await server.ask("POST", "/call/nap", {"n": number, "seconds": seconds})


async def counted(project: Path) -> int:
    async with Crib(project) as crib:
        return sum(count.calls for count in crib.metrics.read().values())


async def has_counted(project: Path, calls: int) -> bool:
    return await counted(project) == calls


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS):
        for _ in range(SECONDS * 50):
            if await holds():
                return
            await asyncio.sleep(0.02)


async def test_of_many_calls_at_once_each_gets_its_own_answer_or_a_refusal(project):
    async with served(project, concurrency=20, queue=60) as server:
        answers = await asyncio.gather(*(nap(server, number, 0.3) for number in range(300)))
        assert await check_answers(server, answers) > 0
        assert (await nap(server, 7))[1]["value"] == 7


async def check_answers(server: Server, answers: list) -> int:
    """No answer is lost or another's; gives the number of refusals."""
    done = {number for number, (status, body) in enumerate(answers) if status == 200 and body["value"] == number}
    refused = {
        number
        for number, (status, body) in enumerate(answers)
        if status == 429 and body["kind"] == "OVERLOADED" and body["ok"] is False
    }
    assert len(done) + len(refused) == len(answers), [answers[0], answers[-1]]
    assert await server.figure("toolcrib_calls_refused_total") == len(refused)
    assert await server.figure('toolcrib_calls_total{tool="nap",outcome="ok"}') == len(done)
    assert done
    return len(refused)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_ten_thousand_calls_at_once(project):
    # A busy machine takes longer than ten seconds to open so many connections, on which nothing is sent meanwhile.
    async with served(project, header_seconds=4 * SECONDS) as server:
        lines = [await server.connect() for _ in range(size(10_000))]
        calls = [line.ask("POST", "/call/nap", {"n": number}) for number, line in enumerate(lines)]
        answers = await asyncio.gather(*calls)
        refused = await check_answers(server, answers)
        assert server.memory() < 1_000_000_000
        assert (await asyncio.wait_for(nap(server, 7), 25))[1]["value"] == 7
        quick = 'toolcrib_http_request_seconds_bucket{route="/call/{name}",status="4xx",le="0.1"}'
        assert await server.figure(quick) >= 0.99 * refused if refused else True


async def test_slow_silent_and_greedy_clients_are_ended_and_others_served(project):
    await besiege(project, slow=15, silent=8, huge=3_000_000)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_a_thousand_slow_a_thousand_silent_and_a_gigabyte(project):
    await besiege(project, slow=size(500), silent=size(1_000), huge=size(1_000_000_000))


async def besiege(project: Path, *, slow: int, silent: int, huge: int) -> None:
    async with served(project, header_seconds=1, body_seconds=1) as server:
        assert (await nap(server, 1))[0] == 200
        before = server.memory()
        call = b"POST /call/nap HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        heads = [await beginning(server, b"POST /call/nap HTTP/1.1\r\nHost: local") for _ in range(slow)]
        bodies = [await beginning(server, call + b'Content-Length: 50\r\n\r\n{"n":') for _ in range(slow)]
        large = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 12
        for _ in range(silent):
            await beginning(server, large, receive_buffer=4_096, reads=False)
        greedy = asyncio.ensure_future(flood(server, call, huge))
        for number in range(20):
            assert (await nap(server, number, 0.001))[1]["value"] == number
        assert {(await line.is_closed())[:12] for line in heads} == {b"HTTP/1.1 408"}
        assert {(await line.is_closed())[:12] for line in bodies} == {b"HTTP/1.1 408"}
        assert await greedy == 413
        await until(lambda: server.has("toolcrib_http_connections", 1))
        assert server.memory() - before < 100_000_000


async def beginning(server: Server, data: bytes, *, receive_buffer: int = 0, reads: bool = True) -> Line:
    line = await server.connect(receive_buffer)
    if not reads:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await line.send(data)
    return line


async def flood(server: Server, call: bytes, size: int) -> int:
    """Send a body that is too large, and go on until the server closes; the status of the answer."""
    line = await server.connect()
    await line.send(call + b"Transfer-Encoding: chunked\r\n\r\n")
    # Read beside sending: once a write has failed, asyncio gives nothing more of what had arrived.
    answer = asyncio.ensure_future(line.answer())
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with contextlib.suppress(ConnectionError):
        for _ in range(size // 65_536):
            await line.send(piece)
    status, _ = await answer
    line.close()
    return status


@pytest.mark.parametrize("rounds", [1, pytest.param(size(50), marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
async def test_a_server_told_to_end_answers_whom_it_took_on_and_counts_every_call(project, rounds):
    made = 0
    for _ in range(rounds):
        async with served(project) as server:
            lines = [await server.connect() for _ in range(40 if rounds == 1 else 200)]
            calls = [asyncio.ensure_future(slow_call(line, number)) for number, line in enumerate(lines)]
            await until(lambda: server.has("toolcrib_calls_running", 40 if rounds == 1 else 200))
            server.process.send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*calls)
            assert [(status, body["value"]) for status, body in answers] == [(200, n) for n in range(len(lines))]
            assert await server.ended() == 0
            made += len(lines)
        assert await counted(project) == made


async def slow_call(line: Line, number: int) -> tuple[int, object]:
    return await line.ask("POST", "/call/nap", {"n": number, "seconds": 1.0})


async def test_a_server_that_is_killed_loses_no_call_that_was_counted(project):
    async with served(project) as server:
        for number in range(20):
            assert (await nap(server, number, 0.001))[0] == 200
        await until(lambda: has_counted(project, 20))
        for number in range(5):
            assert (await nap(server, number, 0.001))[0] == 200
        server.process.kill()
        assert await server.ended() == -signal.SIGKILL
    assert 20 <= await counted(project) <= 25


@pytest.mark.parametrize("kills", [2, pytest.param(size(50), marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
async def test_what_was_acknowledged_is_there_after_the_server_was_killed_again_and_again(project, kills):
    acknowledged: set[str] = set()
    for round_ in range(kills):
        async with served(project) as server:
            bundle = {"slug": "mine", "displayName": "Mine", "isEnabled": True, "description": ""}
            status, _ = await server.ask("PUT", f"/tools/bundles/{BUNDLE}", bundle)
            assert status in (200, 201)
            enough = asyncio.Event()
            writers = [
                asyncio.ensure_future(write(server, f"t{round_}-{writer}", acknowledged, enough)) for writer in range(8)
            ]
            await asyncio.wait_for(enough.wait(), SECONDS)
            server.process.kill()
            await asyncio.gather(*writers)
            await server.ended()
    async with served(project) as server:
        for name in sorted(acknowledged):
            status, _ = await server.ask("GET", f"/tools/bundles/{BUNDLE}/tools/{name}/version/v1")
            assert (name, status) == (name, 200)
        _, health = await server.ask("GET", "/crib/health")
        assert health["problems"] == []
    kept = list((project / ".toolcrib" / "bundles" / BUNDLE).iterdir())
    assert len(acknowledged) >= 20 * kills
    assert all(json.loads(file.read_text(encoding="utf-8")) for file in kept)


async def write(server: Server, prefix: str, acknowledged: set[str], enough: asyncio.Event) -> None:
    """Keep tools, one after the other, until the server is gone."""
    before = len(acknowledged)
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        line = await server.connect()
        for number in range(10_000):
            name = f"{prefix}-{number}"
            status, _ = await line.ask("PUT", f"/tools/bundles/{BUNDLE}/tools/{name}/version/v1", tool())
            if status == 201:
                acknowledged.add(name)
            if len(acknowledged) - before >= 20:
                enough.set()


def tool() -> dict[str, object]:
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": "A tool",
        "description": "Kept while the server is killed.",
        "type": "http",
        "isEnabled": True,
        "argSchema": {"type": "object"},
        "outputSchema": {},
        "impl": {"method": "GET", "urlTemplate": "http://localhost/"},
    }
