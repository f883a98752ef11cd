"""A test that leaves a process, a thread or a descriptor fails, and says which."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import leaks

CONFTEST = """
import sys
sys.path[:0] = [{support!r}]
pytest_plugins = ["leaks", "warm_launchers", "repeat_command"]
"""
TESTS = """
import os, socket, subprocess, threading
import pytest
import leaks

leaks.SECONDS = 0.2
left, end = [], threading.Event()

def test_leaves_a_process():
    left.append(subprocess.Popen(["sleep", "60"]))

def test_comes_after_it():
    assert left[0].wait(10) == -9

def test_leaves_a_thread():
    threading.Thread(target=end.wait, args=(60,), name="its thread").start()

def test_leaves_a_descriptor():
    left.append(os.open("/etc/passwd", os.O_RDONLY))

def test_leaves_only_garbage():
    thing = [os.fdopen(os.open("/etc/hosts", os.O_RDONLY), "rb", closefd=True)]
    thing[0].close()
    thing.append(thing)

def test_leaves_a_socket_to_the_collector():
    thing = [socket.socket()]
    thing.append(thing)

def test_fails_with_a_socket():
    thing = socket.socket()
    assert not thing

def test_ends_what_others_left():
    end.set()
    os.close(left[1])

class Owner:
    def __init__(self):
        self.files = []

@pytest.fixture(scope="module")
def tidy():
    owner = Owner()
    yield owner
    for file in owner.files:
        os.close(file)

@pytest.fixture(scope="module")
def untidy():
    return Owner()

def test_opens_late_what_a_fixture_of_the_module_closes(tidy):
    tidy.files.append(os.open("/etc/group", os.O_RDONLY))

def test_opens_late_what_nothing_closes(untidy):
    untidy.files.append(os.open("/etc/shells", os.O_RDONLY))

def test_uses_it_last(tidy, untidy):
    pass
"""


def test_what_a_test_leaves_fails_it_and_no_other(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(support=str(Path(leaks.__file__).parent)))
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "test_two.py").write_text(TESTS)
    words = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    failed = {
        line.split()[1].partition("::")[2]: line for line in done.stdout.splitlines() if line[:5] in {"ERROR", "FAILE"}
    }
    assert {
        "test_leaves_a_process",
        "test_leaves_a_thread",
        "test_leaves_a_descriptor",
        "test_leaves_a_socket_to_the_collector",
        "test_fails_with_a_socket",
        "test_uses_it_last",
    } == set(failed), done.stdout + done.stderr
    for words in (
        ": sleep 60",
        ": its thread, in ",
        ": /etc/passwd",
        "ResourceWarning: unclosed <socket",
        "the tests that used untidy left descriptor",
    ):
        assert words in done.stdout, done.stdout
    assert "/etc/group" not in done.stdout.partition("the tests that used untidy left ")[2].splitlines()[0]
    [repeat] = [line for line in done.stdout.splitlines() if line.startswith("repeat: ")]
    assert shlex.split(repeat)[-1].startswith("test_two.py::test_")
    assert Path(shlex.split(repeat)[1]).name.startswith("python")
