"""The queue of requests is down, hangs, or is asked too much: other requests do not wait for it, and no client learns its address."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from toolcrib import Kind, ToolError, tool
from toolcrib.features.requests.endpoint_handlers import READERS, WRITERS, QueueThreads
from toolcrib.toolkit.http.concurrency import Threads

SECONDS = 20
WANTED = {"request": {"name": "word_counter", "description": "Count the words of a text"}}


@tool
async def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


@pytest.fixture
def listening():
    """The port of a server that lets everybody connect and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed():
    """A port without a listener."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        yield place.getsockname()[1]


async def test_a_client_that_reads_or_changes_tools_does_not_wait_for_a_queue_that_hangs(make_world, listening):
    world = make_world(measure, queue={"url": f"redis://127.0.0.1:{listening}/0"})
    asking = [asyncio.create_task(world.client.get("/requests")) for _ in range(40)]
    asking += [asyncio.create_task(world.client.post("/requests", WANTED)) for _ in range(40)]
    await asyncio.sleep(0)
    async with asyncio.timeout(4):  # a request to the queue gives up after five
        assert (await world.client.get("/tools")).status == 200
        assert (await world.client.put(world.bundle_path(), world.bundle_body())).status == 201
        called = await world.client.post("/call/measure", {"text": "x" * 50_000})
    assert called.json["value"] == 50_000
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_a_queue_that_is_down_is_told_with_when_to_come_again_and_health_says_so(make_world, closed):
    world = make_world(queue={"url": f"redis://user:pass-word@127.0.0.1:{closed}/0"})
    for method, path, body in (
        ("GET", "/requests", None),
        ("POST", "/requests", WANTED),
        ("GET", "/experiments", None),
    ):
        reply = await world.client.ask(method, path, body)
        assert (reply.status, reply.json["kind"], reply.headers["retry-after"]) == (503, "TRANSIENT", "1")
        assert "pass-word" not in reply.raw.decode()
    health = (await world.client.get("/crib/health")).json
    assert (health["ready"], "cannot be reached" in health["queue"]) == (True, True)


async def test_health_waits_a_moment_for_a_queue_that_hangs_and_asks_it_once(make_world, listening, monkeypatch):
    world = make_world(queue={"url": f"redis://127.0.0.1:{listening}/0"})
    asked, ask = [], world.crib.requests.list
    monkeypatch.setattr(world.crib.requests, "list", lambda limit: asked.append(limit) or ask(limit=limit))
    async with asyncio.timeout(SECONDS):
        found = await asyncio.gather(*(world.client.get("/crib/health") for _ in range(8)))
    assert {reply.json["queue"] for reply in found} == {"the queue of requests did not answer within 2 s"}
    assert asked == [1]


async def test_the_health_of_a_project_with_a_queue_of_its_own_makes_none(world):
    assert (await world.client.get("/crib/health")).json["queue"] is None
    assert not (world.root / ".toolcrib" / "queue.sqlite3").exists()


async def test_a_queue_that_is_none_is_named_without_its_folder(world):
    (world.root / ".toolcrib").mkdir(exist_ok=True)
    (world.root / ".toolcrib" / "queue.sqlite3").write_bytes(b"no database, but long enough to be looked at" * 100)
    for method, path, body in (
        ("GET", "/requests", None),
        ("POST", "/requests", WANTED),
        ("GET", "/requests/x/events", None),
    ):
        reply = await world.client.ask(method, path, body)
        assert "the queue 'queue.sqlite3' is not a queue of Toolcrib" in reply.json["detail"]
        assert reply.json["details"] == {"path": "queue.sqlite3"}
        assert str(world.root) not in reply.raw.decode()


async def test_large_bodies_are_read_although_every_thread_of_the_loop_waits(make_world):
    world = make_world(measure)
    free = threading.Event()
    waiting = [asyncio.create_task(asyncio.to_thread(free.wait, SECONDS)) for _ in range(64)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(SECONDS / 2):
            reply = await world.client.post("/call/measure", {"text": "x" * 50_000})
        assert reply.json["value"] == 50_000
    finally:
        free.set()
        await asyncio.gather(*waiting)


@pytest.mark.parametrize(("kind", "most"), [("read", READERS), ("write", WRITERS)])
async def test_so_many_ask_at_once_and_the_others_after_them(kind, most):
    threads, lock, free = Threads(), threading.Lock(), threading.Event()
    asking, running, highest = QueueThreads(threads), 0, 0

    def work() -> None:
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
            if running == most:
                free.set()
        free.wait(SECONDS)
        with lock:
            running -= 1

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(getattr(asking, kind)(work) for _ in range(3 * most)))
    threads.close()
    assert highest == most


async def test_a_path_of_any_length_is_told_by_its_name_and_other_errors_as_they_are():
    threads = Threads()
    asking = QueueThreads(threads)

    def fail(message: str, **details: object) -> None:
        raise ToolError(Kind.PERMANENT, message, partial_side_effects=True, details=details)

    async def said(message: str, **details: object) -> tuple[str, object]:
        with pytest.raises(ToolError) as raised:
            await asking.write(fail, message, **details)
        assert (raised.value.kind, raised.value.partial_side_effects) == (Kind.PERMANENT, True)
        return raised.value.message, raised.value.details

    long = "/home" + "/deep" * 100 + "/q.db"
    assert await said(f"the queue {long[:200] + chr(8230)!r} is bad", path=long) == (
        "the queue 'q.db' is bad",
        {"path": "q.db"},
    )
    assert await said("/srv/q.db is bad", path="/srv/q.db", at=1) == ("q.db is bad", {"path": "q.db", "at": 1})
    assert await said("a.py is bad", path="more/a.py") == ("a.py is bad", {"path": "more/a.py"})
    assert await said("no") == ("no", {})
    threads.close()
