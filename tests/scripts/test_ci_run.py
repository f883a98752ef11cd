"""`.ci/run`: stops at the first step that fails, keeps its exit code, and names what failed in its last lines."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 60
# What pytest prints at its end, and what scripts/judges.py does; the one has more below the names than a reader of the end sees.
TESTS = "FAILED tests/test_a.py::test_one - assert 1 == 2\nERROR tests/test_b.py::test_two\n" + "below\n" * 100
JUDGES = "FAILED       page: every screen (9 of 60 s) ended with 1\n    how its log ends\nfailed: page\n"


@pytest.fixture
def run(tmp_path):
    """Run the script over a Makefile whose steps print and end as told."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")

    def go(**steps):
        rules = []
        for step in ("lint", "test", "judges"):
            said, code = steps.get(step, (f"{step} is fine\n", 0))
            (tmp_path / step).write_text(said)
            rules.append(f".PHONY: {step}\n{step}:\n\t@cat {step}; exit {code}\n")
        (tmp_path / "Makefile").write_text("".join(rules))
        # Below another make, as the suite itself is, make would name the folders that it enters.
        variables = {
            name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
        }
        done = subprocess.run(
            [tmp_path / ".ci" / "run"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd="/",
            env=variables,
        )
        return done.returncode, done.stdout.splitlines()

    return go


def test_three_steps_pass_without_a_summary(run):
    assert run() == (0, ["lint is fine", "test is fine", "judges is fine"])


@pytest.mark.parametrize(
    ("step", "said", "last"),
    [
        (
            "test",
            TESTS,
            ["ERROR tests/test_b.py::test_two", "FAILED tests/test_a.py::test_one - assert 1 == 2"],
        ),
        ("judges", JUDGES, ["FAILED       page: every screen (9 of 60 s) ended with 1"]),
    ],
)
def test_the_last_lines_name_what_failed_and_no_later_step_runs(run, step, said, last):
    code, lines = run(**{step: (said, 1)})
    assert code == 2, "the exit code is that of make"
    assert lines[-1 - len(last) :] == [f"== .ci/run: make {step} failed with exit code 2", *last]
    assert ("judges is fine" in lines) is False


def test_where_no_test_is_named_the_last_lines_are_those_of_the_step(run):
    code, lines = run(lint=("a.py:1: error: wrong\n" + "x" * 1000 + "\n", 1))
    assert code == 2
    place = lines.index("== .ci/run: make lint failed with exit code 2")
    assert lines[place + 1 :][:2] == ["a.py:1: error: wrong", "x" * 300]
    assert "test is fine" not in lines
