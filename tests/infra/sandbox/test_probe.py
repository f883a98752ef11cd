"""What the walls are worth: found by trying, also where the kernel offers less, and kept no longer than it holds."""

import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from socket_paths import socket_folder
from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox import probe
from toolcrib.infra.sandbox.child import escape_attempts
from warm_python import WarmPython

EVERYTHING = {"fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env"}
USERS = {"root": 0, "somebody": 65534}

# Hosts whose kernels answer some calls as an older or a closed one would; each tells what was reported and what was seen. They
# are forks of one process, which spares each of them the start of an interpreter; what is ours is imported behind the filter.
HOST = """
import asyncio, contextlib, ctypes, json, os, socket, struct, subprocess, sys, tempfile, time
from pathlib import Path
sys.path[:0] = sys.argv[2:]
for answers in json.loads(sys.argv[1]):
    sys.stdout.flush()
    host = os.fork()
    if host == 0:
        break
    if os.waitpid(host, 0)[1]:
        sys.exit(f"the host with {answers} failed")
else:
    sys.exit()
steps = [(0x20, 0, 0, 0)]
for number, error in answers:
    steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error)]
steps.append((0x06, 0, 0, 0x7FFF0000))
packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("@HP", len(steps), ctypes.addressof(packed)), 0, 0) == 0

from toolcrib.infra.files.protected_files import ProtectedFolders
from toolcrib.infra.sandbox.host import Sandbox
from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.infra.sandbox.probe import probe
from toolcrib.infra.sandbox.jobs import WorkspacePolicy, build_policy, python_runtime

ACTS = '''
import os, socket
def main(secret, folder, own, host, port):
    broken = []
    def attempt(name, act):
        try: act()
        except OSError: return
        broken.append(name)
    attempt("fs", lambda: open(secret).read())
    attempt("fs", lambda: open(folder + "/new", "w"))
    attempt("fs", lambda: os.chmod(secret, 0o600))
    attempt("own", lambda: open(own + "/new", "w"))
    attempt("proc", lambda: os.kill(host, 0))
    attempt("proc", lambda: os.listdir("/proc"))
    attempt("net", lambda: socket.create_connection(("127.0.0.1", port), 2))
    return sorted(set(broken)), os.environ["TMPDIR"]
'''

@contextlib.asynccontextmanager
async def no_proxy(listener):
    yield

async def observe(sandbox, requires, fixed=()):
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        own = Path(folder, "own")
        own.mkdir()
        secret = Path(folder, "secret")
        secret.write_text("x")
        port = listener.getsockname()[1]
        facts = {"secret": str(secret), "folder": folder, "own": str(own), "host": os.getpid(), "port": port}
        workspace_policy = WorkspacePolicy(workspace=own, fixed=tuple(own / name for name in fixed))
        policy = build_policy(requires, workspace_policy, (own, *python_runtime()))
        job = PythonFile(path=own / "a.py", code=ACTS.encode(), entry="main", arguments=facts, policy=policy)
        try:
            ended = await sandbox.run(job, deadline=time.monotonic() + 60, proxy=no_proxy if policy.network else None)
        except Exception as problem:
            return str(problem)
        broken, scratch = json.loads(ended.result)["value"]
        left.extend(filter(os.path.exists, [scratch]))
        return broken

left = []

async def main():
    folders = ProtectedFolders()
    sandbox = Sandbox(require=(), protected=lambda: folders)
    reports = await probe(sandbox.run)
    seen = {"plain": await observe(sandbox, ()), "network": await observe(sandbox, ("net.http",))}
    seen["program"] = await observe(sandbox, ("shell.execute",))
    seen["writing"] = await observe(sandbox, ("fs.write",))
    seen["fixed"] = await observe(sandbox, ("fs.write",), ["kept"])
    sandbox.close()
    found = {profile: [sorted(report.guarantees), report.layers] for profile, report in reports.items()}
    print(json.dumps({"uid": os.getuid(), "reports": found, "seen": seen, "left": left}))

asyncio.run(main())
"""
NO_LANDLOCK = [[444, 38], [445, 38], [446, 38]]
# What a container engine filters even where it allows namespaces: open_tree, move_mount, mount_setattr.
NO_ARRANGED_MOUNTS = [[428, 1], [429, 1], [442, 1]]
NO_NAMESPACES = [[272, 1]] if os.uname().machine == "x86_64" else [[97, 1]]


def run_hosts(user, answers):
    """Run such a host for each of these answers as this user, with an interpreter that the user can start."""
    # Packages beside ours may be compiled for this interpreter; the system's is often of the same version.
    places = [str(Path(probe.__file__).parents[3]), sysconfig.get_path("platlib")]
    somebody = {}
    python = sys.executable
    if user != os.geteuid():
        if os.geteuid() != 0:
            pytest.skip("only root can become somebody else")
        somebody = {"user": user, "group": user, "extra_groups": []}
        python = "/usr/bin/python3"
        try:
            check = [python, "-c", f"import sys; sys.path[:0] = {places!r}; import toolcrib.infra.sandbox.host"]
            subprocess.run(check, check=True, timeout=30, capture_output=True, **somebody)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("there is no interpreter here that somebody else can start with this package")
    command = [python, "-W", "ignore", "-c", HOST, json.dumps(answers), *places]
    done = subprocess.run(
        command, capture_output=True, timeout=120, check=False, text=True, cwd="/", env={"LANG": "C.UTF-8"}, **somebody
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


LACKS = {
    "nothing": ([], set(), set()),
    "landlock": (NO_LANDLOCK, {"fs", "proc", "mem"}, set()),
    "namespaces": (NO_NAMESPACES, set(), {"network"}),
    "mounts that can be arranged": (NO_ARRANGED_MOUNTS, set(), {"network"}),
    "both": ([*NO_LANDLOCK, *NO_NAMESPACES], {"fs", "proc", "mem"}, {"network"}),
}


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_what_is_reported_is_what_is_seen_on_any_kernel(user):
    if user == 0 and os.geteuid() != 0:
        pytest.skip("only root is root")
    hosts = run_hosts(user, [answers for answers, _, _ in LACKS.values()])
    for told, (name, (_, missing, impossible)) in zip(hosts, LACKS.items(), strict=True):
        assert told["uid"] == user
        with case(f"a kernel that lacks {name}"):
            judge_host(told, missing, impossible)


@contextmanager
def case(name):
    """Name the case that an assertion fails for."""
    try:
        yield
    except AssertionError as problem:
        problem.add_note(name)
        raise


def judge_host(told, missing, impossible):
    for profile in probe.PROFILES:
        guarantees, layers = told["reports"][profile]
        if profile in impossible:
            assert (guarantees, layers) == ([], [])
            assert "a job with network access needs a network namespace" in told["seen"][profile]
            continue
        assert set(guarantees) == EVERYTHING - missing
        assert set(told["seen"][profile]) - {"own"} == missing & {"fs", "net", "proc"}
        assert ("mounts" in layers) == ("network" not in impossible)
        assert any(layer.startswith("landlock") for layer in layers) == (not missing)
    # Without mounts nothing is kept from a job that may write around it, and without Landlock no name is protected from
    # it, so there is no such job.
    for name, outcome in ((name, told["seen"][name]) for name in ("writing", "fixed")):
        if impossible and name == "fixed":
            assert "cannot be protected from a job" in outcome
        elif impossible or missing:
            assert "cannot be opened for writing" in outcome
        else:
            assert set(outcome) == {"own"}
    # Without both nothing keeps a job from writing where it may only read, and that is what the report says.
    for profile in set(probe.PROFILES) - impossible:
        assert "own" not in told["seen"][profile] or (missing and impossible)
    assert told["left"] == []


def test_under_the_profile_for_container_engines_every_job_runs_with_every_guarantee():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.is_file():
        pytest.skip("the numbers of system calls are not here: install the headers of the C library")
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", header.read_text()))
    profile = json.loads(Path(__file__).parents[3].joinpath("deploy", "seccomp.json").read_text())
    [rule] = profile["syscalls"]
    assert (profile["defaultAction"], rule["action"]) == ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO")
    denied = [[int(numbers[name]), rule["errnoRet"]] for name in rule["names"] if name in numbers]
    assert len(denied) > len(rule["names"]) / 2
    [told] = run_hosts(os.geteuid() or USERS["somebody"], [denied])
    for profile in probe.PROFILES:
        guarantees, layers = told["reports"][profile]
        assert set(guarantees) == EVERYTHING
        assert "mounts" in layers
    assert told["seen"]["writing"] == ["own"]


WITHOUT_A_FILTER = """
import asyncio, json, sys, tempfile, time
from pathlib import Path
sys.path[:0] = sys.argv[1:]
from toolcrib.infra.sandbox.host import Sandbox
from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.infra.sandbox.jobs import WorkspacePolicy, build_policy, python_runtime

async def main():
    sandbox = Sandbox(require=["env", "time", "reap"])
    with tempfile.TemporaryDirectory() as folder:
        policy = build_policy((), WorkspacePolicy(workspace=Path(folder)), python_runtime())
        job = PythonFile(path=Path(folder, "a.py"), code=b"def main(): return 1", entry="main", arguments={}, policy=policy)
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
        print(json.dumps([ended.result.decode(), {name: sandbox.report(name) for name in ("plain", "program")}]))
    sandbox.close()

asyncio.run(main())
"""


def test_without_a_filter_of_calls_the_rest_holds_and_jobs_that_need_no_more_run(tmp_path):
    shutil.copytree(Path(probe.__file__).parents[2], tmp_path / "toolcrib")
    code = tmp_path / "toolcrib" / "infra" / "sandbox" / "child" / "seccomp.py"
    known = "return system.HAS_SUBREAPER and os.uname().machine in _ARCHITECTURES"
    assert known in code.read_text()
    code.write_text(code.read_text().replace(known, "return False"))
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_A_FILTER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 0, done.stderr
    result, reports = json.loads(done.stdout)
    assert result == '{"value": 1}'
    for report in reports.values():
        assert {"env", "time", "reap", "pids", "disk"} <= set(report["guarantees"])
        assert {"priv", "mem"} <= set(report["missing"])
        assert "hygiene" in report["layers"]
        assert "seccomp" not in report["layers"]


def test_where_proc_says_nothing_less_is_reported(monkeypatch):
    facts = {"mounts": "mnt:[1]", "network": "net:[1]"}
    layers = list(escape_attempts._layers(facts))
    assert {"hygiene", "mounts", "network"} <= set(layers)
    assert "mounts" not in list(escape_attempts._layers({**facts, "mounts": ""}))

    def nothing(*arguments, **options):
        raise FileNotFoundError

    monkeypatch.setattr(os, "readlink", nothing)
    monkeypatch.setattr(escape_attempts, "open", nothing, raising=False)
    assert set(escape_attempts._layers(facts)) <= set(layers) - {"mounts", "network", "seccomp"}
    # What cannot be looked up counts as got through.
    assert escape_attempts._succeeds(escape_attempts._hold_capabilities)
    with probe._outside() as (_, facts):
        assert facts["mounts"] == facts["network"] == ""


@pytest.fixture
def folders(monkeypatch):
    """Where probes make their folders."""
    with socket_folder() as place:
        monkeypatch.setattr(probe, "_SHORT_PATH", str(place))
        yield place


def test_a_host_without_room_for_descriptors_keeps_no_folder_of_the_probe(folders, open_descriptors):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = open_descriptors()
    free = [number for number in range(max(taken) + 20) if number not in taken]
    failed = []
    try:
        for room in range(12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (free[room], limits[1]))
            try:
                with probe._outside():
                    pass
            except OSError as problem:
                failed.append(problem.errno)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert list(folders.iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert set(failed) == {errno.EMFILE}
    assert len(failed) < 12


PROBING = """
import sys
from toolcrib.infra.sandbox import probe
probe._SHORT_PATH = sys.argv[1]
with probe._outside():
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_probe_is_removed_by_the_next_one_and_no_other_folder_is(folders):
    kept = {folders / "toolcrib-probe-notes", folders / "other"}
    for folder in kept:
        folder.mkdir()
    (folders / "other" / "own").mkdir()
    (folders / "toolcrib-probe-link").symlink_to("other")
    kept.add(folders / "toolcrib-probe-link")
    with WarmPython(["-c", PROBING, folders], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        [used] = {*folders.iterdir()} - kept
        with probe._outside():
            assert {*used.iterdir()} == {used / "own", used / "outside"}
        process.kill()
    assert used.is_dir()
    with probe._outside() as (own, _):
        assert {*folders.iterdir()} == kept | {own.parent}
    assert {*folders.iterdir()} == kept
    assert (folders / "other" / "own").is_dir()


def test_a_status_of_other_words_counts_as_got_through(monkeypatch, tmp_path):
    (tmp_path / "status").write_text("Name:\tpython\nCapEff:\t0\n")
    monkeypatch.setattr(escape_attempts, "open", lambda path: (tmp_path / "status").open(), raising=False)
    assert escape_attempts._succeeds(escape_attempts._hold_capabilities)


async def test_jobs_that_cannot_run_guarantee_nothing():
    async def run_job(job, **options):
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, "there is nothing here")

    nothing = probe.Report(guarantees=frozenset(), layers=())
    assert await probe.probe(run_job) == dict.fromkeys(probe.PROFILES, nothing)


@pytest.fixture
def reports():
    return {
        profile: probe.Report(guarantees=frozenset({"env", profile}), layers=("hygiene", "seccomp"))
        for profile in probe.PROFILES
    }


def test_findings_are_kept_for_their_owner_alone(tmp_path, reports):
    path = tmp_path / "below" / "probe.json"
    assert probe.load(path) is None
    probe.store(path, reports)
    probe.store(path, reports)
    assert probe.load(path) == reports
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["probe.json"]


@pytest.mark.parametrize(
    "circumstance", range(7), ids=["boot", "release", "kernel", "user", "interpreter", "version", "sandbox"]
)
def test_findings_of_another_system_are_worth_nothing(tmp_path, reports, circumstance):
    path = tmp_path / "probe.json"
    probe.store(path, reports)
    document = json.loads(path.read_text())
    document["of"][circumstance] += "x"
    path.write_text(json.dumps(document))
    assert probe.load(path) is None


BROKEN = [
    *("", "[]", "{", "null", "\0", "[" * 100_000),
    *('{"of": []}', '{"of": OF, "reports": {}}', '{"of": OF, "reports": {"plain": 3}}'),
    '{"of": OF, "reports": {"plain": {"guarantees": [1], "layers": []}}}',
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_holds_no_findings(tmp_path, text):
    path = tmp_path / "probe.json"
    path.write_text(text.replace("OF", json.dumps(probe._circumstances())))
    path.chmod(0o600)
    assert probe.load(path) is None


def test_a_file_that_another_user_could_have_written_is_not_believed(tmp_path, reports):
    path = tmp_path / "probe.json"
    probe.store(path, reports)
    path.chmod(0o666)
    assert probe.load(path) is None
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    assert probe.load(tmp_path / "link") is None
    assert probe.load(path) == reports


def test_what_is_not_a_file_of_this_size_holds_no_findings(tmp_path, reports):
    for make in (os.mkfifo, os.mkdir, lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))):
        path = tmp_path / f"probe-{len(list(tmp_path.iterdir()))}.json"
        make(path)
        path.chmod(0o600)
        if path.is_file():
            os.truncate(path, 2**40)
        found = []
        looking = threading.Thread(target=lambda path=path, found=found: found.append(probe.load(path)), daemon=True)
        looking.start()
        looking.join(20)
        assert found == [None], make


async def test_a_job_of_the_probe_that_ends_without_an_answer_is_tried_once_more(sandbox):
    silent = []

    async def run_job(job, *, deadline, proxy=None):
        ended = await sandbox._try(job, deadline=deadline, proxy=proxy)
        name = job.path.name
        if name not in {"attempts.py", "names.py"} or name in silent:
            return ended
        silent.append(name)
        return replace(ended, result=None, timed_out=True)

    guarantees, layers = (await probe.try_everything(run_job, ["plain"]))["plain"]
    assert silent == ["attempts.py", "names.py"]
    assert "fs" in guarantees
    assert layers
