"""The launcher: one for all calls, started when it is needed, replaced when it is gone."""

import asyncio
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox.jobs import Program, PythonFile

pytestmark = pytest.mark.usefixtures("cold_launchers")


def is_alive(process):
    return Path(f"/proc/{process}").exists()


async def test_nothing_starts_before_the_first_job(sandbox):
    assert sandbox._launcher is None
    sandbox.close()


async def test_every_call_has_a_fresh_process_out_of_the_same_launcher(run_python):
    code = "import os\nseen = []\ndef main():\n    seen.append(1)\n    return [os.getpid(), os.getppid(), len(seen)]"
    first, second = [json.loads((await run_python(code)).result)["value"] for _ in range(2)]
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert first[2] == second[2] == 1


async def test_fifty_calls_at_once_each_get_their_own_answer(run_python, open_descriptors):
    before = (await run_python("def main(): return 0")) and open_descriptors()
    code = "import sys\ndef main(x):\n    print(x); print(-x, file=sys.stderr)\n    return x"
    calls = await asyncio.gather(*(run_python(code, x=number, seconds=30) for number in range(50)))
    for number, ended in enumerate(calls):
        assert json.loads(ended.result)["value"] == number
        assert (ended.stdout, ended.stderr) == (b"%d\n" % number, b"%d\n" % -number)
    assert open_descriptors() == before


async def test_a_launcher_that_was_killed_is_started_anew(sandbox, run_python):
    await run_python("def main(): return 1")
    first = sandbox._launcher.pid
    os.kill(first, signal.SIGKILL)
    assert (await run_python("def main(): return 2")).result == b'{"value": 2}'
    assert sandbox._launcher.pid != first


async def test_calls_under_a_launcher_that_is_killed_are_ended(sandbox, run_shell, marker, holders, eventually):
    call = asyncio.create_task(run_shell(f"setsid sleep {marker} & trap '' TERM; sleep {marker}; :"))
    await eventually(lambda: len(holders()) >= 3)
    os.kill(sandbox._launcher.pid, signal.SIGKILL)
    ended = await call
    assert holders() == []
    assert ended.gone
    assert not ended.timed_out


async def test_a_launcher_that_hangs_fails_the_call_and_is_replaced(sandbox, run_python, monkeypatch):
    monkeypatch.setattr("toolcrib.infra.sandbox.attempt.PATIENCE_SECONDS", 0.3)
    await run_python("def main(): return 1")
    launcher = sandbox._launcher.pid
    os.kill(launcher, signal.SIGSTOP)
    with pytest.raises(ToolError) as caught:
        await run_python("def main(): return 2", seconds=0.1)
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE
    assert caught.value.retryable
    assert not is_alive(launcher)
    assert (await run_python("def main(): return 3")).result == b'{"value": 3}'


async def test_a_launcher_that_keeps_dying_is_not_started_for_ever(sandbox, run_python):
    with pytest.raises(ToolError) as caught:
        for _ in range(30):
            assert (await run_python("def main(): return 1")).exit_code == 0
            os.kill(sandbox._launcher.pid, signal.SIGKILL)
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE
    assert "ended 10 times within 60 s" in caught.value.message


async def test_closing_ends_the_launcher_and_the_calls_under_it(sandbox, run_shell, marker, holders, eventually):
    call = asyncio.create_task(run_shell(f"setsid sleep {marker} & trap '' TERM; sleep {marker}; :"))
    await eventually(lambda: len(holders()) >= 3)
    launcher = sandbox._launcher.pid
    sandbox.close()
    assert not is_alive(launcher)
    assert holders() == []
    assert (await call).gone


async def test_a_closed_sandbox_starts_again_for_the_next_job(sandbox, run_python):
    await run_python("def main(): return 1")
    sandbox.close()
    sandbox.close()
    assert (await run_python("def main(): return 2")).result == b'{"value": 2}'


def test_one_sandbox_serves_several_event_loops(sandbox, tmp_path, policy):
    job = PythonFile(
        path=tmp_path / "sample.py", code=b"def main(): return 1", entry="main", arguments={}, policy=policy
    )
    answers = []

    def work():
        answers.append(asyncio.run(sandbox.run(job, deadline=time.monotonic() + 60)).result)

    work()
    work()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [b'{"value": 1}'] * 6


def test_a_fork_of_the_host_gets_a_launcher_of_its_own(sandbox, tmp_path, policy):
    job = Program(argv=("/bin/sh", "-c", "echo hi"), cwd=tmp_path, policy=policy)
    run = lambda: asyncio.run(sandbox.run(job, deadline=time.monotonic() + 60)).stdout  # noqa: E731
    assert run() == b"hi\n"
    launcher = sandbox._launcher.pid
    child = os.fork()
    if child == 0:
        try:
            answer = run() == b"hi\n" and sandbox._launcher.pid != launcher
            sandbox.close()
        except BaseException:
            os._exit(2)
        os._exit(0 if answer else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run() == b"hi\n"
    assert sandbox._launcher.pid == launcher


async def test_a_host_without_room_for_descriptors_says_so_and_leaks_none(sandbox, run_python, open_descriptors):
    import resource

    await run_python("def main(): return 1")
    before = open_descriptors()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        free = [number for number in range(max(before) + 20) if number not in before]
        for room in range(8):
            # The facts that findings depend on are read again too, and cannot be.
            sandbox._findings._checked_at = 0.0
            resource.setrlimit(resource.RLIMIT_NOFILE, (free[room], limits[1]))
            with pytest.raises(ToolError) as caught:
                await run_python("def main(): return 2")
            assert caught.value.kind is Kind.OVERLOADED
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert open_descriptors() == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
