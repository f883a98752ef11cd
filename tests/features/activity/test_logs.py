"""`crib logs`: calls of the journal and lines of a server's log, readable, in the order of their times, also while they come."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys

import pytest

from toolcrib import Crib, tool
from warm_python import WarmPython

SECRET = "sk-canary-0123456789"
SERVER = [
    {"time": "2026-11-17T15:00:00.000Z", "level": "info", "event": "request", "requestId": "r-1", "caller": "ada"}
    | {"method": "POST", "route": "/call/{name}", "status": 500, "ms": 12.34, "bytes": 88},
    {
        "time": "2026-11-17T14:00:00.000Z",
        "level": "error",
        "event": "call c-1: x failed",
        "traceback": "Traceback\n  x.py",
    },
]


@tool
def add(a: int) -> int:
    """Add."""
    return a + 1


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a call that went well, one that did not, and a server's log."""
    (tmp_path / "toolcrib.toml").write_text("")
    with Crib(tmp_path, tools=[add], caller="ada") as crib:
        assert crib.call_sync("add", a=1)
        assert not crib.call_sync("add", a="x\x1b[2J")
    (tmp_path / "server.log").write_text("".join(json.dumps(line) + "\n" for line in SERVER) + "no \x1b[2J JSON\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_calls_are_shown_with_how_they_ended(cli, project):
    ended = cli("logs")
    first, second = ended.out.splitlines()
    assert ended.code == 0
    assert " ok     host/add@1.0.0 for ada " in first
    assert first.endswith(" ms")
    assert " failed host/add@1.0.0 for ada " in second
    assert second.endswith(" VALIDATION refused=True")


def test_only_what_is_asked_for_is_shown(cli, project):
    assert len(cli("logs", "--failed").out.splitlines()) == 1
    assert len(cli("logs", "--tool", "add").out.splitlines()) == 2
    assert len(cli("logs", "-n", "1").out.splitlines()) == 1
    nothing = cli("logs", "--tool", "other")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "crib: nothing of this kind is logged\n")
    assert [json.loads(line)["tool"] for line in cli("logs", "--json").out.splitlines()] == ["host/add@1.0.0"] * 2


def test_the_log_of_a_server_stands_among_the_calls_in_the_order_of_time(cli, project):
    out = cli("logs", "server.log").out
    shown = out.splitlines()
    assert "no \\x1b[2J JSON" in shown[0]
    assert any(line.endswith(" error call c-1: x failed") for line in shown)
    assert "         Traceback\n           x.py\n" in out
    assert any(line.endswith(" 500 POST /call/{name} for ada 12.3 ms requestId=r-1 bytes=88") for line in shown)
    # Their times are fixed, and those of the calls are now.
    assert ["failed" in line or "500" in line for line in shown].index(True) < len(shown)


def test_a_log_is_read_from_standard_input(cli, project, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((project / "server.log").read_bytes())))
    assert len(cli("logs", "-", "--failed").out.splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.log"], "nowhere.log is not a file; name what `crib serve` wrote"),
        (["-", "server.log"], "- is read alone"),
        (["-n", "-1"], "-1 is not in the range"),
    ],
)
def test_wrong_use_is_told(cli, project, words, said):
    ended = cli("logs", *words)
    assert ended.code == 2
    assert said in ended.err


def test_what_happens_is_followed_until_it_is_interrupted(project):
    child = WarmPython(
        ["-m", "toolcrib", "logs", "--follow", "-n", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert "VALIDATION" in _line(child)
        with Crib(project, tools=[add], caller="bob") as crib:
            crib.call_sync("add", a=2)
        assert " ok     host/add@1.0.0 for bob " in _line(child)
    finally:
        os.kill(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (130, "crib: interrupted\n")


def test_no_line_shows_a_stored_secret_also_one_that_is_older_than_it(cli, project, monkeypatch):
    lines = [json.dumps({"level": "info", "event": f"sent {SECRET}", "header": {"auth": SECRET}}), f"curl -H {SECRET}"]
    (project / "other.log").write_text("".join(f"{line}\n" for line in lines))
    assert SECRET in cli("logs", "other.log").out
    with Crib(project) as crib:
        crib.secrets.set("API_KEY", SECRET)
    for words in (["other.log"], ["--json", "other.log"], ["-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((project / "other.log").read_bytes())))
        shown = cli("logs", *words).out
        assert "curl -H ***" in shown
        assert SECRET not in shown


def test_what_is_followed_shows_no_secret_that_is_stored_meanwhile(project):
    log = project / "other.log"
    log.write_text("begin\n")
    child = WarmPython(
        ["-m", "toolcrib", "logs", "--follow", "-n", "1", "other.log"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert _line(child)
        with Crib(project) as crib:
            crib.secrets.set("API_KEY", SECRET)
        with log.open("a") as file:
            file.write(f"curl -H {SECRET}\n")
        assert _line(child) == "curl -H ***\n"
    finally:
        os.kill(child.pid, signal.SIGINT)
        child.communicate(timeout=20)


def _line(child) -> str:
    assert select.select([child.stdout], [], [], 20)[0], "nothing was shown"
    return child.stdout.readline()
