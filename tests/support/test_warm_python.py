"""A warm Python behaves as one that was just started, or the tests that start one would prove nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from leaks import LEAKS
from warm_python import WarmPython, run_python

PROGRAMS = {
    "words and path": "import sys; print(sys.argv, sys.path[0], __name__, sys.flags.interactive)",
    "exit code": "raise SystemExit(7)",
    "exit text": "raise SystemExit('bad')",
    "output that was not flushed": "import sys; sys.stdout.write('half a line')",
    "what runs at the end": "import atexit; atexit.register(print, 'at the end'); print('first')",
    "a thread that outlives the main one": "import threading; threading.Timer(0.05, print, ['late']).start()",
    "variables": "import os; print(sorted(os.environ.items()))",
    "a folder": "import os; print(os.getcwd())",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:3])",
    "signals": "import signal; print(*(signal.getsignal(n) in (0, 1) for n in (2, 13, 15)))",
    "input": "import sys; print(sys.stdin.read().upper())",
    "an exit by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_ends_as_a_cold_one_does(program, tmp_path):
    options = {
        "input": "some input",
        "capture_output": True,
        "text": True,
        "cwd": tmp_path,
        "env": {"PATH": os.environ["PATH"], "ONE": "1", "LC_CTYPE": "C.UTF-8"},
        "timeout": 50,
    }
    words = ["-c", program, "a", "b c"]
    cold = subprocess.run([sys.executable, *words], check=False, **options)
    warm = run_python(words, **options)
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_it_runs_modules_and_files(tmp_path):
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "file.py").write_text("import sys, beside\nprint(__name__, beside.NAME, sys.argv[1:])\n")
    assert run_python([tmp_path / "file.py", "x"], capture_output=True, text=True).stdout == "__main__ beside ['x']\n"
    words = [sys.executable, "-m", "file", "x"]
    assert run_python(words, capture_output=True, text=True, cwd=tmp_path).stdout == "__main__ beside ['x']\n"
    assert run_python(["-m", "toolcrib", "nonsense"], stderr=subprocess.DEVNULL).returncode == 2


def test_it_is_a_child_that_can_be_signalled_and_waited_for():
    with WarmPython(
        ["-u", "-c", "import time\nprint('here')\ntime.sleep(60)"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "here\n"
        assert child.poll() is None
        told = Path(f"/proc/{child.pid}/stat").read_text()
        assert int(told.rpartition(")")[2].split()[1]) == os.getpid()
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == -signal.SIGTERM


def test_it_gets_a_session_of_its_own():
    code = "import os; print(os.getsid(0) == os.getpid())"
    for own in (True, False):
        done = run_python(["-c", code], capture_output=True, text=True, start_new_session=own)
        assert done.stdout == f"{own}\n"


def test_the_process_that_forks_outlives_a_failed_test_that_started_it():
    with WarmPython(["-c", "input()"], stdin=subprocess.PIPE) as process:
        assert warm_python.start().pid != process.pid
        assert {number for kind, number in LEAKS.new() if kind == "process"} == {process.pid}
        process.kill()


def test_a_start_that_was_interrupted_leaves_no_answer_to_the_next(monkeypatch):
    first = warm_python.start()
    receive = first._socket.recv

    class Interrupted:
        def __getattr__(self, name):
            return getattr(first_socket, name)

        def recv(self, size):
            receive(size)  # the process was started
            raise KeyboardInterrupt

    first_socket = first._socket
    monkeypatch.setattr(first, "_socket", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        WarmPython(["-c", "pass"])
    assert run_python(["-c", "print(1)"], capture_output=True, text=True).stdout == "1\n"
    assert warm_python.start() is not first
