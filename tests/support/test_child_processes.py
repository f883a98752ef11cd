"""A child process ends with the test that started it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import child_processes

CONFTEST = """
import sys
sys.path[:0] = [{support!r}]
pytest_plugins = ["child_processes", "warm_launchers"]
"""
TESTS = """
import subprocess
import child_processes

child_processes.SECONDS = 0.2
left = []

def test_leaves_a_process():
    left.append(subprocess.Popen(["sleep", "60"]))

def test_comes_after_it():
    assert left[0].wait(10) == -9
"""


def test_a_test_that_leaves_a_process_fails_with_its_command_and_the_process_is_killed(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(support=str(Path(child_processes.__file__).parent)))
    (tmp_path / "test_two.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "it left process" in done.stdout, done.stdout + done.stderr
    assert ": sleep 60" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 passed, 1 error")
