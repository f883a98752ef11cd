"""Processes that are forked before they are needed serve the next call, and no call depends on them."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.jobs import Effect, PythonFile, SandboxPolicy

WHO = "import os\ndef main(): return [os.getpid(), os.getppid()]"

pytestmark = [
    pytest.mark.skipif(not system.HAS_SUBREAPER, reason="nothing is forked ahead here"),
    pytest.mark.usefixtures("cold_launchers"),
]


def children_of(process: int) -> list[int]:
    return sorted(system.children_by_parent().get(process, []))


async def waiting(sandbox) -> tuple[int, int]:
    """The supervisor that waits for a call, and its worker."""
    until = time.monotonic() + 25
    while time.monotonic() < until:
        for supervisor in children_of(sandbox._launcher.pid):
            workers = children_of(supervisor)
            if len(workers) == 1 and not children_of(workers[0]):
                return workers[0], supervisor
        await asyncio.sleep(0.005)
    raise AssertionError("nobody waits")


async def run(sandbox, make_job, code=WHO, **more):
    job = replace(make_job(code), **more)
    return await sandbox.run(job, deadline=time.monotonic() + 60)


@pytest.fixture
def make_job(tmp_path, policy):
    def make(code):
        return PythonFile(path=tmp_path / "x.py", code=code.encode(), entry="main", arguments={}, policy=policy)

    return make


@pytest.fixture
async def ready(sandbox, make_job):
    """A sandbox that has run a job and has had a pause since."""
    await run(sandbox, make_job)
    return await waiting(sandbox)


async def test_the_next_job_runs_in_the_process_that_waited_for_it(sandbox, make_job, ready):
    ended = await run(sandbox, make_job)
    assert json.loads(ended.result)["value"] == list(ready)
    assert await waiting(sandbox) != ready


@pytest.mark.parametrize("which", [0, 1])
async def test_one_that_was_killed_while_it_waited_costs_no_call(sandbox, make_job, ready, which, eventually):
    os.kill(ready[which], signal.SIGKILL)
    await eventually(
        lambda: ready[which] not in system.descendants_of([sandbox._launcher.pid], system.children_by_parent())
    )
    for _ in range(3):
        ended = await run(sandbox, make_job)
        assert json.loads(ended.result)["value"] != list(ready)
    assert not Path(f"/proc/{ready[0]}").exists()


async def test_modules_that_were_not_preloaded_are_loaded_for_the_job(sandbox, make_job, ready, eventually):
    code = "import sys\ndef main(): return 'colorsys' in sys.modules"
    ended = await run(sandbox, make_job, code, imports=("colorsys",))
    assert json.loads(ended.result)["value"] is True
    await eventually(lambda: not Path(f"/proc/{ready[1]}").exists())


async def test_an_observed_job_runs_in_the_process_that_waited_for_it(sandbox, make_job, ready, tmp_path):
    closed = tmp_path / "closed"
    code = f"""import os
def main():
    try:
        open({str(closed)!r}, "w")
    except OSError as problem:
        return [os.getpid(), os.getppid(), problem.errno]"""
    ended = await run(sandbox, make_job, code, policy=replace(make_job(code).policy, observe=True, write=()))
    *who, problem = json.loads(ended.result)["value"]
    assert who == list(ready)
    assert problem in {errno.EACCES, errno.EROFS}
    assert Effect("write", str(closed), denied=True) in ended.effects


async def test_a_job_with_network_gets_a_worker_of_its_own(sandbox, make_job, ready):
    @contextlib.asynccontextmanager
    async def no_proxy(listener):
        yield

    job = make_job(WHO)
    job = replace(job, policy=replace(job.policy, network=True))
    ended = await sandbox.run(job, deadline=time.monotonic() + 60, proxy=no_proxy)
    worker, supervisor = json.loads(ended.result)["value"]
    assert supervisor == ready[1]
    assert worker != ready[0]
    assert not Path(f"/proc/{ready[0]}").exists()


async def test_no_call_waits_any_more_when_the_sandbox_is_closed(sandbox, ready):
    await asyncio.to_thread(sandbox.close)
    assert not any(Path(f"/proc/{process}").exists() for process in ready)


async def test_no_call_waits_any_more_when_the_launcher_was_killed(sandbox, ready, eventually):
    os.kill(sandbox._launcher.pid, signal.SIGKILL)
    await eventually(lambda: not any(Path(f"/proc/{process}").exists() for process in ready))


async def test_a_job_that_is_too_long_for_one_write_arrives_whole(sandbox, make_job, ready):
    words = ["x" * 1000] * 1000
    job = replace(make_job("def main(words): return sum(map(len, words))"), arguments={"words": words})
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert json.loads(ended.result)["value"] == 1_000_000


async def look_at_mounts(folder: str) -> None:
    """Print what jobs see in the folder after a mount over it, and after its end; each has a worker that was forked before."""
    policy = SandboxPolicy(read=(Path("/"),), programs=True)
    code = f"import os\ndef main(): return os.listdir({folder!r})"
    job = PythonFile(path=Path(folder, "x.py"), code=code.encode(), entry="main", arguments={}, policy=policy)
    sandbox = make_sandbox()
    try:
        for observe in (False, True):
            seen = []
            for command in (["true"], ["mount", "-t", "tmpfs", "none", folder], ["umount", folder]):
                await asyncio.to_thread(subprocess.run, command, check=True)
                ended = await sandbox.run(
                    replace(job, policy=replace(policy, observe=observe)), deadline=time.monotonic() + 60
                )
                seen.append(json.loads(ended.result or b"null")["value"])
                await waiting(sandbox)
            print(json.dumps(seen))
    finally:
        sandbox.close()


def test_a_mount_that_came_or_went_since_the_fork_is_seen_where_mounts_are_not_shared(tmp_path):
    (tmp_path / "below").touch()
    root = Path(__file__).parents[3]
    code = f"import sys\nsys.path += [{str(root)!r}, {str(root / 'tests/support')!r}]\n"
    code += "import asyncio\nfrom tests.infra.sandbox.test_ahead import look_at_mounts\n"
    code += f"asyncio.run(look_at_mounts({str(tmp_path)!r}))\n"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    own = ["unshare", *user, "--mount", "--propagation", "private"]
    if subprocess.run([*own, "true"], capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run([*own, sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[["below"], [], ["below"]]] * 2, done.stderr
