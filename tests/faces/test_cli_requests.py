"""`crib request`, `builder`, `experiments` and `demo`: from a wish on the command line to a tool that can be called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.__main__ import main

SECONDS = 60
WISH = """\
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
    (folder / "wish.yaml").write_text(WISH, encoding="utf-8")
    for name, code in (("honest", HONEST), ("lying", LYING)):
        (folder / name).mkdir()
        (folder / name / "shout_words.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def crib(capsys, *words: str) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def file_it(capsys) -> str:
    code, out, _ = crib(capsys, "request", "new", "wish.yaml")
    assert code == 0
    return out.strip()


@pytest.mark.spec("S0-01", "S0-35", "S0-37")
def test_a_wish_is_filed_delivered_and_called(project, capsys):
    request_id = file_it(capsys)
    assert request_id.startswith("req_")
    assert "blocked  shout_words" in crib(capsys, "experiments")[1]

    code, out, err = crib(capsys, "request", "deliver", request_id, "lying")
    assert code == 1
    assert "loud" in err
    assert "not delivered" in err
    assert not (project / "tools" / "shout_words").exists()

    code, out, _ = crib(capsys, "request", "deliver", "shout_words", "honest")
    assert (code, out) == (
        0,
        f"{request_id} is ready: tools/shout-words@1.0.0; try: crib show shout_words\n",
    )
    assert "ready" in crib(capsys, "experiments")[1]
    assert json.loads(crib(capsys, "call", "shout_words", "text=hello")[1]) == {"loud": "HELLO"}

    code, _, err = crib(capsys, "request", "new", "wish.yaml")
    assert code == 1
    assert "tools/shout-words@1.0.0 is there already" in err


def test_what_is_wrong_with_a_request_is_told_at_once_and_nothing_is_filed(project, capsys):
    (project / "bad.yaml").write_text(
        WISH.replace("type: string", "type: date").replace("  requested_by: fullsend\n", "")
    )
    code, out, err = crib(capsys, "request", "new", "bad.yaml")
    assert code == 1
    assert out == ""
    assert "requested_by" in err
    assert "date" in err
    assert "there are no such requests" in crib(capsys, "request", "list")[1]


def test_warnings_are_told_and_strict_refuses_them(project, capsys):
    (project / "odd.yaml").write_text(WISH.replace("priority: high", "priority: HIGH"))
    code, _, err = crib(capsys, "request", "new", "odd.yaml", "--strict")
    assert code == 1
    assert "HIGH" in err
    code, out, err = crib(capsys, "request", "new", "odd.yaml", "--json")
    assert code == 0
    assert json.loads(out)["priority"] == "high"
    assert "warning: " in err


def test_a_dry_run_prints_and_files_nothing(project, capsys):
    code, out, _ = crib(capsys, "request", "new", "wish.yaml", "--dry-run")
    assert (code, out) == (0, WISH)
    assert "there are no such requests" in crib(capsys, "request", "list")[1]


@pytest.mark.spec("S0-04")
def test_a_request_with_an_id_is_filed_once(project, capsys):
    text = WISH.replace("tool_request:\n", "tool_request:\n  id: req_20240115_001\n")
    (project / "request.yaml").write_text(text)
    assert crib(capsys, "request", "submit", "request.yaml")[:2] == (0, "req_20240115_001\n")
    assert crib(capsys, "request", "submit", "request.yaml")[:2] == (0, "req_20240115_001\n")
    (project / "request.yaml").write_text(text.replace("capitals", "italics"))
    code, _, err = crib(capsys, "request", "submit", "request.yaml")
    assert code == 1
    assert "CONFLICT" in err
    assert crib(capsys, "request", "show", "req_20240115_001", "--yaml")[1] == text
    assert crib(capsys, "request", "submit", "wish.yaml")[0] == 1


def test_the_same_wish_becomes_part_of_the_open_one(project, capsys):
    request_id = file_it(capsys)
    code, out, err = crib(capsys, "request", "new", "wish.yaml")
    assert (code, out.strip()) == (0, request_id)
    assert "built once" in err
    assert [found["wishes"] for found in json.loads(crib(capsys, "request", "list", "--json")[1])] == [2]


def test_a_request_is_cancelled_and_taken_up_again(project, capsys):
    request_id = file_it(capsys)
    assert crib(capsys, "request", "cancel", request_id, "--reason", "no need")[1] == f"{request_id} is cancelled\n"
    shown = crib(capsys, "request", "show", request_id)[1]
    assert "no need" in shown
    assert crib(capsys, "request", "deliver", request_id, "honest")[0] == 1
    assert crib(capsys, "request", "watch", request_id)[0] == 1
    assert crib(capsys, "request", "retry", request_id)[1] == f"{request_id} is pending\n"


def test_a_person_finds_a_workspace_and_delivers_it_without_naming_it(project, capsys):
    request_id = file_it(capsys)
    assert crib(capsys, "builder", "run", "--once")[0] == 0
    assert "held for a person" in crib(capsys, "request", "show", request_id)[1]
    starter = next((project / ".toolcrib" / "builds" / request_id).rglob("package/shout_words.py"))
    code, _, err = crib(capsys, "request", "deliver", request_id)
    assert code == 1, "the starter is no tool"
    assert "not delivered" in err
    starter.write_text(HONEST, encoding="utf-8")
    assert crib(capsys, "request", "deliver", request_id)[0] == 0


def test_watching_tells_every_step_and_ends_with_the_request(project, capsys):
    request_id = file_it(capsys)
    command = [sys.executable, "-m", "toolcrib", "request", "watch", request_id, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project) as watching:
        assert json.loads(watching.stdout.readline())["step"] == "filed"
        assert crib(capsys, "request", "deliver", request_id, "honest")[0] == 0
        told = watching.stdout.read()
        assert watching.wait(SECONDS) == 0
    assert '"published"' in told
    assert '"status": "ready"' in told


def test_the_operator_adds_what_a_request_cannot(project, capsys):
    request_id = file_it(capsys)
    code, out, _ = crib(capsys, "request", "allow", request_id, "--capability", "fs.read", "--host", "api.example.com")
    assert (code, out) == (0, f"{request_id} is allowed fs.read, api.example.com\n")
    code, _, err = crib(capsys, "request", "allow", request_id, "--capability", "everything")
    assert code == 2
    assert "dotted name" in err
    (project / "answers.yaml").write_text("- url: https://api.example.com/\n  body: '{}'\n")
    code, out, _ = crib(capsys, "request", "allow", request_id, "--answers", "answers.yaml", "--unproved")
    assert (code, out) == (0, f"{request_id} is allowed 1 recorded answer, unproved\n")


def test_without_a_terminal_nobody_is_asked(project, capsys):
    code, _, err = crib(capsys, "request", "new")
    assert code == 2
    assert "crib request new FILE" in err


def test_on_a_terminal_questions_become_a_request(project, capsys, monkeypatch):
    answers = iter(
        [
            *("Bad Name", "count_letters", "Counts the letters of a text", "", ""),
            *("text", "", "The text", "", ""),
            *("count", "integer", "", ""),
            *("Must be quick: always", ""),
        ]
    )
    monkeypatch.setattr("toolcrib.faces.cli.requesting.may_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", type("Lines", (), {"readline": lambda self: f"{next(answers)}\n"})())
    code, out, _ = crib(capsys, "request", "new", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["name"], told["priority"], told["warnings"]) == ("count_letters", "medium", [])
    assert '"Must be quick: always"' in told["yaml"] or "'Must be quick: always'" in told["yaml"]


def test_an_unknown_request_is_named(project, capsys):
    for word in ("req_20240115_009", "nothing_here"):
        code, _, err = crib(capsys, "request", "show", word)
        assert code == 1
        assert f"there is no request '{word}'" in err


def test_outside_of_a_project_there_is_nowhere_to_keep_a_request(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wish.yaml").write_text(WISH)
    code, _, err = crib(capsys, "request", "new", "wish.yaml")
    assert code == 2
    assert "crib init" in err


def test_a_builder_ends_in_order_when_it_is_told_to(project):
    command = [sys.executable, "-m", "toolcrib", "builder", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project) as builder:
        assert builder.stdout.readline().startswith("the Builder is here (person)")
        builder.send_signal(signal.SIGTERM)
        assert builder.wait(SECONDS) == 0


def test_the_demo_tells_the_whole_story(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "toolcrib", "demo", "missing-tool", "--keep", "kept"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = ("0 tools found", "exp_signup_cleanup is blocked", "refused: effects: ", "proved and live", "is ready")
    places = [done.stdout.index(step) for step in steps]
    assert places == sorted(places)
    assert (tmp_path / "kept" / "tools" / "email_validator" / "tool.json").is_file()
