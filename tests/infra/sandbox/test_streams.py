"""What a job says is kept, up to a limit."""

import asyncio
import time

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.jobs import Program


@pytest.fixture(scope="module")
def sandbox():
    """One for all tests of this file, as in a host."""
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


async def test_output_and_error_output_are_kept_apart(run_shell):
    ended = await run_shell("echo out; echo err >&2; exit 7")
    assert (ended.stdout, ended.stderr, ended.exit_code, ended.signal) == (b"out\n", b"err\n", 7, None)


async def test_output_beyond_the_limit_is_dropped_and_counted_while_the_job_goes_on(run_shell):
    ended = await run_shell("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; echo end", max_stdout=1000)
    assert ended.exit_code == 0
    assert ended.stdout == bytes(1000)
    assert ended.stdout_dropped == 3_000_000 + len("end\n") - 1000
    assert len(ended.stderr) == 256 * 1024
    assert ended.stderr_dropped == 2_000_000 - 256 * 1024


async def test_output_of_exactly_the_limit_is_not_cut(run_shell):
    ended = await run_shell("head -c 1000 /dev/zero", max_stdout=1000)
    assert (len(ended.stdout), ended.stdout_dropped) == (1000, 0)


async def test_a_job_that_never_stops_talking_is_ended_by_the_deadline(run_shell):
    ended = await run_shell("yes", seconds=0.3, max_stdout=1000)
    assert ended.timed_out
    assert ended.stdout == b"y\n" * 500
    assert ended.stdout_dropped > 0


async def test_the_event_loop_stays_free_while_a_job_floods_its_output(run_shell):
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await run_shell("head -c 20000000 /dev/zero")
    counting.cancel()
    assert turns > 100


async def test_a_job_that_closes_its_streams_is_waited_for(run_shell, tmp_path):
    ended = await run_shell("exec >&- 2>&-; sleep 0.1; touch reached")
    assert ended.exit_code == 0
    assert (tmp_path / "reached").exists()


async def test_a_program_that_is_not_there_is_told_as_such(sandbox, tmp_path, policy):
    job = Program(argv=("/no/such/program",), cwd=tmp_path, policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert "No such file or directory: '/no/such/program'" in ended.cannot_start


async def test_a_folder_that_is_not_there_is_told_as_such(sandbox, tmp_path, policy):
    job = Program(argv=("/bin/true",), cwd=tmp_path / "none", policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert "No such file or directory" in ended.cannot_start


@pytest.mark.parametrize("command", ["echo \0", "echo \ud800"], ids=["NUL", "half a character"])
async def test_a_command_that_no_program_can_be_given_is_told_as_such(run_shell, command):
    assert (await run_shell(command)).cannot_start


async def test_a_program_is_ended_by_a_closed_pipe_as_programs_expect(run_shell):
    ended = await run_shell("(yes; echo $? >&2) | head -n 1")
    assert ended.stdout == b"y\n"
    assert ended.stderr.strip() == b"141"


async def test_a_deadline_that_has_passed_ends_the_job_at_once(run_shell):
    ended = await run_shell("sleep 60", seconds=-1)
    assert ended.timed_out
    assert ended.gone


async def test_a_deadline_in_eternity_is_one(run_shell):
    assert (await run_shell("echo hi", seconds=float("inf"))).stdout == b"hi\n"
