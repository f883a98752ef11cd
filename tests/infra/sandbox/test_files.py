"""The files of a job: what it declares is what it reaches, and what is fixed or closed stays so."""

import asyncio
import fcntl
import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox.jobs import OneFile, Program, PythonFile, SandboxPolicy, WorkspacePolicy, build_policy

REFUSED = ("EACCES", "EPERM", "EROFS")
READ = "open(path).read()"
LIST = "os.listdir(path)"
WRITE = "open(path, 'w')"


async def test_without_capabilities_a_job_reads_its_own_folder_and_nothing_beside(
    attempt, confine, tmp_path, workspace
):
    (tmp_path / "outside").write_text("secret")
    policy = confine()
    assert await attempt([READ], policy, path=tmp_path / "tool" / "file") == ["done"]
    for path in (tmp_path / "outside", workspace / "file", "/etc/shadow", "/proc/1/environ"):
        assert await attempt([READ], policy, path=path) == ["EACCES"]
    for path in (tmp_path, workspace, "/", "/proc", "/root", "/tmp"):
        assert await attempt([LIST], policy, path=path) == ["EACCES"]


async def test_a_link_and_a_way_around_lead_nowhere_else(attempt, confine, tmp_path):
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "tool" / "link").symlink_to(tmp_path / "outside")
    acts = [
        "open(f'{folder}/tool/link').read()",
        "open(f'{folder}/tool/../outside').read()",
        "open(f'/proc/self/root{folder}/outside').read()",
        "open(f'/proc/self/cwd/../outside').read()",
        "os.link(f'{folder}/outside', tempfile.mkdtemp() + '/x')",
        "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    ]
    outcomes = await attempt(acts, confine(), folder=tmp_path)
    assert set(outcomes) <= {"EACCES", "EXDEV", "EROFS", "EPERM"}


async def test_reading_the_workspace_is_a_capability_and_writing_it_another(attempt, confine, workspace):
    acts = [READ, WRITE, "os.unlink(path)"]
    file = workspace / "file"
    assert await attempt(acts, confine("fs.read"), path=file) == ["done", "EROFS", "EROFS"]
    assert file.read_text() == "of the workspace"
    assert await attempt(acts, confine("fs.write"), path=file) == ["EACCES", "done", "done"]
    assert not file.exists()
    acts = [
        "os.mkdir(f'{path}/a')",
        "open(f'{path}/a/b', 'w').write('1')",
        "os.rename(f'{path}/a/b', f'{path}/c')",
        LIST,
    ]
    assert await attempt(acts, confine("fs.read", "fs.write"), path=workspace) == ["done"] * 4
    assert (workspace / "c").read_text() == "1"


async def test_a_file_that_may_only_be_read_cannot_be_changed_in_any_way(attempt, confine, tmp_path):
    file = tmp_path / "tool" / "file"
    before = file.stat()
    acts = [
        "os.chmod(path, 0o777)",
        "os.fchmod(os.open(path, os.O_RDONLY), 0o777)",
        "os.utime(path, (0, 0))",
        "os.setxattr(path, 'user.note', b'x')",
        "os.truncate(path, 0)",
        "os.chown(path, os.getuid(), os.getgid())",
        "os.rename(path, path + '2')",
        "os.symlink('x', path + '3')",
        "os.mkfifo(path + '4')",
        "import fcntl; fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40086602, bytes(8))",
    ]
    outcomes = await attempt(acts, confine(), path=file)
    assert set(outcomes) <= set(REFUSED)
    after = file.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert sorted(entry.name for entry in file.parent.iterdir()) == ["file"]


async def test_the_files_of_the_system_are_closed_to_writing_even_for_root(attempt, confine):
    unused = f"/tmp/{os.urandom(8).hex()}"
    paths = ["/etc/passwd", unused, "/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj", "/dev/shm/../new"]
    for path in paths:
        (outcome,) = await attempt([WRITE], confine("fs.read", "fs.write", "shell.execute"), path=path)
        assert outcome in REFUSED, path
    assert not Path("/dev/new").exists()


async def test_a_scratch_folder_is_there_for_one_call_alone(attempt, confine):
    acts = [
        "open(os.environ['TMPDIR'] + '/note', 'x').write('mine')",
        "assert os.environ['TMPDIR'] == os.environ['HOME'] == tempfile.gettempdir()",
        "assert os.listdir(os.environ['TMPDIR']) == ['note']",
        "open('/dev/shm/memory', 'x')",
        "import shutil; shutil.copy2(__import__('json').__file__, os.environ['TMPDIR'])",
    ]
    for _ in range(2):
        assert await attempt(acts, confine()) == ["done"] * len(acts)
    assert not Path("/dev/shm/scratch").exists()
    assert not Path("/dev/shm/memory").exists()


async def test_variables_that_name_a_folder_for_scratch_are_left_alone(sandbox, confine, tmp_path):
    code = b"import os\ndef main(): return os.environ['HOME'], os.environ['TMPDIR']"
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=code,
        entry="main",
        arguments={},
        policy=confine(),
        environment={"HOME": "/h", "TMPDIR": "/t"},
    )
    assert json.loads((await sandbox.run(job, deadline=time.monotonic() + 60)).result)["value"] == ["/h", "/t"]


async def test_devices_that_every_program_expects_are_there(attempt, confine):
    acts = [
        "open('/dev/null', 'w').write('x')",
        "open('/dev/zero', 'rb').read(1)",
        "open('/dev/urandom', 'rb').read(1)",
        "open('/proc/self/status').read()",
        "open('/proc/self/net/tcp').read()",
        "open('/dev/kmsg').read()",
        "os.open('/dev/pts', os.O_RDONLY)",
    ]
    assert await attempt(acts, confine()) == ["done"] * 4 + ["EACCES"] * 3


@pytest.fixture
def guarded(workspace):
    """A workspace in which some things are not the job's."""
    for name in ("kept/hooks", "kept/other", "hidden/deep"):
        (workspace / name).mkdir(parents=True)
        (workspace / name / "file").write_text(name)
    (workspace / "settings").write_text("fixed")
    (workspace / "secret").write_text("closed")
    return {
        "fixed": (workspace / "kept" / "hooks", workspace / "settings"),
        "closed": (workspace / "hidden" / "deep", workspace / "secret"),
    }


async def test_what_is_fixed_is_read_and_not_changed(attempt, confine, guarded, workspace):
    acts = [
        "open(f'{path}/kept/hooks/file').read(); open(f'{path}/settings').read()",
        "open(f'{path}/kept/hooks/file', 'w')",
        "open(f'{path}/kept/hooks/new', 'w')",
        "open(f'{path}/settings', 'a')",
        "os.unlink(f'{path}/settings')",
        "os.rename(f'{path}/settings', f'{path}/other')",
        "os.rename(f'{path}/file', f'{path}/settings')",
        "os.rename(f'{path}/kept/hooks', f'{path}/kept/away')",
        "os.rename(f'{path}/kept', f'{path}/away')",
        "os.rename(f'{path}', f'{path}2')",
        "os.chmod(f'{path}/settings', 0o777)",
        "os.link(f'{path}/settings', f'{path}/name'); open(f'{path}/name', 'w')",
        "import shutil; shutil.rmtree(f'{path}/kept/hooks')",
    ]
    outcomes = await attempt(acts, confine("fs.read", "fs.write", **guarded), path=workspace)
    assert outcomes[0] == "done"
    assert set(outcomes[1:]) <= {"EROFS", "EBUSY", "EXDEV", "EPERM", "EACCES"}
    assert (workspace / "kept" / "hooks" / "file").read_text() == "kept/hooks"
    assert (workspace / "settings").read_text() == "fixed"
    assert sorted(entry.name for entry in workspace.iterdir()) == ["file", "hidden", "kept", "secret", "settings"]


async def test_beside_what_is_fixed_everything_may_be_changed(attempt, confine, guarded, workspace):
    acts = ["open(f'{path}/kept/other/file', 'w')", "os.rename(f'{path}/kept/other', f'{path}/kept/renamed')"]
    assert await attempt(acts, confine("fs.write", **guarded), path=workspace) == ["done", "done"]
    assert (workspace / "kept" / "renamed" / "file").read_text() == ""


async def test_what_is_closed_is_neither_seen_nor_changed(attempt, confine, guarded, workspace):
    acts = [
        "assert os.listdir(f'{path}/hidden/deep') == []",
        "assert open(f'{path}/secret').read() == ''",
        "open(f'{path}/hidden/deep/file').read()",
        "open(f'{path}/hidden/deep/new', 'w')",
        "open(f'{path}/secret', 'w')",
        "os.chmod(f'{path}/hidden/deep', 0o777)",
        "os.rename(f'{path}/hidden', f'{path}/shown'); open(f'{path}/shown/deep/file').read()",
        "os.rename(f'{path}/secret', f'{path}/shown')",
        "os.link(f'{path}/secret', f'{path}/shown')",
    ]
    outcomes = await attempt(acts, confine("fs.read", "fs.write", **guarded), path=workspace)
    assert outcomes[:2] == ["done", "done"]
    assert set(outcomes[2:]) <= {"EROFS", "EBUSY", "ENOENT", "EXDEV", "EPERM", "EACCES"}
    assert (workspace / "hidden" / "deep" / "file").read_text() == "hidden/deep"
    assert (workspace / "secret").read_text() == "closed"


async def test_what_is_closed_stays_closed_in_a_workspace_that_is_only_read(attempt, confine, guarded, workspace):
    acts = ["assert open(f'{path}/secret').read() == ''", "open(f'{path}/hidden/deep/file').read()"]
    assert await attempt(acts, confine("fs.read", **guarded), path=workspace) == ["done", "ENOENT"]


@pytest.mark.parametrize("kind", ["fixed", "closed"])
@pytest.mark.parametrize("place", ["link", "link/below"])
async def test_a_link_that_the_job_could_change_keeps_nothing_and_is_refused(attempt, confine, workspace, place, kind):
    (workspace / "target" / "below").mkdir(parents=True)
    (workspace / "link").symlink_to(workspace / "target")
    with pytest.raises(ToolError, match="symbolic link that the job could change") as caught:
        await attempt(["pass"], confine("fs.write", **{kind: (workspace / place,)}))
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


async def test_a_workspace_behind_a_link_is_kept_as_any_other(attempt, confine, guarded, workspace, tmp_path):
    (tmp_path / "alias").symlink_to(workspace)
    workspace_policy = WorkspacePolicy(workspace=tmp_path / "alias", fixed=(tmp_path / "alias" / "settings",))
    own = build_policy(("fs.write",), workspace_policy, (tmp_path / "tool", *confine().read))
    acts = [
        "open(f'{path}/alias/file', 'w')",
        "open(f'{path}/alias/settings', 'w')",
        "os.unlink(f'{path}/alias/settings')",
    ]
    outcomes = await attempt(acts, own, path=tmp_path)
    assert outcomes[0] == "done"
    assert set(outcomes[1:]) <= {"EROFS", "EBUSY"}


async def test_a_socket_of_the_host_in_a_readable_folder_is_not_reached(attempt, confine, tmp_path):
    path = tmp_path / "tool" / "s"
    if len(str(path)) > 107:
        pytest.skip("the temporary folder has too long a path for a socket in it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(0)
        acts = [
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', path)",
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)[0].connect(path)",
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].sendmsg([b'x'], [], 0, path)",
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)",
        ]
        await attempt(acts, confine("fs.read", "fs.write", "net.http"), path=path)
        await attempt(acts, confine("fs.read", "fs.write", "shell.execute"), path=path)
        with pytest.raises(BlockingIOError):
            listener.recv(1)


async def test_a_job_that_may_write_everywhere_still_cannot_change_what_is_fixed(sandbox, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "kept").write_text("1")
    policy = SandboxPolicy(read=(Path("/"),), write=(Path("/"),), fixed=(tmp_path / "a" / "b" / "kept",), programs=True)
    command = "echo 2 > a/b/kept; mv a c; mv a/b a/c; rm -f a/b/kept; echo 3 > free"
    job = Program(argv=("/bin/sh", "-c", command), cwd=tmp_path, policy=policy)
    await sandbox.run(job, deadline=time.monotonic() + 60)
    assert (tmp_path / "a" / "b" / "kept").read_text() == "1"
    assert (tmp_path / "free").read_text() == "3\n"


def test_an_unwritable_workspace_refuses_a_tool_that_would_write(workspace):
    workspace_policy = WorkspacePolicy(workspace=workspace, unwritable="it holds the settings")
    assert build_policy(("fs.read",), workspace_policy).write == ()
    with pytest.raises(ToolError, match="no tool may write to the workspace: it holds the settings") as caught:
        build_policy(("fs.write",), workspace_policy)
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


async def test_what_is_written_is_owned_by_the_user_of_the_host(attempt, confine, workspace):
    assert await attempt([WRITE], confine("fs.write"), path=workspace / "new") == ["done"]
    assert (workspace / "new").stat().st_uid == os.getuid()


@pytest.fixture
def unmade(workspace):
    """Names in a workspace that do not exist yet."""
    names = ("settings.toml", "tools", ".ai/tools")
    return {"fixed": tuple(workspace / name for name in names), "closed": (workspace / ".data",)}


MAKE = [
    "open(f'{path}/settings.toml', 'w').write('x')",
    "os.mkdir(f'{path}/tools'); open(f'{path}/tools/evil.py', 'w')",
    "open(f'{path}/tools/evil.py', 'w')",
    "os.makedirs(f'{path}/.ai/tools')",
    "os.mkdir(f'{path}/own'); os.rename(f'{path}/own', f'{path}/.ai')",
    "os.symlink('/', f'{path}/tools')",
    "os.unlink(f'{path}/settings.toml')",
    "os.rmdir(f'{path}/tools')",
    "open(f'{path}/.data/file', 'w')",
    "open(f'{path}/settings.toml2', 'w')",
]


async def test_what_is_not_there_cannot_be_made_either(attempt, confine, unmade, workspace):
    outcomes = await attempt(MAKE, confine("fs.read", "fs.write", **unmade), path=workspace)
    assert set(outcomes[:-1]) <= {"EROFS", "EBUSY", "EEXIST", "EACCES", "ENOTEMPTY"}, outcomes
    assert outcomes[-1] == "done"
    assert sorted(entry.name for entry in workspace.iterdir()) == ["file", "own", "settings.toml2"]


async def test_calls_beside_each_other_share_what_stands_in_and_the_last_one_removes_it(
    attempt, confine, unmade, workspace, eventually
):
    policy = confine("fs.read", "fs.write", **unmade)
    wait = "import time\nwhile not os.path.exists(f'{path}/go'): time.sleep(0.002)"
    long = asyncio.create_task(attempt(["open(f'{path}/ready', 'w')", wait, *MAKE[:3]], policy, path=workspace))
    await eventually((workspace / "ready").exists)
    assert "done" not in await attempt(MAKE[:3], policy, path=workspace)
    assert (workspace / "tools").is_dir()
    (workspace / "go").touch()
    assert (await long)[:2] == ["done", "done"]
    assert "done" not in (await long)[2:]
    assert sorted(entry.name for entry in workspace.iterdir()) == ["file", "go", "ready"]


async def test_a_tool_that_locks_the_workspace_holds_up_no_one_else(attempt, confine, unmade, workspace):
    (workspace / ".data").mkdir()
    policy = confine("fs.read", "fs.write", **unmade)
    lock = os.open(workspace, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert await attempt([MAKE[0], MAKE[-1]], policy, path=workspace) == ["EROFS", "done"]
    finally:
        os.close(lock)
    # Whether they are still needed is only known at the next call.
    assert (workspace / "tools").is_dir()
    assert await attempt(["pass"], policy) == ["done"]
    assert sorted(entry.name for entry in workspace.iterdir()) == [".data", "file", "settings.toml2"]


async def test_what_calls_know_each_other_by_no_job_can_lock(attempt, confine, unmade, workspace, eventually):
    (workspace / ".data").mkdir()
    act = "import fcntl; fcntl.flock(os.open(f'{path}/.data', os.O_RDONLY), fcntl.LOCK_EX)\nopen(f'{path}/ready', 'w')"
    wait = "import time\nwhile not os.path.exists(f'{path}/go'): time.sleep(0.002)"
    policy = confine("fs.read", "fs.write", **unmade)
    long = asyncio.create_task(attempt([act, wait], policy, path=workspace))
    await eventually((workspace / "ready").exists)
    assert await attempt([MAKE[0]], policy, path=workspace) == ["EROFS"]
    (workspace / "go").touch()
    assert await long == ["done", "done"]


@pytest.mark.parametrize("makes", [True, False], ids=["made", "not made"])
@pytest.mark.parametrize("first_ends", ["first", "last"])
async def test_a_data_folder_that_is_made_meanwhile_takes_nothing_from_a_call(
    attempt, confine, unmade, workspace, eventually, makes, first_ends
):
    policy = confine("fs.read", "fs.write", **unmade)

    async def begin(name):
        acts = [
            "open(f'{path}/{name}-began', 'w')",
            "import time\nwhile not os.path.exists(f'{path}/{name}-goes'): time.sleep(0.002)",
            *MAKE[:3],
        ]
        call = asyncio.create_task(attempt(acts, policy, path=workspace, name=name))
        await eventually((workspace / f"{name}-began").exists)
        return call

    calls = {"one": await begin("one")}
    if makes:
        (workspace / ".data" / "journal").touch()
    calls["two"] = await begin("two")
    for name in ("one", "two") if first_ends == "first" else ("two", "one"):
        (workspace / f"{name}-goes").touch()
        outcomes = await calls[name]
        assert outcomes[:2] == ["done", "done"]
        assert "done" not in outcomes[2:]
    kept = {entry.name for entry in workspace.iterdir()} - {
        f"{name}-{what}" for name in calls for what in ("began", "goes")
    }
    assert kept == ({".data", "file"} if makes else {"file"})


async def test_what_is_made_meanwhile_stays(attempt, confine, workspace):
    (workspace / "tools").mkdir()
    (workspace / "empty.toml").touch()
    kept = (workspace / "tools", workspace / "empty.toml", workspace / "new.toml")
    assert await attempt(["pass"], confine("fs.write", fixed=kept)) == ["done"]
    assert sorted(entry.name for entry in workspace.iterdir()) == ["empty.toml", "file", "tools"]


async def test_what_a_job_is_given_out_of_a_closed_folder_is_seen_and_nothing_else_of_it(attempt, confine, workspace):
    for name in ("given/deep", "kept"):
        (workspace / "data" / name).mkdir(parents=True)
        (workspace / "data" / name / "file").write_text(name)
    (workspace / "data" / "one").write_text("1")
    given = (workspace / "data" / "given", workspace / "data" / "one")
    acts = [
        "assert open(f'{path}/data/given/deep/file').read() == 'given/deep'",
        "assert open(f'{path}/data/one').read() == '1'",
        "assert sorted(os.listdir(f'{path}/data')) == ['given', 'one']",
        "open(f'{path}/data/kept/file').read()",
        "open(f'{path}/data/given/deep/file', 'w')",
        "open(f'{path}/data/new', 'w')",
    ]
    policy = confine("fs.read", "fs.write", closed=(workspace / "data",))
    outcomes = await attempt(acts, replace(policy, read=(*policy.read, *given)), path=workspace)
    assert outcomes == ["done", "done", "done", "ENOENT", "EROFS", "EROFS"]


@pytest.fixture
def only(tmp_path, confine):
    """The walls of a job that may write one file, which is there, and what they say of it."""
    file = tmp_path / "place" / "one"
    file.parent.mkdir()
    file.write_text("one\n")
    with file.open() as kept:
        facts = os.fstat(kept.fileno())
        yield replace(confine(), files=(OneFile(path=file, device=facts.st_dev, inode=facts.st_ino),)), file


ADD = "with open(path, 'a') as file: file.write('two\\n')"


async def test_one_file_is_written_and_nothing_beside_it(attempt, only):
    policy, file = only
    acts = [ADD, "open(path + '2', 'w')", "os.unlink(path)", "os.rename(path, path + '2')", "open(path).read()"]
    outcomes = await attempt(acts, policy, path=file)
    assert outcomes[0] == "done"
    assert set(outcomes[1:]) <= {"EACCES", "EROFS", "EBUSY"}
    assert file.read_text() == "one\ntwo\n"
    assert [entry.name for entry in file.parent.iterdir()] == ["one"]


async def test_one_file_in_a_folder_that_may_be_written_stays_a_file_like_others(attempt, only):
    policy, file = only
    acts = [ADD, "os.rename(path, path + '1')", "open(path, 'w').write('new')"]
    assert await attempt(acts, replace(policy, write=(file.parent,)), path=file) == ["done"] * 3
    assert sorted(entry.name for entry in file.parent.iterdir()) == ["one", "one1"]


REPLACEMENTS = {
    "a link out": lambda file, victim: (file.unlink(), file.symlink_to(victim)),
    "a link to a folder": lambda file, victim: (file.unlink(), file.symlink_to(victim.parent)),
    "another file": lambda file, victim: (file.rename(file.with_name("old")), file.write_text("")),
    "another name of the victim": lambda file, victim: (file.unlink(), file.hardlink_to(victim)),
    "a link to itself": lambda file, victim: (file.rename(file.with_name("old")), file.symlink_to("old")),
    "nothing": lambda file, victim: file.unlink(),
    "a folder": lambda file, victim: (file.unlink(), file.mkdir()),
    "a link on the way": lambda file, victim: (
        file.parent.rename(file.parent.with_name("away")),
        file.parent.symlink_to(victim.parent),
    ),
}


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "one").write_text("untouched")
    return folder / "one"


@pytest.mark.parametrize("swap", REPLACEMENTS.values(), ids=REPLACEMENTS)
async def test_one_file_that_was_replaced_before_the_job_is_refused(attempt, only, victim, swap):
    policy, file = only
    swap(file, victim)
    with pytest.raises(ToolError, match=r"place/one: the file was replaced meanwhile; call again") as caught:
        await attempt([ADD], policy, path=file)
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/")], ids=["folder", "fifo", "link"]
)
async def test_what_is_no_file_is_not_taken_for_one_by_its_number(attempt, confine, tmp_path, make):
    place = tmp_path / "place"
    make(place)
    facts = place.lstat()
    policy = replace(confine(), files=(OneFile(path=place, device=facts.st_dev, inode=facts.st_ino),))
    with pytest.raises(ToolError, match="the file was replaced meanwhile"):
        await attempt(["pass"], policy)


@pytest.mark.parametrize("swap", REPLACEMENTS.values(), ids=REPLACEMENTS)
async def test_one_file_that_is_replaced_beside_the_job_leads_nowhere_else(attempt, only, victim, swap, eventually):
    policy, file = only
    kept = os.open(file, os.O_RDONLY)
    wait = "import time\nwhile not os.path.exists(f'{own}/go'): time.sleep(0.002)"
    own = file.parent.with_name("tool")
    job = asyncio.create_task(attempt([ADD, wait, ADD], policy, path=file, own=own))
    try:
        await eventually(lambda: os.fstat(kept).st_size == 8)
        swap(file, victim)
        (own / "go").touch()
        outcomes = await job
        written = os.pread(kept, 100, 0)
    finally:
        os.close(kept)
    assert outcomes[:2] == ["done", "done"]
    assert outcomes[2] != "done" or written == b"one\ntwo\ntwo\n"
    assert victim.read_text() == "untouched"
    assert not file.is_file() or file.read_bytes() in {b"", b"untouched", written}


async def test_a_job_does_not_hold_its_one_file_open(attempt, only):
    policy, file = only
    act = "assert path not in [os.readlink(f'/proc/self/fd/{n}') for n in range(64) if os.path.lexists(f'/proc/self/fd/{n}')]"
    assert await attempt([act], policy, path=file) == ["done"]


SIGNALLED = """
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for number in range(300):
    open(path, 'w').write(str(number))
signal.setitimer(signal.ITIMER_REAL, 0)
"""


async def test_signals_that_interrupt_a_job_do_not_keep_it_from_writing(attempt, confine, workspace):
    # A call that a signal interrupts is gone when its supervisor looks for it, and the next one is served all the same.
    assert await attempt([SIGNALLED], confine("fs.read", "fs.write"), path=workspace / "file") == ["done"]
    assert (workspace / "file").read_text() == "299"
