"""How long a chunk takes from its yield to its reader: in Python, over HTTP, and from a file in the sandbox.

Tools yield the time itself, and wait between two items, so that each chunk is on its way alone. The reference is a
bare asyncio server that writes a line over loopback in the same process. The limit of 2 ms is meant for a quiet machine.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable  # noqa: TC003 - the hints of a tool are read when it runs
from contextlib import suppress
from pathlib import Path

from run import show
from toolcrib import Chunk, Crib
from toolcrib.interfaces.http.server import serve

CHUNKS = 60
ROUNDS = 5
LIMIT_SECONDS = 0.002
PAUSE = 0.005
FILE = '''import time
from collections.abc import Iterator

def ticks_file(count: int) -> Iterator[float]:
    """Yield the time.

    Args:
        count: How often.
    """
    for _ in range(count):
        time.sleep(0.005)
        yield time.monotonic()
'''


async def ticks(count: int) -> AsyncIterator[float]:
    """Yield the time."""
    for _ in range(count):
        await asyncio.sleep(PAUSE)
        yield time.monotonic()


async def in_python(crib: Crib, name: str) -> list[float]:
    """How late each chunk is for a reader in the same program."""
    events = crib.stream(name, count=CHUNKS)
    return [time.monotonic() - float(str(event.value)) async for event in events if isinstance(event, Chunk)]


async def over_http(port: int, name: str) -> list[float]:
    """How late each chunk is for a reader of events."""
    body = json.dumps({"count": CHUNKS}).encode()
    head = (
        f"POST /call/{name} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        "Content-Type: application/json\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    late: list[float] = []
    while b'"ok"' not in (line := await asyncio.wait_for(reader.readline(), 60)):
        if line.startswith(b'data: {"number"'):
            late.append(time.monotonic() - json.loads(line[6:])["value"])
    writer.close()
    return late


async def bare() -> list[float]:
    """How late each line of a bare server is."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(CHUNKS):
            await asyncio.sleep(PAUSE)
            writer.write(f"{time.monotonic()}\n".encode())
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    late: list[float] = []
    while line := await reader.readline():
        late.append(time.monotonic() - float(line))
    writer.close()
    server.close()
    return late


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools"
        tools.mkdir()
        (tools / "ticks_file.py").write_text(FILE)
        async with Crib(folder, tools=[ticks]) as crib:
            url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            server = asyncio.create_task(
                serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=url.set_result)
            )
            port = int((await url).rpartition(":")[2])
            works: dict[str, Callable[[], Awaitable[list[float]]]] = {
                "bare server": bare,
                "host function, in Python": lambda: in_python(crib, "ticks"),
                "host function, over HTTP": lambda: over_http(port, "ticks"),
                "file in the sandbox, in Python": lambda: in_python(crib, "ticks_file"),
                "file in the sandbox, over HTTP": lambda: over_http(port, "ticks_file"),
            }
            figures: dict[str, list[float]] = {name: [] for name in works}
            for _ in range(ROUNDS):
                for name, work in works.items():
                    figures[name] += await work()
            server.cancel()
            with suppress(asyncio.CancelledError):
                await server
    rows = []
    for name, late in figures.items():
        median = statistics.median(late)
        rows.append((name, median, median / LIMIT_SECONDS, None if name == "bare server" else 1.0))
    return show(f"A chunk, from its yield to its reader (x: of {LIMIT_SECONDS * 1000:g} ms)", rows)
