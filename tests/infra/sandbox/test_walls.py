"""What a job gets from the host: nothing but what it was given."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import Program

STATE = """
import os, signal, resource
def main():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    mask = os.umask(0)
    return {
        "environment": dict(os.environ),
        "descriptors": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                        if os.path.exists(f"/proc/self/fd/{fd}") or os.path.islink(f"/proc/self/fd/{fd}")},
        "session": os.getsid(0) == os.getpid(),
        "umask": mask,
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "no_new_privs": status["NoNewPrivs"].strip(),
        "blocked": status["SigBlk"].strip(),
        "ignored": status["SigIgn"].strip(),
        "cwd": os.getcwd(),
    }
"""


async def test_a_script_sees_no_variable_of_the_host(run_python, monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "canary-4711")
    ended = await run_python(STATE)
    assert json.loads(ended.result)["value"]["environment"] == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": "/dev/shm/scratch",
        "HOME": "/dev/shm/scratch",
    }


async def test_no_process_of_the_sandbox_carries_a_variable_of_the_host(run_python, monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "canary-4711")
    ended = await run_python(
        "import os\n"
        "def main():\n"
        "    found, process = {}, os.getpid()\n"
        "    for _ in range(3):\n"
        "        try: found[process] = open(f'/proc/{process}/environ').read()\n"
        "        except PermissionError: found[process] = ''\n"
        "        process = int(open(f'/proc/{process}/stat').read().rpartition(')')[2].split()[1])\n"
        "    return found\n"
    )
    environments = json.loads(ended.result)["value"]
    assert len(environments) == 3
    assert "canary-4711" not in str(environments)


async def test_a_program_sees_only_the_variables_it_was_given(sandbox, tmp_path, policy, monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "canary-4711")
    job = Program(
        argv=("/usr/bin/env",), cwd=tmp_path, policy=policy, environment={"GIVEN": "yes", "HOME": "/", "TMPDIR": "/tmp"}
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert sorted(ended.stdout.splitlines()) == [b"GIVEN=yes", b"HOME=/", b"TMPDIR=/tmp"]


async def test_a_script_holds_its_streams_and_its_result_pipe_and_nothing_else(run_python, tmp_path):
    with (tmp_path / "open in the host").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        descriptors = json.loads((await run_python(STATE)).result)["value"]["descriptors"]
    kinds = {number: target.partition(":")[0] for number, target in descriptors.items() if "/fd" not in target}
    assert kinds.pop("0") == "/dev/null"
    assert kinds.pop("1") == kinds.pop("2") == "pipe"
    assert list(kinds.values()) == ["pipe"]


async def test_a_program_holds_its_streams_and_nothing_else(run_shell):
    ended = await run_shell("for fd in /proc/$$/fd/*; do readlink $fd; done")
    assert [line.partition(b":")[0] for line in ended.stdout.splitlines()] == [b"/dev/null", b"pipe", b"pipe"]


async def test_a_program_that_a_script_starts_does_not_get_the_result_pipe(run_python):
    ended = await run_python(
        "import subprocess\n"
        "def main():\n"
        "    return subprocess.run(['/bin/sh', '-c', 'for fd in /proc/$$/fd/*; do readlink $fd; done'],\n"
        "                          stdout=subprocess.PIPE, close_fds=False).stdout.decode()\n"
    )
    targets = json.loads(ended.result)["value"].splitlines()
    assert [target.partition(":")[0] for target in targets] == ["/dev/null", "pipe", "pipe"]


async def test_a_script_starts_in_a_clean_state_in_its_own_folder(run_python, tmp_path):
    state = json.loads((await run_python(STATE)).result)["value"]
    assert state["session"] is True
    assert state["umask"] == 0o077
    assert state["core"] == [0, 0]
    assert state["no_new_privs"] == "1"
    assert int(state["blocked"], 16) == 0
    assert state["cwd"] == str(tmp_path)


async def test_signals_that_the_host_ignores_or_blocks_reach_a_program(tmp_path, policy):
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    sandbox = make_sandbox()
    try:
        job = Program(argv=("/bin/grep", "-E", "SigBlk|SigIgn", "/proc/self/status"), cwd=tmp_path, policy=policy)
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    finally:
        sandbox.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGUSR1, before)
    # Signals 32 and 33 belong to the C library, which does not let them be changed; make starts its children with them ignored.
    of_the_library = 0b11 << 31
    assert [int(line.split()[1], 16) & ~of_the_library for line in ended.stdout.splitlines()] == [0, 0]


PEEK = """
import ctypes, os
def main():
    libc = ctypes.CDLL(None, use_errno=True)
    supervisor = os.pidfd_open(os.getppid())
    steal = [libc.syscall(438, supervisor, number, 0) for number in range(3, 12)]  # pidfd_getfd
    return {"dumpable": libc.prctl(3, 0, 0, 0, 0), "stolen": max(steal), "uid": os.getuid(), "pid": os.getpid()}
"""


async def test_a_script_is_an_ordinary_process(run_python):
    assert json.loads((await run_python(PEEK)).result)["value"]["dumpable"] == 1


def test_a_script_cannot_take_the_socket_of_its_supervisor():
    """Root may look into every process, so this host runs as another user."""
    host = (
        "import asyncio, sys, time\n"
        "from pathlib import Path\n"
        "from toolcrib.infra.sandbox.host import Sandbox\nfrom toolcrib.infra.sandbox.jobs import PythonFile, SandboxPolicy\n"
        "job = PythonFile(path=Path('/tmp/peek.py'), code=sys.argv[1].encode(), entry='main', arguments={}, policy=SandboxPolicy())\n"
        "print(asyncio.run(Sandbox().run(job, deadline=time.monotonic() + 60)).result.decode())\n"
    )
    somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        subprocess.run(
            [sys.executable, "-c", "import toolcrib"], check=True, timeout=30, capture_output=True, **somebody
        )
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("this interpreter lies where only root can start it")
    command = [sys.executable, "-W", "ignore", "-c", host, PEEK]
    answer = subprocess.run(command, capture_output=True, timeout=30, check=True, text=True, **somebody)
    peeked = json.loads(answer.stdout)["value"]
    assert peeked["uid"] != 0
    assert peeked["stolen"] == -1


async def test_the_launcher_needs_the_standard_library_alone(run_python):
    ended = await run_python(
        "import sys\n"
        "LOADED = [name.partition('.')[0] for name in sys.modules]\n"
        "def main():\n"
        "    return sorted(set(LOADED) - set(sys.stdlib_module_names) - {'__main__', 'sample', 'rye'})\n"
    )
    assert json.loads(ended.result)["value"] == []


@pytest.mark.usefixtures("cold_launchers")
async def test_heavy_modules_are_not_there_before_a_script_needs_them(run_python):
    ended = await run_python("import sys\nNAMES = set(sys.modules)\ndef main():\n    return sorted(NAMES)")
    assert not {"asyncio", "typing", "dataclasses", "inspect", "subprocess"} & set(json.loads(ended.result)["value"])


@pytest.mark.parametrize(("seconds", "room"), [(100, 0.5), (1, 0.1)])
def test_a_job_is_ended_early_enough_to_answer_by_the_deadline(seconds, room):
    deadline = time.monotonic() + seconds
    assert deadline - kill_time(deadline) == pytest.approx(room, abs=0.01)


@pytest.mark.parametrize("seconds", [100, 1, 0.1, -5])
def test_a_job_has_all_its_time_where_the_answer_may_come_later(seconds):
    deadline = time.monotonic() + seconds
    assert kill_time(deadline, 0.5) == deadline


def test_a_host_that_starts_foreign_code_closes_its_memory_first(tmp_path):
    host = (
        "import asyncio, ctypes, pathlib, time\n"
        "from toolcrib.infra.sandbox.host import Sandbox\nfrom toolcrib.infra.sandbox.jobs import Program, SandboxPolicy\n"
        "libc = ctypes.CDLL(None)\nbefore = libc.prctl(3, 0, 0, 0, 0)\nsandbox = Sandbox()\n"
        "job = Program(argv=('/bin/true',), cwd=pathlib.Path('/'), policy=SandboxPolicy(read=(pathlib.Path('/'),)))\n"
        "asyncio.run(sandbox.run(job, deadline=time.monotonic() + 60))\n"
        "print(before, libc.prctl(3, 0, 0, 0, 0))\nsandbox.close()\n"
    )
    answer = subprocess.run([sys.executable, "-c", host], capture_output=True, timeout=20, check=True)
    assert answer.stdout.split() == [b"1", b"0"]
