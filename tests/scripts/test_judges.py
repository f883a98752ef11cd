"""`make judges`: each judge within its time, and one whose packages cannot be had fails nothing."""

from __future__ import annotations

import importlib.util
import re
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


@pytest.fixture
def npm(tmp_path, judges, monkeypatch):
    """An npm that is these lines of shell."""

    def make(lines):
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setattr(judges, "OWN", tmp_path)

    return make


def test_a_judge_that_is_content_is_told_in_a_line_with_its_seconds(judges, judge, capsys):
    assert judges.judge_all([judge("print('hello')", minutes=10)], minutes=10) == 0
    assert re.fullmatch(
        r"ok           sample: it is fine \(\d+ of 600 s\)\n1 judges: 1 ok, 0 failed, 0 unreachable\n",
        capsys.readouterr().out,
    )
    assert (judge().place / "log").read_text() == "hello\n"


def test_a_judge_that_needs_most_of_its_time_is_told_as_slow(judges, judge, capsys, monkeypatch):
    monkeypatch.setattr(judges, "SLOW", 0.0)
    assert judges.judge_all([judge()], minutes=1) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" of 60 s) slow: more than 0% of its time")


def test_a_judge_that_is_not_content_fails_with_the_end_of_its_log(judges, judge, capsys):
    assert judges.judge_all([judge("print('bad', 'x' * 1000); raise SystemExit(3)")], minutes=1) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("FAILED       sample: it is fine (")
    assert told[0].endswith("ended with 3")
    assert told[1].startswith("    bad xxx")
    assert len(told[1]) == 304
    assert told[2] == "    all of it: .judges/sample/log"


def test_the_last_lines_repeat_what_failed_and_how_its_log_ends(judges, judge, npm, capsys):
    npm("echo 'error: Connection refused'; exit 1")
    bad = "for n in range(30): print(n)\nraise SystemExit(3)"
    asked = [
        judge(bad, name="one"),
        judge("", name="two", npm=("some-package",)),
        judge(bad, name="three"),
        judge("", name="four"),
    ]
    assert judges.judge_all(asked, minutes=4) == 2
    told = capsys.readouterr().out.splitlines()
    end = told[told.index("4 judges: 1 ok, 2 failed, 1 unreachable") + 1 :]
    shown = [f"    {number}" for number in range(18, 30)]
    assert [line.partition(" (")[0] for line in end] == [
        *["FAILED       one: ended with 3", *shown, "    all of it: .judges/one/log"],
        *["FAILED       three: ended with 3", *shown, "    all of it: .judges/three/log"],
        *["unreachable: two", "failed: one, three"],
    ]


def test_a_judge_that_does_not_end_is_ended_with_all_that_it_started(judges, judge, capsys, tmp_path):
    child = tmp_path / "child"
    command = ("sh", "-c", f"sleep 600 & echo $! > '{child}.new'; mv '{child}.new' '{child}'; wait")
    for seconds in (1, 5, 30):  # on a busy machine a shell may take longer to get there
        assert judges.judge_all([judge(command=command, minutes=seconds / 60)], minutes=1) == 1
        assert f"did not end within {seconds} s" in capsys.readouterr().out
        if child.exists():
            break
    place = Path("/proc", child.read_text().strip(), "cmdline")
    deadline = time.monotonic() + 25
    while place.exists() and place.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_judge_may_use_what_those_before_it_left_of_their_minutes(judges, judge):
    asked = [judge("", name="one", minutes=1), judge("", name="two", minutes=2), judge("", name="three", minutes=3)]
    clock = judges.Clock(5)
    assert clock.grant(asked[0]) == 60
    clock.used += 10
    assert clock.grant(asked[1]) == 170
    clock.used += 160
    assert clock.grant(asked[2]) == 130, "all of them together have five minutes"


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
        (
            "npm error code E503",
            1,
            0,
            "unreachable  sample: its packages cannot be fetched (npm error code E503)",
        ),
        ("error: no version 99 of that package", 1, 1, "FAILED       sample: it is fine ("),
    ],
)
def test_only_what_cannot_be_fetched_fails_nothing(judges, judge, npm, capsys, said, code, failed, told):
    npm(f"echo '{said}'; exit {code}")
    assert judges.judge_all([judge("", npm=("some-package",))], minutes=1) == failed
    assert capsys.readouterr().out.splitlines()[0].startswith(told)


def test_a_registry_that_is_too_slow_fails_nothing_and_takes_no_time_of_the_judges(
    judges, judge, npm, capsys, monkeypatch
):
    monkeypatch.setattr(judges, "FETCH_SECONDS", 0.1)
    npm("exec sleep 600")
    assert judges.judge_all([judge("", npm=("some-package",)), judge("", name="other", minutes=0.5)], minutes=0.5) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "unreachable  sample: its packages cannot be fetched (the registry was too slow)"
    assert told[1].startswith("ok           other: it is fine (")


def test_packages_are_fetched_once(judges, judge, npm, tmp_path):
    npm(f"echo fetched >> {tmp_path}/fetched")
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
