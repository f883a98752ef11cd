"""`crib request`, `builder`, `experiments` and `demo`: from a request on the command line to a tool that can be called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warm_python import WarmPython, run_python

SECONDS = 60
WANTED = """\
tool_request:
  name: shout_words
  description: "Say a text in capitals"
  priority: high
  requested_by: fullsend
  experiment_blocked: exp_loud
  inputs:
    - name: text
      type: string
      description: "What to say"
      required: true
  outputs:
    - name: loud
      type: string
  example_usage: |
    from tools.shout_words import shout

    print(shout(text="hello").loud)
"""
HONEST = 'def shout(text: str) -> dict:\n    return {"loud": text.upper()}\n'
LYING = 'def shout(text: str) -> dict:\n    return {"quiet": text}\n'


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """An empty project that is the current folder."""
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "toolcrib.toml").write_text("", encoding="utf-8")
    (folder / "request.yaml").write_text(WANTED, encoding="utf-8")
    for name, code in (("honest", HONEST), ("lying", LYING)):
        (folder / name).mkdir()
        (folder / name / "shout_words.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def crib(cli, *words: str) -> tuple[int, str, str]:
    ended = cli(*words)
    return ended.code, ended.out, ended.err


def file_it(cli) -> str:
    code, out, _ = crib(cli, "request", "new", "request.yaml")
    assert code == 0
    return out.strip()


@pytest.mark.spec("S0-01", "S0-35", "S0-37")
def test_a_request_is_filed_delivered_and_called(project, cli):
    request_id = file_it(cli)
    assert request_id.startswith("req_")
    assert "blocked  shout_words" in crib(cli, "experiments")[1]

    code, out, err = crib(cli, "request", "deliver", request_id, "lying")
    assert code == 1
    assert "loud" in err
    assert "not delivered" in err
    assert not (project / "tools" / "shout_words").exists()

    code, out, _ = crib(cli, "request", "deliver", "shout_words", "honest")
    assert (code, out) == (
        0,
        f"{request_id} is ready: tools/shout-words@1.0.0; try: crib show shout_words\n",
    )
    assert "ready" in crib(cli, "experiments")[1]
    assert json.loads(crib(cli, "call", "shout_words", "text=hello")[1]) == {"loud": "HELLO"}

    code, _, err = crib(cli, "request", "new", "request.yaml")
    assert code == 1
    assert "tools/shout-words@1.0.0 exists already" in err


def test_what_is_wrong_with_a_request_is_told_at_once_and_nothing_is_filed(project, cli):
    (project / "bad.yaml").write_text(
        WANTED.replace("type: string", "type: date").replace("  requested_by: fullsend\n", "")
    )
    code, out, err = crib(cli, "request", "new", "bad.yaml")
    assert code == 1
    assert out == ""
    assert "bad.yaml:1: requested_by: is missing" in err
    assert 'bad.yaml:8: inputs[0].type: the type "date" is unknown' in err
    assert "there are no such requests" in crib(cli, "request", "list")[1]


def test_warnings_are_told_and_strict_refuses_them(project, cli):
    (project / "odd.yaml").write_text(WANTED.replace("priority: high", "priority: HIGH"))
    code, _, err = crib(cli, "request", "new", "odd.yaml", "--strict")
    assert code == 1
    assert "HIGH" in err
    code, out, err = crib(cli, "request", "new", "odd.yaml", "--json")
    assert code == 0
    assert json.loads(out)["priority"] == "high"
    assert "warning: " in err


def test_a_dry_run_prints_and_files_nothing(project, cli):
    code, out, _ = crib(cli, "request", "new", "request.yaml", "--dry-run")
    assert (code, out) == (0, WANTED)
    assert "there are no such requests" in crib(cli, "request", "list")[1]


@pytest.mark.spec("S0-04")
def test_a_request_with_an_id_is_filed_once(project, cli):
    text = WANTED.replace("tool_request:\n", "tool_request:\n  id: req_20240115_001\n")
    (project / "numbered.yaml").write_text(text)
    assert crib(cli, "request", "submit", "numbered.yaml")[:2] == (0, "req_20240115_001\n")
    assert crib(cli, "request", "submit", "numbered.yaml")[:2] == (0, "req_20240115_001\n")
    (project / "numbered.yaml").write_text(text.replace("capitals", "italics"))
    code, _, err = crib(cli, "request", "submit", "numbered.yaml")
    assert code == 1
    assert "CONFLICT" in err
    assert crib(cli, "request", "show", "req_20240115_001", "--yaml")[1] == text
    code, _, err = crib(cli, "request", "submit", "request.yaml")
    assert code == 1
    assert "request.yaml: id: is missing; to have it numbered write: crib request new request.yaml" in err


def test_the_same_request_becomes_part_of_the_open_one(project, cli):
    request_id = file_it(cli)
    code, out, err = crib(cli, "request", "new", "request.yaml")
    assert (code, out.strip()) == (0, request_id)
    assert "built once" in err
    assert [found["requesters"] for found in json.loads(crib(cli, "request", "list", "--json")[1])] == [2]


def test_a_request_is_cancelled_and_taken_up_again(project, cli):
    request_id = file_it(cli)
    assert crib(cli, "request", "cancel", request_id, "--reason", "no need")[1] == f"{request_id} is cancelled\n"
    shown = crib(cli, "request", "show", request_id)[1]
    assert "no need" in shown
    assert crib(cli, "request", "deliver", request_id, "honest")[0] == 1
    assert crib(cli, "request", "watch", request_id)[0] == 1
    assert crib(cli, "request", "retry", request_id)[1] == f"{request_id} is pending\n"


def test_a_person_finds_a_workspace_and_delivers_it_without_naming_it(project, cli):
    request_id = file_it(cli)
    assert crib(cli, "builder", "run", "--once")[0] == 0
    shown = crib(cli, "request", "show", request_id)[1]
    assert "held for a person" in shown
    assert "begun:       1 time\n" in shown
    starter = next((project / ".toolcrib" / "builds" / request_id).rglob("package/shout_words.py"))
    code, _, err = crib(cli, "request", "deliver", request_id)
    assert code == 1, "the starter is not a tool"
    assert "not delivered" in err
    starter.write_text(HONEST, encoding="utf-8")
    assert crib(cli, "request", "deliver", request_id)[0] == 0


def test_watching_tells_every_step_and_ends_with_the_request(project, cli):
    request_id = file_it(cli)
    command = [sys.executable, "-m", "toolcrib", "request", "watch", request_id, "--json"]
    with WarmPython(command, stdout=subprocess.PIPE, text=True, cwd=project) as watching:
        assert json.loads(watching.stdout.readline())["step"] == "filed"
        assert crib(cli, "request", "deliver", request_id, "honest")[0] == 0
        told = watching.stdout.read()
        assert watching.wait(SECONDS) == 0
    lines = [json.loads(line) for line in told.splitlines()]
    assert "published" in [line.get("step") for line in lines]
    assert (lines[-1]["id"], lines[-1]["status"]) == (request_id, "ready")


def test_watching_without_anywhere_to_write_ends_in_order(project, cli):
    request_id = file_it(cli)
    crib(cli, "request", "cancel", request_id)
    command = f"{sys.executable} -m toolcrib request watch {request_id} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (1, f"crib: {request_id} is cancelled: cancelled\n")


def test_the_operator_adds_what_a_request_cannot(project, cli):
    request_id = file_it(cli)
    code, out, _ = crib(cli, "request", "allow", request_id, "--capability", "fs.read", "--host", "api.example.com")
    assert (code, out) == (0, f"{request_id} is allowed fs.read, api.example.com\n")
    code, _, err = crib(cli, "request", "allow", request_id, "--capability", "everything")
    assert code == 2
    assert "dotted name" in err
    for host in ("https://api.example.com/", "a b", "*"):
        code, out, err = crib(cli, "request", "allow", request_id, "--host", host)
        assert (code, out) == (2, "")
        assert f"--host: '{host}' is not a host; write api.example.com" in err
    (project / "answers.yaml").write_text("- url: https://api.example.com/\n  body: '{}'\n")
    code, out, _ = crib(cli, "request", "allow", request_id, "--answers", "answers.yaml", "--unproved")
    assert (code, out) == (0, f"{request_id} is allowed 1 recorded answer, unproved\n")
    allowed = json.loads(crib(cli, "audit", "--what", "request", "--json")[1])
    assert [event["about"] for event in allowed] == [request_id] * 2
    assert (allowed[0]["facts"]["capabilities"], allowed[1]["facts"]["unproved"]) == (["fs.read"], True)


def test_what_was_allowed_can_be_seen_and_is_taken_back_in_so_many_words(project, cli):
    request_id = file_it(cli)
    nothing = {"capabilities": [], "hosts": [], "answers": 0, "unproved": False}
    assert json.loads(crib(cli, "request", "show", request_id, "--json")[1])["allowance"] == nothing
    assert "allowed:" not in crib(cli, "request", "show", request_id)[1]

    (project / "answers.yaml").write_text("- url: https://api.example.com/\n  body: secret\n")
    words = ("--capability", "net.http", "--host", "api.example.com", "--answers", "answers.yaml", "--unproved")
    assert crib(cli, "request", "allow", request_id, *words)[0] == 0
    shown = crib(cli, "request", "show", request_id)[1]
    [line] = [line for line in shown.splitlines() if line.startswith("allowed:")]
    assert line.split(maxsplit=1)[1] == "net.http, api.example.com, 1 recorded answer, unproved"
    told = json.loads(crib(cli, "request", "show", request_id, "--json")[1])["allowance"]
    assert told == {"capabilities": ["net.http"], "hosts": ["api.example.com"], "answers": 1, "unproved": True}

    for words in ((), ("--nothing", "--host", "api.example.com")):
        code, _, err = crib(cli, "request", "allow", request_id, *words)
        assert (code, "or revoke all of it: --nothing" in err) == (2, True)
    assert "allowed:" in crib(cli, "request", "show", request_id)[1]
    assert crib(cli, "request", "allow", request_id, "--nothing")[0] == 0
    assert json.loads(crib(cli, "request", "show", request_id, "--json")[1])["allowance"] == nothing


def test_a_file_that_is_no_python_is_not_delivered(project, cli):
    request_id = file_it(cli)
    code, _, err = crib(cli, "request", "deliver", request_id, "request.yaml")
    assert (code, err) == (
        2,
        "crib: request.yaml is not a Python file; name NAME.py, by the name of the tool, or its folder\n",
    )


def test_a_search_in_vain_says_which_request_asks_for_it_now(project, cli):
    assert "list all tools with: crib list" in crib(cli, "search", "shout", "words")[2]
    (project / "toolcrib.toml").write_text("requests.missing = true\n")
    code, out, err = crib(cli, "search", "shout", "words")
    [filed] = json.loads(crib(cli, "request", "list", "--json")[1])
    assert (code, out, err) == (0, "", f"crib: no tool matches 'shout words'; it is requested as {filed['id']}\n")
    assert filed["name"] == "shout_words"
    assert crib(cli, "search", "shout", "words", "--json")[:2] == (0, "[]\n")


def test_without_a_terminal_no_person_is_asked(project, cli):
    code, _, err = crib(cli, "request", "new")
    assert code == 2
    assert "crib request new FILE" in err


def test_on_a_terminal_questions_become_a_request(project, cli, monkeypatch):
    answers = iter(
        [
            *("Bad Name", "count_letters", "Counts the letters of a text", "", ""),
            *("text", "", "The text", "", ""),
            *("count", "integer", "", ""),
            *("Must be quick: always", ""),
        ]
    )
    monkeypatch.setattr("toolcrib.features.requests.commands.may_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", type("Lines", (), {"readline": lambda self: f"{next(answers)}\n"})())
    code, out, _ = crib(cli, "request", "new", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["name"], told["priority"], told["warnings"]) == ("count_letters", "medium", [])
    assert '"Must be quick: always"' in told["yaml"] or "'Must be quick: always'" in told["yaml"]


def test_an_answer_on_the_terminal_that_no_request_can_hold_is_asked_for_again(project, cli, monkeypatch):
    answers = iter(
        [
            *("count_letters", "\x1b[31mred", "Counts letters", "", ""),
            *("class", "text", "", "The text", "", "text", ""),
            *("the count", "count", "integer", "", ""),
            *("\udcff", ""),
        ]
    )
    monkeypatch.setattr("toolcrib.features.requests.commands.may_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", type("Lines", (), {"readline": lambda self: f"{next(answers)}\n"})())
    code, out, err = crib(cli, "request", "new", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert "description: Counts letters" in told["yaml"]
    assert told["yaml"].count("- name:") == 2
    for words in ("without them", "no keyword", "text is listed already", "use letters, digits, '_', '-' and '.'"):
        assert words in err


def test_an_unknown_request_is_named(project, cli):
    for word in ("req_20240115_009", "nothing_here"):
        code, _, err = crib(cli, "request", "show", word)
        assert code == 1
        assert f"there is no request '{word}'" in err


def test_outside_of_a_project_there_is_nowhere_to_keep_a_request(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.yaml").write_text(WANTED)
    for words in (
        ("request", "new", "request.yaml"),
        ("request", "list"),
        ("experiments",),
        ("builder", "run", "--once"),
    ):
        code, _, err = crib(cli, *words)
        assert code == 2
        assert "crib init" in err


def test_a_builder_ends_in_order_when_it_is_told_to(project):
    command = [sys.executable, "-m", "toolcrib", "builder", "run"]
    with WarmPython(command, stdout=subprocess.PIPE, text=True, cwd=project) as builder:
        assert builder.stdout.readline().startswith("the Builder runs (person)")
        builder.send_signal(signal.SIGTERM)
        assert builder.wait(SECONDS) == 0


WAITING = """\
import signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("at work", flush=True)
time.sleep(600)
"""


def start_builder(project: Path, tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    """A Builder whose maker is at work and will never be done."""
    (tmp_path / "agent.py").write_text(WAITING, encoding="utf-8")
    command = json.dumps([sys.executable, str(tmp_path / "agent.py")])
    settings = f'[builder]\nmaker = "command"\ncommand = {command}\n'
    (project / "toolcrib.toml").write_text(settings, encoding="utf-8")
    started = [sys.executable, "-m", "toolcrib", "builder", "run", *words]
    return WarmPython(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=project)


def wait_until_it_works(project: Path, request_id: str) -> None:
    command = [sys.executable, "-m", "toolcrib", "request", "watch", request_id, "--json"]
    with WarmPython(command, stdout=subprocess.PIPE, text=True, cwd=project) as watching:
        while json.loads(watching.stdout.readline())["text"] != "at work":
            pass
        watching.terminate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_builder_that_runs_once_gives_back_what_it_holds_when_it_is_told_to_end(project, cli, tmp_path, number):
    request_id = file_it(cli)
    with start_builder(project, tmp_path, "--once") as builder:
        wait_until_it_works(project, request_id)
        builder.send_signal(number)
        out, err = builder.communicate(timeout=SECONDS)
    assert (builder.returncode, err) == (130, "")
    assert out.endswith(f"{request_id}: pending\n")
    assert list((project / ".toolcrib" / "builds").iterdir()) == []


def test_a_builder_that_is_told_twice_to_end_says_so_and_nothing_else(project, cli, tmp_path):
    request_id = file_it(cli)
    with start_builder(project, tmp_path) as builder:
        wait_until_it_works(project, request_id)
        # Two of a kind could arrive as one.
        for number in (signal.SIGINT, signal.SIGTERM):
            builder.send_signal(number)
        _, err = builder.communicate(timeout=SECONDS)
    assert (builder.returncode, err) == (130, "crib: interrupted\n")
    assert json.loads(crib(cli, "request", "list", "--json")[1])[0]["status"] == "pending"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('maker = "nobody"', "no maker is called 'nobody'; use one of person, command, openai"),
        ('maker = "command"', "builder.command names no program"),
        ('maker = "command"\ncommand = ["no-such-agent"]', "the program 'no-such-agent' was not found; install it"),
        ('maker = "command"\ncommand = ["./agent"]', "write its absolute path"),
        ('maker = "openai"', "builder.url names no endpoint"),
        ('maker = "openai"\nurl = "https://api.example.com/v1"', "builder.model names no model"),
    ],
)
def test_a_builder_that_could_build_nothing_does_not_begin(project, cli, settings, words):
    file_it(cli)
    (project / "toolcrib.toml").write_text(f"[builder]\n{settings}\n", encoding="utf-8")
    code, out, err = crib(cli, "builder", "run", "--once")
    assert (code, out) == (2, "")
    assert words in err
    assert json.loads(crib(cli, "request", "list", "--json")[1])[0]["status"] == "pending"


def test_the_demo_tells_the_whole_story(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = run_python(
        [sys.executable, "-m", "toolcrib", "demo", "missing-tool", "--keep", "kept", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = ("0 tools found", "exp_signup_cleanup is blocked", "refused: effects: ", "proved and live", "is ready")
    places = [done.stderr.index(step) for step in steps]
    assert places == sorted(places)
    told = json.loads(done.stdout)
    assert set(told) == {"steps", "value", "seconds"}
    assert [line for step in told["steps"] for line in step["lines"] if "proved and live" in line]
    assert told["value"] == {"valid": True, "domain": "example.com"}
    assert (tmp_path / "kept" / "tools" / "email_validator" / "tool.json").is_file()
