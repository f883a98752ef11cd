"""No process survives its call."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soaks import size
from toolcrib.infra.sandbox.jobs import Program, PythonFile

pytestmark = pytest.mark.usefixtures("cold_launchers")
DAEMON = """
import os, time
def main(marker, file, wait=0):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(file, "w") as note:
                note.write("ready")
            os.execv("/bin/sleep", ["sleep", marker])
        os._exit(0)
    os.wait()
    while not os.path.exists(file):
        time.sleep(0.001)
    time.sleep(wait)
    return "done"
"""


async def test_a_daemon_of_a_script_does_not_survive_the_call(run_python, marker, holders, tmp_path):
    ended = await run_python(DAEMON, marker=marker, file=str(tmp_path / "note"))
    assert holders() == []
    assert ended.result == b'{"value": "done"}'
    assert ended.exit_code == 0
    assert ended.killed == 1
    assert ended.gone


async def test_a_daemon_does_not_survive_the_deadline(run_python, marker, holders, tmp_path):
    ended = await run_python(DAEMON, marker=marker, file=str(tmp_path / "note"), wait=60, seconds=0.5)
    assert holders() == []
    assert ended.timed_out
    assert ended.killed == 2
    assert ended.signal == signal.SIGTERM


async def test_children_in_the_background_are_ended_with_the_command(run_shell, marker, holders):
    ended = await run_shell(f"sleep {marker} & setsid sleep {marker} & echo started")
    assert holders() == []
    assert ended.stdout == b"started\n"
    assert ended.exit_code == 0
    assert not ended.timed_out


async def test_processes_that_ignore_the_polite_signal_are_killed(run_shell, marker, holders):
    command = f"trap '' TERM HUP INT; setsid sleep {marker} & (trap '' TERM; sleep {marker}) & echo up; sleep {marker}"
    ended = await run_shell(command, seconds=1.5)
    assert holders() == []
    assert ended.timed_out
    assert ended.signal == signal.SIGKILL
    assert ended.stdout == b"up\n"
    assert ended.gone


async def test_stopped_processes_are_killed(run_shell, marker, holders):
    ended = await run_shell(f"sleep {marker} & kill -STOP $!; echo $!")
    assert holders() == []
    assert ended.killed == 1


async def test_a_process_is_asked_to_end_before_it_is_killed(run_shell, tmp_path):
    ended = await run_shell("trap 'echo tidied up; exit 3' TERM; echo up; while :; do sleep 0.01; done", seconds=1.5)
    assert ended.stdout == b"up\ntidied up\n"
    assert ended.exit_code == 3
    assert ended.timed_out


async def test_a_process_that_tidies_up_is_asked_once(run_shell):
    ended = await run_shell("trap 'echo asked' TERM; while :; do sleep 0.01; done", seconds=1.5)
    assert ended.stdout == b"asked\n"
    assert ended.signal == signal.SIGKILL


async def test_a_chain_of_processes_that_keep_starting_others_comes_to_an_end(run_python, eventually, holders, marker):
    ended = await run_python(
        "import os, time\n"
        "def main(marker):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        for _ in range(10_000):\n"
        "            if os.fork(): os._exit(0)\n"
        "    time.sleep(0.05)\n",
        marker=marker,
    )
    assert ended.gone
    assert ended.exit_code == 0


# It tells the number of its supervisor and stays.
STAYING = DAEMON.replace('return "done"', "os.rename(file, f'{file}-{os.getppid()}'); time.sleep(60)")


@pytest.fixture
def signal_supervisor(eventually, tmp_path):
    async def send(number):
        notes = lambda: list(tmp_path.glob("note-*"))  # noqa: E731
        await eventually(notes)
        os.kill(int(notes()[0].name.removeprefix("note-")), number)

    return send


async def test_a_supervisor_that_is_killed_leaves_nothing_behind(
    run_python, marker, holders, eventually, tmp_path, signal_supervisor
):
    call = asyncio.create_task(run_python(STAYING, marker=marker, file=str(tmp_path / "note")))
    await signal_supervisor(signal.SIGKILL)
    with pytest.raises(Exception, match="the job's supervisor was killed"):
        await call
    await eventually(lambda: not holders())


async def test_a_supervisor_that_is_stopped_does_not_stop_the_clock(
    run_python, marker, holders, eventually, tmp_path, monkeypatch, signal_supervisor
):
    monkeypatch.setattr("toolcrib.infra.sandbox.attempt.PATIENCE_SECONDS", 0.3)
    call = asyncio.create_task(run_python(STAYING, marker=marker, file=str(tmp_path / "note"), seconds=1))
    await signal_supervisor(signal.SIGSTOP)
    ended = await call
    assert ended.timed_out
    assert not ended.gone
    await eventually(lambda: not holders())


async def test_cancelling_ends_every_process_before_it_goes_on(sandbox, marker, holders, eventually, tmp_path, policy):
    file = tmp_path / "note"
    arguments = {"marker": marker, "file": str(file), "wait": 60}
    job = PythonFile(
        path=tmp_path / "sample.py", code=DAEMON.encode(), entry="main", arguments=arguments, policy=policy
    )
    task = asyncio.create_task(sandbox.run(job, deadline=time.monotonic() + 60))
    await eventually(lambda: holders() and file.exists())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert holders() == []


async def test_cancelling_twice_does_not_leave_processes_behind(sandbox, marker, holders, eventually, tmp_path, policy):
    command = f"trap '' TERM; sleep {marker}; sleep {marker}"
    job = Program(argv=("/bin/sh", "-c", command), cwd=tmp_path, policy=policy)
    task = asyncio.create_task(sandbox.run(job, deadline=time.monotonic() + 60))
    await eventually(lambda: len(holders()) == 2)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert holders() == []


@pytest.mark.parametrize(
    "batches", [10, pytest.param(size(1_000), marks=[pytest.mark.soak, pytest.mark.timeout(3_600)])]
)
async def test_cancelling_at_any_moment_leaves_no_process_and_no_descriptor(
    sandbox, run_python, marker, holders, open_descriptors, eventually, tmp_path, policy, batches
):
    assert (await run_python("def main(): return 1")).result == b'{"value": 1}'
    before = open_descriptors()
    chance = random.Random(4711)

    async def call_and_cancel(number):
        command = f"sleep {marker} & setsid sleep {marker} & sleep {marker}"
        job = Program(argv=("/bin/sh", "-c", command), cwd=tmp_path, policy=policy)
        task = asyncio.create_task(sandbox.run(job, deadline=time.monotonic() + 60))
        await asyncio.sleep(chance.random() * 0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for batch in range(batches):
        await asyncio.gather(*(call_and_cancel(10 * batch + number) for number in range(10)))
        assert holders() == []
    assert open_descriptors() == before
    # One may be there for the next call.
    await eventually(lambda: len(_children_of(sandbox._launcher.pid)) <= 1)


@pytest.mark.parametrize("in_a_task", [False, True])
def test_a_job_of_a_loop_that_was_closed_leaves_no_process_and_no_descriptor(
    sandbox, run_python, marker, holders, open_descriptors, eventually, tmp_path, policy, in_a_task
):
    """Garbage collection closes its call, where nothing can be awaited."""
    asyncio.run(run_python("def main(): return 1"))
    before, loop = open_descriptors(), asyncio.new_event_loop()
    job = Program(argv=("/bin/sh", "-c", f"sleep {marker}"), cwd=tmp_path, policy=policy)
    call = loop.create_task(sandbox.run(job, deadline=time.monotonic() + 60))
    loop.run_until_complete(eventually(holders))
    loop.close()
    call._log_destroy_pending = False

    async def close():
        call.get_coro().close()

    if in_a_task:
        asyncio.run(close())
    else:
        call.get_coro().close()
    assert open_descriptors() == before
    asyncio.run(eventually(lambda: not holders()))
    assert sandbox._slots._free == sandbox._slots._jobs


def _children_of(process):
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


HOST = """
import asyncio, os, sys, time
from pathlib import Path
from toolcrib.infra.sandbox.host import Sandbox
from toolcrib.infra.sandbox.jobs import Program, SandboxPolicy
async def main(command, fork):
    job = Program(argv=("/bin/sh", "-c", command), cwd=Path("/"), policy=SandboxPolicy(read=(Path("/"),), programs=True))
    call = asyncio.create_task(Sandbox().run(job, deadline=time.monotonic() + 60))
    await asyncio.sleep(0)
    if fork == "fork" and os.fork() == 0:
        time.sleep(60)
    await call
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("fork", ["alone", "fork"])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
async def test_nothing_outlives_a_host_that_dies(fork, ending, marker, holders, eventually):
    """Not even if a fork of the host, which holds the sockets open, lives on."""
    sleepers = lambda: [process for process in holders() if _name_of(process) == "sleep"]  # noqa: E731
    command = f"setsid sleep {marker} & trap '' TERM; sleep {marker}; :"
    host = start_host(command, fork)
    try:
        await eventually(lambda: len(sleepers()) == 2)
        host.send_signal(ending)
        host.wait(10)
        await eventually(lambda: not [process for process in holders() if _name_of(process) in {"sleep", "sh"}])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(host.pid, signal.SIGKILL)
        host.wait(10)


def start_host(command, fork):
    return subprocess.Popen([sys.executable, "-c", HOST, command, fork], process_group=0)


def _name_of(process):
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""
