"""Requests for missing tools on a server: the same words as on its machine, against a real one and against hostile ones."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tool_requests import allowance_of, recorded_answer
from toolcrib import Kind, ToolError
from toolcrib.client import remote_requests
from toolcrib.client.connection import Connection
from toolcrib.client.remote_crib import RemoteCrib
from warm_python import WarmPython

SECONDS = 60
ID = "req_20240115_001"
WANTED = """\
tool_request:
  name: {name}
  description: "Say a text in capitals"
  priority: high
  requested_by: fullsend
  experiment_blocked: exp_{name}
  inputs:
    - name: text
      type: string
      description: "What to say"
      required: true
  outputs:
    - name: loud
      type: string
"""
HONEST = 'def {name}(text: str) -> dict:\n    return {{"loud": text.upper()}}\n'
LYING = 'def {name}(text: str) -> dict:\n    return {{"quiet": text}}\n'


class Desk:
    """A client of a server, with files of its own; every tool has a name of its own."""

    def __init__(self, folder: Path, url: str, project: Path, name: str, cli) -> None:
        self.folder = folder
        self.url = url
        self.project = project
        self.name = name
        self._cli = cli
        for kind, code in (("honest", HONEST), ("lying", LYING)):
            (folder / kind).mkdir()
            (folder / kind / f"{name}.py").write_text(code.format(name=name))
        self.wanted = self.write("request.yaml", WANTED.format(name=name))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def made(self, kind: str) -> str:
        return str(self.folder / kind)

    def crib(self, *words: str) -> tuple[int, str, str]:
        """A command with --url."""
        return self._run(*words, "--url", self.url)

    def here(self, *words: str) -> tuple[int, str, str]:
        """A command on the machine of the server."""
        return self._run(*words, "-C", str(self.project))

    def _run(self, *words: str) -> tuple[int, str, str]:
        ended = self._cli(*words)
        return ended.code, ended.out, ended.err

    def file(self) -> str:
        code, out, err = self.crib("request", "new", self.wanted)
        assert code == 0, err
        return out.strip()


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A server in a process of its own, and its project."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tools").mkdir()
    (folder / "toolcrib.toml").write_text("")
    command = [sys.executable, "-u", "-m", "toolcrib", "serve", "--port", "0", "-C", str(folder)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home"))}
    with WarmPython(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as server:
        try:
            assert select.select([server.stdout or -1], [], [], SECONDS)[0], "the server did not start"
            yield server.stdout.readline().split()[-1], folder
        finally:
            server.terminate()
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture
def desk(served, tmp_path, cli, request):
    name = f"shout_{zlib.crc32(request.node.name.encode())}"
    return Desk(tmp_path, *served, name, cli)


@pytest.mark.spec("S0-01", "S0-35", "S0-37")
def test_a_request_is_filed_delivered_and_called_on_a_server(desk):
    request_id = desk.file()
    assert request_id.startswith("req_")
    shown = json.loads(desk.crib("request", "show", desk.name, "--json")[1])
    assert (shown["id"], shown["status"], [event["step"] for event in shown["history"]]) == (
        request_id,
        "pending",
        ["filed"],
    )
    assert shown == json.loads(desk.here("request", "show", request_id, "--json")[1])
    waiting = {one["id"]: one for one in json.loads(desk.crib("experiments", "--json")[1])}
    assert waiting[f"exp_{desk.name}"]["waitsFor"] == [desk.name]

    code, out, err = desk.crib("request", "deliver", request_id, desk.made("lying"))
    assert (code, out) == (1, "")
    assert "loud" in err
    assert "not delivered: " in err

    code, out, err = desk.crib("request", "deliver", desk.name, desk.made("honest"))
    address = f"tools/{desk.name.replace('_', '-')}@1.0.0"
    assert (code, out) == (0, f"{request_id} is ready: {address}; try: crib show {desk.name}\n")
    assert "sending 1 file to be proved" in err
    assert json.loads(desk.crib("call", desk.name, "text=hello")[1]) == {"loud": "HELLO"}
    waiting = {one["id"]: one for one in json.loads(desk.crib("experiments", "--json")[1])}
    assert waiting[f"exp_{desk.name}"]["status"] == "ready"

    code, _, err = desk.crib("request", "new", desk.wanted)
    assert code == 1
    assert f"{address} exists already" in err


@pytest.mark.spec("S0-04")
def test_a_request_with_an_id_is_filed_once_and_one_without_is_not_submitted(desk):
    text = WANTED.format(name=desk.name).replace("tool_request:\n", f"tool_request:\n  id: {ID}\n")
    file = desk.write("numbered.yaml", text)
    assert desk.crib("request", "submit", file)[:2] == (0, f"{ID}\n")
    assert desk.crib("request", "submit", file)[:2] == (0, f"{ID}\n")
    assert desk.crib("request", "show", ID, "--yaml")[1] == text
    desk.write("numbered.yaml", text.replace("capitals", "italics"))
    code, _, err = desk.crib("request", "submit", file)
    assert (code, "CONFLICT" in err) == (1, True)
    code, _, err = desk.crib("request", "submit", desk.wanted)
    assert code == 1
    assert "id: is missing" in err


def test_the_same_request_becomes_part_of_the_open_one_and_warnings_are_told(desk):
    request_id = desk.file()
    code, out, err = desk.crib("request", "new", desk.wanted)
    assert (code, out.strip(), "built once" in err) == (0, request_id, True)
    odd = desk.write("odd.yaml", WANTED.format(name=f"{desk.name}_b").replace("priority: high", "priority: HIGH"))
    code, _, err = desk.crib("request", "new", odd, "--strict")
    assert (code, "HIGH" in err) == (1, True)
    code, out, err = desk.crib("request", "new", odd, "--json")
    assert (code, json.loads(out)["priority"], "warning: " in err) == (0, "high", True)
    bad = desk.write("bad.yaml", "tool_request:\n  name: [\n")
    code, _, err = desk.crib("request", "new", bad)
    assert (code, f"{bad}:3" in err) == (1, True)
    names = [one["name"] for one in json.loads(desk.crib("request", "list", "--json")[1])]
    assert {desk.name, f"{desk.name}_b"} <= set(names)
    assert len(json.loads(desk.crib("request", "list", "--limit", "1", "--json")[1])) == 1
    assert desk.name not in desk.crib("request", "list", "--status", "failed")[1]


def test_who_watches_a_server_hears_of_a_delivery_from_the_other_side(desk):
    request_id = desk.file()
    command = [sys.executable, "-m", "toolcrib", "request", "watch", request_id, "--json", "--url", desk.url]
    with WarmPython(command, stdout=subprocess.PIPE, text=True) as watching:
        first = json.loads(watching.stdout.readline())
        assert desk.here("request", "deliver", request_id, desk.made("honest"))[0] == 0
        told = watching.stdout.read()
        assert watching.wait(SECONDS) == 0
    decoder, steps, place = json.JSONDecoder(), [first], 0
    while told[place:].strip():
        found, place = decoder.raw_decode(told, place)
        place += 1
        steps.append(found)
    *events, end = steps
    assert [found["number"] for found in events] == list(range(1, len(events) + 1))
    assert {"filed", "delivered", "published", "ready"} <= {found["step"] for found in events}
    assert (end["id"], end["status"]) == (request_id, "ready")


def test_a_request_is_cancelled_and_taken_up_again_on_a_server(desk):
    request_id = desk.file()
    assert desk.crib("request", "cancel", request_id, "--reason", "no need")[1] == f"{request_id} is cancelled\n"
    assert json.loads(desk.here("request", "show", request_id, "--json")[1])["error"] == "no need"
    code, out, err = desk.crib("request", "watch", request_id)
    assert (code, "cancelled" in out, "no need" in err) == (1, True, True)
    code, _, err = desk.crib("request", "deliver", request_id, desk.made("honest"))
    assert (code, "cancelled already" in err) == (1, True)
    assert desk.crib("request", "retry", request_id)[1] == f"{request_id} is pending\n"
    assert desk.crib("request", "retry", request_id)[0] == 1
    code, _, err = desk.crib("request", "cancel", "req_20240115_999")
    assert (code, "there is no request" in err) == (1, True)


def test_what_the_operator_adds_over_a_url_is_what_the_server_has(desk):
    request_id = desk.file()
    answers = desk.write("answers.yaml", "- url: https://api.example.com/\n  body: {a: [1]}\n")
    words = ("--capability", "fs.read", "--host", "api.example.com", "--answers", answers, "--unproved")
    code, out, err = desk.crib("request", "allow", request_id, *words)
    assert (code, out) == (0, f"{request_id} is allowed fs.read, api.example.com, 1 recorded answer, unproved\n"), err
    from toolcrib import Crib

    with Crib(desk.project) as crib:
        [filed] = [filed for filed in crib.requests.list() if filed.id == request_id]
    answer = recorded_answer(
        "https://api.example.com/", headers={"Content-Type": "application/json"}, body='{"a": [1]}'
    )
    assert filed.allowance == allowance_of("fs.read", hosts=("api.example.com",), answers=(answer,), unproved=True)
    shown = {"capabilities": ["fs.read"], "hosts": ["api.example.com"], "answers": 1, "unproved": True}
    assert json.loads(desk.crib("request", "show", request_id, "--json")[1])["allowance"] == shown
    code, _, err = desk.crib("request", "allow", request_id, "--host", "http://x")
    assert (code, "--host: 'http://x' is not a host" in err) == (2, True)


def test_a_package_is_read_here_and_what_is_no_package_is_not_sent(desk):
    request_id = desk.file()
    folder = desk.folder / "honest"
    (folder / "data.bin").write_bytes(b"\xff\x00")
    (folder / "link.py").symlink_to("/etc/passwd")
    code, _, err = desk.crib("request", "deliver", request_id, str(folder))
    assert (code, "is a link" in err, "not delivered: 1 complaint" in err) == (1, True, True)
    (folder / "link.py").unlink()
    history = json.loads(desk.crib("request", "show", request_id, "--json")[1])["history"]
    assert [event["step"] for event in history] == ["filed"]
    code, _, err = desk.crib("request", "deliver", request_id)
    assert (code, f"crib request deliver {request_id} PATH" in err) == (2, True)
    assert desk.crib("request", "deliver", request_id, str(folder))[0] == 0
    assert (desk.project / "tools" / desk.name / "data.bin").read_bytes() == b"\xff\x00"


FILED = {
    "id": ID,
    "name": "shout_words",
    "status": "pending",
    "priority": "high",
    "experiment": None,
    "tool": None,
    "error": None,
    "mergedInto": None,
    "owner": None,
    "held": False,
    "attempts": 0,
    "requesters": 1,
    "allowance": {"capabilities": [], "hosts": [], "answers": 0, "unproved": False},
    "createdAt": "2024-01-15T00:00:00Z",
    "updatedAt": "2024-01-15T00:00:00Z",
    "yaml": WANTED.format(name="shout_words").replace("tool_request:\n", f"tool_request:\n  id: {ID}\n"),
}
READY = {**FILED, "status": "ready", "tool": "tools/shout-words@1.0.0"}


def event(number: int) -> dict:
    return {"number": number, "at": "2024-01-15T00:00:00Z", "step": "progress", "text": f"step {number}"}


class Script:
    """Answers to what is asked about a request, one after the other; the last one stays."""

    def __init__(self, puppet, *answers: object) -> None:
        self.slept: list[float] = []
        self._answers = list(answers)
        puppet.say = self._say

    def _say(self, first_line: str) -> Iterator[bytes]:
        if "/history" not in first_line:
            return self._spell(READY)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return self._spell(answer)

    def _spell(self, answer: Any) -> Iterator[bytes]:
        if isinstance(answer, bytes):
            return iter([answer])
        status = "200 OK" if "kind" not in answer else "429 Too Many Requests"
        content = json.dumps(answer).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        return iter([head.encode() + content])

    def follow(self, url: str) -> tuple[list[int], object]:
        heard: list[int] = []
        with RemoteCrib(url) as crib:
            requests = remote_requests.RemoteRequests(crib.server, sleep=self.sleep)

            async def listen() -> None:
                async for found in requests.watch(ID):
                    heard.append(found.number)

            crib.run_sync(listen())
            return heard, requests.show(ID)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def news(status: str, *numbers: int) -> dict:
    return {"status": status, "history": [event(number) for number in numbers]}


def test_a_server_that_is_away_for_a_while_is_asked_again_from_where_it_was(puppet):
    busy = {"kind": "OVERLOADED", "detail": "256 clients listen already", "retryable": False}
    script = Script(puppet, news("building", 1, 2), b"", busy, news("building", 3), news("ready", 4))
    heard, filed = script.follow(puppet.url)
    assert (heard, filed.status, filed.tool) == ([1, 2, 3, 4], "ready", "tools/shout-words@1.0.0")
    assert script.slept == [remote_requests.AGAIN_SECONDS] * 2
    asked = [head.split(" ")[1].partition("?")[2] for head in puppet.heard[:-1]]
    assert asked == ["after=0", *["after=2&wait=25"] * 2, "after=2", "after=3&wait=25"]


def test_a_server_that_stays_away_is_told_and_so_is_one_that_was_never_there(puppet, monkeypatch):
    monkeypatch.setattr(remote_requests, "PATIENCE_SECONDS", 0.0)
    with pytest.raises(ToolError, match="try again") as raised:
        Script(puppet, news("building", 1), b"").follow(puppet.url)
    assert raised.value.kind is Kind.TRANSIENT
    with pytest.raises(ToolError):
        Script(puppet, b"").follow(puppet.url)


def test_a_server_that_refuses_is_not_asked_again(puppet):
    script = Script(puppet, news("building", 1), {"kind": "AUTH", "detail": "nobody may", "retryable": False})
    with pytest.raises(ToolError, match="nobody may") as raised:
        script.follow(puppet.url)
    assert raised.value.kind is Kind.AUTH
    assert script.slept == []


def test_a_server_that_does_not_wait_is_not_asked_all_the_time(puppet):
    script = Script(puppet, *[news("building")] * 5, news("ready", 1))
    assert script.follow(puppet.url)[0] == [1]
    assert len(script.slept) == 4
    assert all(0 < seconds <= remote_requests.QUIET_SECONDS for seconds in script.slept)


def test_where_too_many_listen_one_looks_now_and_then_for_as_long_as_it_takes(puppet, monkeypatch):
    monkeypatch.setattr(remote_requests, "PATIENCE_SECONDS", 2.0)
    busy = {"kind": "OVERLOADED", "detail": "256 clients listen already", "retryable": False}
    script = Script(puppet, news("building", 1), *[busy, news("building")] * 5, busy, news("ready", 2))
    assert script.follow(puppet.url)[0] == [1, 2]
    asked = [head.split(" ")[1].partition("?")[2] for head in puppet.heard[1:-1]]
    assert asked == ["after=1&wait=25", "after=1"] * 6


def test_whole_numbers_are_whole_however_a_server_spells_them(puppet):
    puppet.answer({**FILED, "attempts": 2.0, "requesters": 1e3})
    with RemoteCrib(puppet.url) as crib:
        filed = crib.requests.show(ID)
    assert (str(filed.attempts), str(filed.requesters)) == ("2", "1000")
    script = Script(puppet, news("building", 1.0), news("ready", 2.0))
    assert script.follow(puppet.url)[0] == [1, 2]
    assert any("after=1&" in head for head in puppet.heard)


def test_what_a_server_tells_twice_or_in_another_order_is_heard_once_and_in_order(puppet):
    script = Script(puppet, news("building", 2, 1), news("building", 2, 1, 3), news("ready", 1, 4, 2))
    assert script.follow(puppet.url)[0] == [1, 2, 3, 4]


@pytest.mark.parametrize("change", [{"status": "odd"}, {"yaml": None}, {"requesters": -1}, {"held": "no"}, {"id": 1}])
def test_an_answer_that_is_none_of_ours_is_refused(puppet, change):
    puppet.answer({**FILED, **change})
    with RemoteCrib(puppet.url) as crib, pytest.raises(ToolError, match="does not answer as this version"):
        crib.requests.show(ID)


def test_an_id_is_part_of_one_path_and_of_no_other(puppet):
    puppet.answer(FILED)
    with RemoteCrib(puppet.url) as crib:
        crib.requests.show("../tools?x=/#")
        for odd in ("", ".", ".."):
            with pytest.raises(ToolError, match="there is no request"):
                crib.requests.show(odd)
        assert crib.requests.package(ID) is None
    assert [head.split(" ")[1] for head in puppet.heard] == ["/requests/..%2Ftools%3Fx%3D%2F%23"]


def test_a_server_is_not_asked_to_prove_what_cannot_be_read(puppet, tmp_path):
    puppet.answer(FILED)
    with RemoteCrib(puppet.url) as crib, pytest.raises(ToolError) as raised:
        crib.run_sync(crib.requests.deliver(ID, tmp_path, print))
    assert raised.value.kind is Kind.VALIDATION
    assert "there is no shout_words.py" in raised.value.details["complaints"][0]
    assert [head.split(" ")[0] for head in puppet.heard] == ["GET"]


@pytest.mark.parametrize("path", ["/requests", "/requests/", f"/requests/{ID}/events", "/experiments"])
def test_a_path_of_the_server_is_not_its_url(path):
    with pytest.raises(ToolError, match="give the root URL of the server: http://127.0.0.1:1$"):
        Connection(f"http://127.0.0.1:1{path}", None)
