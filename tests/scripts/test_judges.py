"""`make judges`: each judge within its time, and one whose packages cannot be had fails nothing."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def judges():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("toolcrib_scripts_judges", ROOT / "scripts" / "judges.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def judge(judges, tmp_path, monkeypatch):
    """Make a judge of a line of Python, in the environment of the tests."""
    monkeypatch.setattr(judges, "ROOT", tmp_path)
    monkeypatch.setattr(judges, "PLACES", tmp_path / ".judges")
    (tmp_path / "pyproject.toml").touch()

    def make(code="", **facts):
        usual = {"name": "sample", "about": "it is fine", "command": (sys.executable, "-c", code), "minutes": 1}
        return judges.Judge(**{**usual, **facts})

    return make


def test_a_judge_that_is_content_is_told_in_a_line(judges, judge, capsys):
    assert judges.judge_all([judge("print('hello')")], minutes=1) == 0
    assert capsys.readouterr().out.startswith("ok           sample: it is fine (")
    assert (judge().place / "log").read_text() == "hello\n"


def test_a_judge_that_is_not_content_fails_with_the_end_of_its_log(judges, judge, capsys):
    assert judges.judge_all([judge("print('bad', 'x' * 1000); raise SystemExit(3)"), judge("")], minutes=1) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("FAILED       sample: it is fine (")
    assert told[0].endswith("ended with 3")
    assert told[1].startswith("    bad xxx")
    assert len(told[1]) == 304
    assert told[2] == "    all of it: .judges/sample/log"


def test_a_judge_that_does_not_end_is_ended_with_all_that_it_started(judges, judge, capsys, tmp_path):
    command = ("sh", "-c", f"sleep 600 & echo $! > '{tmp_path}/child'; wait")
    assert judges.judge_all([judge(command=command, minutes=0.04)], minutes=1) == 1
    assert "did not end within 0 minutes" in capsys.readouterr().out
    place = Path("/proc", (tmp_path / "child").read_text().strip(), "cmdline")
    deadline = time.monotonic() + 20
    while place.exists() and place.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_judge_starts_when_no_time_is_left(judges, judge, capsys):
    assert judges.judge_all([judge("print('hello')")], minutes=0) == 1
    assert capsys.readouterr().out.splitlines()[0].endswith("no time is left of the 0 minutes for all")


@pytest.mark.parametrize(
    ("said", "code", "failed", "told"),
    [
        (
            "error: Connection refused",
            1,
            0,
            "unreachable  sample: its packages cannot be fetched (error: Connection refused)",
        ),
        (
            "npm ERR! code EAI_AGAIN",
            1,
            0,
            "unreachable  sample: its packages cannot be fetched (npm ERR! code EAI_AGAIN)",
        ),
        ("error: no version 99 of that package", 1, 1, "FAILED       sample: it is fine ("),
    ],
)
def test_only_what_cannot_be_fetched_fails_nothing(
    judges, judge, capsys, tmp_path, monkeypatch, said, code, failed, told
):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    npm.chmod(0o755)
    monkeypatch.setattr(judges, "OWN", tmp_path)
    assert judges.judge_all([judge("", npm=("some-package",))], minutes=1) == failed
    assert capsys.readouterr().out.splitlines()[0].startswith(told)


def test_packages_are_fetched_once(judges, judge, tmp_path, monkeypatch):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\necho fetched >> {tmp_path}/fetched\n")
    npm.chmod(0o755)
    monkeypatch.setattr(judges, "OWN", tmp_path)
    for names in (("one",), ("one",), ("one", "two")):
        assert judges.judge_all([judge("", npm=names)], minutes=1) == 0
    assert (tmp_path / "fetched").read_text() == "fetched\n" * 2


def test_every_judge_of_the_repository_can_be_read(judges):
    read = [judges.read_judge(file) for file in sorted((ROOT / "judges").glob("*.toml"))]
    assert read
    for judge in read:
        assert 0 < judge.minutes <= judges.MINUTES_FOR_ALL
        assert judge.about
        assert [word for word in judge.command if word.startswith("judges/") and not (ROOT / word).exists()] == []
    assert sum(judge.minutes for judge in read) <= judges.MINUTES_FOR_ALL


def test_a_key_that_is_none_is_refused_with_its_file(judges, judge, tmp_path):
    (tmp_path / "odd.toml").write_text('about = ""\ncommand = []\nminutes = 1\nhours = 1\n')
    with pytest.raises(SystemExit, match=r"odd.toml: .*'hours'; scripts/judges.py says which keys there are"):
        judges.read_judge(tmp_path / "odd.toml")
