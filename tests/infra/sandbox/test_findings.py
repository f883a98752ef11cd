"""What is known about the walls: tried once, and obeyed."""

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib import Kind, Reader, ToolError
from toolcrib.infra.sandbox import GUARANTEES, probe
from toolcrib.infra.sandbox.host import ALLOW_LANDLOCK, NO_LANDLOCK, Sandbox
from toolcrib.infra.sandbox.jobs import Program, PythonFile, SandboxPolicy

WEAK = {
    name: probe.Report(guarantees=frozenset({"env", "time", "reap"}), layers=("hygiene",)) for name in probe.PROFILES
}


@pytest.fixture
def weak(tmp_path):
    """A file in which a machine without walls was found."""
    cache = tmp_path / "found.json"
    probe.store(cache, WEAK)
    return cache


def python_job(folder, policy, arguments=()):
    code = b"def main(**more): return 1"
    return PythonFile(path=folder / "a.py", code=code, entry="main", arguments=dict(arguments), policy=policy)


def soon():
    return time.monotonic() + 25


async def test_a_required_guarantee_that_is_missing_refuses_the_job_and_names_it(weak, tmp_path, policy):
    sandbox = Sandbox(cache=weak)
    with pytest.raises(ToolError) as caught:
        await sandbox.run(python_job(tmp_path, policy), deadline=soon())
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE
    assert caught.value.message == (
        f"the sandbox cannot guarantee fs, net, priv on this system: {NO_LANDLOCK}; "
        f"{ALLOW_LANDLOCK}; the operator may lower the setting sandbox.require"
    )
    assert caught.value.details["missing"] == ["fs", "net", "priv"]
    assert sandbox._launcher is None


def test_a_blocked_landlock_is_named_with_what_allows_it(tmp_path, policy):
    """As in a container whose profile lets namespaces pass and not Landlock."""
    cache = tmp_path / "found.json"
    guarantees = frozenset(GUARANTEES) - {"fs", "proc", "mem"}
    probe.store(
        cache, dict.fromkeys(WEAK, probe.Report(guarantees=guarantees, layers=("hygiene", "mounts", "seccomp")))
    )
    with pytest.raises(ToolError) as caught:
        Sandbox(cache=cache).check(policy)
    assert caught.value.details["missing"] == ["fs"]
    assert caught.value.reason.endswith(" on this system: Landlock is blocked here, or not in the kernel")
    assert "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self" in caught.value.message
    assert "deploy/seccomp.json" in caught.value.message
    assert "landlock" not in caught.value.told_to(Reader.CLIENT).message


def test_what_is_known_is_refused_by_the_gate_already(weak, policy):
    with pytest.raises(ToolError, match="cannot guarantee fs, net, priv"):
        Sandbox(cache=weak).check(policy)


def test_the_gate_says_of_a_container_engine_what_its_run_would_say(weak, tmp_path, policy):
    job = Program(argv=("/bin/true",), cwd=tmp_path, policy=policy)
    sandbox = Sandbox(cache=weak)
    with pytest.raises(ToolError, match="cannot guarantee fs, net, priv"):
        sandbox.check_for(job)
    sandbox.check_for(replace(job, policy=SandboxPolicy(unconfined=True)))


def test_what_is_not_known_passes_the_gate(tmp_path, policy):
    Sandbox(cache=tmp_path / "none.json").check(policy)


def test_an_impossible_guarantee_is_refused_by_the_gate_at_once(tmp_path):
    with pytest.raises(ToolError, match="cannot guarantee weightlessness"):
        Sandbox(require=("env", "weightlessness"), cache=tmp_path / "none.json").check()


async def test_an_operator_who_asks_for_less_has_jobs_run(weak, tmp_path, policy):
    sandbox = Sandbox(require=("env", "time", "reap"), cache=weak)
    try:
        ended = await sandbox.run(python_job(tmp_path, policy), deadline=soon())
    finally:
        sandbox.close()
    assert ended.result == b'{"value": 1}'
    assert sandbox.report() == {
        "guarantees": ["time", "reap", "env"],
        "layers": ["hygiene"],
        "missing": ["fs", "net", "proc", "priv", "mem", "pids", "disk"],
    }


async def test_the_first_job_has_the_walls_tried_and_the_next_process_finds_that(tmp_path, policy, monkeypatch):
    cache = tmp_path / "kept" / "found.json"
    sandbox = Sandbox(require=("env", "time"), cache=cache)
    assert sandbox.report()["guarantees"] == []
    job = python_job(tmp_path, policy)
    deadline = time.monotonic() + 2
    learn = sandbox._findings.learn

    async def learn_until_the_deadline(*given):
        reports = await learn(*given)
        await asyncio.sleep(deadline - time.monotonic())
        return reports

    monkeypatch.setattr(sandbox._findings, "learn", learn_until_the_deadline)
    try:
        # The time of the trial is not the job's.
        ended = await sandbox.run(job, deadline=deadline)
        assert (ended.result, ended.timed_out) == (b'{"value": 1}', False)
    finally:
        sandbox.close()
    assert {"env", "time"} <= set(sandbox.report()["guarantees"])
    assert probe.Findings(cache).known() == probe.findings_at(cache).known()


async def test_arguments_that_cannot_be_sent_are_refused_before_anything_is_tried(tmp_path, policy):
    sandbox = Sandbox(cache=tmp_path / "none.json")
    with pytest.raises(ToolError) as caught:
        await sandbox.run(python_job(tmp_path, policy, {"x": object()}), deadline=soon())
    assert caught.value.kind is Kind.VALIDATION
    assert sandbox._launcher is None


async def test_a_job_is_not_started_with_fewer_walls_than_were_tried(tmp_path, policy):
    cache = tmp_path / "found.json"
    report = probe.Report(guarantees=frozenset({"env"}), layers=("hygiene", "moat"))
    probe.store(cache, dict.fromkeys(probe.PROFILES, report))
    sandbox = Sandbox(require=("env",), cache=cache)
    try:
        with pytest.raises(
            ToolError, match="moat was active when the sandbox was probed and is not active now"
        ) as caught:
            await sandbox.run(python_job(tmp_path, policy), deadline=soon())
    finally:
        sandbox.close()
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


def test_the_profile_of_a_job_is_its_widest_hole(tmp_path):
    plain = SandboxPolicy()
    assert probe.profile_of(None) == probe.profile_of(plain) == "plain"
    assert probe.profile_of(plain, program=True) == probe.profile_of(replace(plain, programs=True)) == "program"
    assert probe.profile_of(replace(plain, network=True, programs=True), program=True) == "network"


async def test_each_profile_is_judged_by_its_own_report(tmp_path, policy):
    cache = tmp_path / "found.json"
    strong = probe.Report(guarantees=frozenset({"env", "net"}), layers=())
    probe.store(cache, {"plain": strong, "network": strong, "program": WEAK["program"]})
    sandbox = Sandbox(require=("env", "net"), cache=cache)
    inner = replace(policy, programs=False)
    try:
        assert (await sandbox.run(python_job(tmp_path, inner), deadline=soon())).exit_code == 0
        with pytest.raises(ToolError, match="cannot guarantee net"):
            await sandbox.run(Program(argv=("/bin/true",), cwd=tmp_path, policy=inner), deadline=soon())
    finally:
        sandbox.close()


class Trials:
    """Stands in for the probe: counts how often it was asked, and answers when it is let."""

    def __init__(self, monkeypatch, outcomes=()):
        self.count = 0
        self.began = threading.Event()
        self.let = threading.Event()
        self.outcomes = list(outcomes)
        monkeypatch.setattr(probe, "probe", self)

    async def __call__(self, run_job):
        self.count += 1
        self.began.set()
        await asyncio.to_thread(self.let.wait, 10)
        if self.outcomes:
            raise self.outcomes.pop()
        return WEAK


async def test_those_who_ask_at_once_wait_for_one_trial(monkeypatch):
    trials, findings = Trials(monkeypatch), probe.Findings(None)
    asking = [asyncio.create_task(findings.learn(None)) for _ in range(5)]
    await asyncio.sleep(0)
    trials.let.set()
    await asyncio.wait_for(asyncio.gather(*asking), 25)
    assert trials.count == 1
    assert findings.known() == WEAK


def test_loops_of_several_threads_wait_for_one_trial(monkeypatch):
    trials, findings = Trials(monkeypatch), probe.Findings(None)
    threads = [threading.Thread(target=lambda: asyncio.run(findings.learn(None))) for _ in range(4)]
    for thread in threads:
        thread.start()
    trials.let.set()
    for thread in threads:
        thread.join(25)
    assert trials.count == 1
    assert findings.known() == WEAK


async def test_a_trial_goes_on_when_the_call_that_began_it_is_cancelled(monkeypatch):
    trials, findings = Trials(monkeypatch), probe.Findings(None)
    first = asyncio.create_task(findings.learn(None))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.wait((first,))
    trials.let.set()
    await asyncio.wait_for(findings.learn(None), 25)
    assert trials.count == 1


async def test_a_trial_that_fails_is_told_and_made_again(monkeypatch):
    failure = ToolError(Kind.SANDBOX_UNAVAILABLE, "no room")
    trials, findings = Trials(monkeypatch, [failure]), probe.Findings(None)
    trials.let.set()
    with pytest.raises(ToolError, match="no room"):
        await findings.learn(None)
    await findings.learn(None)
    assert trials.count == 2


@pytest.mark.parametrize(
    ("code", "kind", "cure"),
    [
        (errno.ENOSPC, Kind.SANDBOX_UNAVAILABLE, "No space left on device; it needs a new folder in /tmp"),
        (errno.EMFILE, Kind.OVERLOADED, "Too many open files; call again later"),
    ],
)
async def test_a_machine_without_room_for_the_probe_is_told_with_the_cure(monkeypatch, code, kind, cure):
    trials, findings = Trials(monkeypatch, [OSError(code, os.strerror(code))]), probe.Findings(None)
    trials.let.set()
    with pytest.raises(ToolError, match=cure) as caught:
        await findings.learn(None)
    assert (caught.value.kind, caught.value.retryable) == (kind, True)
    await findings.learn(None)
    assert trials.count == 2


async def test_a_trial_that_is_cancelled_before_its_first_step_is_made_again(monkeypatch):
    trials, findings = Trials(monkeypatch), probe.Findings(None)
    trials.let.set()
    waiting = asyncio.create_task(findings.learn(None))
    await asyncio.sleep(0)
    await findings.rest()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(20):
        await findings.learn(None)
    assert trials.count == 1


def test_a_trial_of_a_closed_loop_may_end_while_its_own_thread_begins_one(monkeypatch):
    findings = probe.Findings(None)
    loop = asyncio.new_event_loop()
    _, trying = findings._begin()
    trial = findings._try(None, trying)

    async def never(run_job):
        await loop.create_future()

    monkeypatch.setattr(probe, "probe", never)
    waiting = loop.create_task(trial)
    loop.run_until_complete(asyncio.sleep(0))
    waiting._log_destroy_pending = False
    loop.close()

    def end():
        with findings._lock:  # as garbage collection does at any line
            trial.close()

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()
    assert trying.done()


async def test_findings_that_cannot_be_kept_are_known_all_the_same(monkeypatch, tmp_path):
    trials = Trials(monkeypatch)
    trials.let.set()
    (tmp_path / "file").write_text("")
    findings = probe.Findings(tmp_path / "file" / "found.json")
    await findings.learn(None)
    assert findings.known() == WEAK


def test_a_broken_file_is_no_knowledge(tmp_path):
    cache = tmp_path / "found.json"
    cache.write_text(json.dumps({"of": [], "reports": {}}))
    assert probe.Findings(cache).known() is None


async def test_what_was_tried_for_one_file_is_kept_in_another_without_a_second_trial(monkeypatch, tmp_path):
    trials, tried = Trials(monkeypatch), probe.Findings(None)
    trials.let.set()
    caches = [tmp_path / name for name in ("one.json", "other.json")]
    for cache in caches:
        await probe.Findings(cache, tried=tried).learn(None)
    assert trials.count == 1
    assert [probe.Findings(cache).known() for cache in caches] == [WEAK, WEAK]


async def test_a_trial_that_is_not_awaited_is_broken_off_when_all_ends_and_begun_anew_later(monkeypatch, tmp_path):
    trials, findings = Trials(monkeypatch), probe.Findings(tmp_path / "found.json", tried=probe.Findings(None))
    asking = asyncio.create_task(findings.learn(None))
    assert await asyncio.to_thread(trials.began.wait, 5)
    asking.cancel()
    await asyncio.wait((asking,))
    await asyncio.wait_for(findings.rest(), 25)
    assert findings.known() is None
    trials.let.set()
    await asyncio.sleep(0.05)
    assert findings.known() is None, "it went on"
    await asyncio.wait_for(findings.learn(None), 25)
    assert trials.count == 2


async def test_processes_of_one_user_share_a_probe_across_projects(monkeypatch, tmp_path):
    trials, shared = Trials(monkeypatch), tmp_path / "shared"
    trials.let.set()
    shared.mkdir(mode=0o700)
    for project in ("one", "other"):
        # As another process does, which has nothing in memory.
        await probe.Findings(tmp_path / project / "found.json", shared=shared, tried=probe.Findings(None)).learn(None)
    assert trials.count == 1


async def test_of_processes_that_start_together_one_probes_and_the_others_wait_for_it(monkeypatch, tmp_path):
    trials, shared = Trials(monkeypatch), tmp_path / "shared"
    shared.mkdir(mode=0o700)
    asking = [
        asyncio.create_task(probe.Findings(None, shared=shared, tried=probe.Findings(None)).learn(None))
        for _ in range(3)
    ]
    assert await asyncio.to_thread(trials.began.wait, 5)
    trials.let.set()
    assert await asyncio.wait_for(asyncio.gather(*asking), 25) == [WEAK] * 3
    assert trials.count == 1


async def test_findings_are_tried_again_when_the_privileges_differ(monkeypatch, tmp_path):
    trials, cache = Trials(monkeypatch), tmp_path / "found.json"
    trials.let.set()
    allowed = ["as it was"]
    monkeypatch.setattr(probe, "privileges", lambda: list(allowed))
    monkeypatch.setattr(probe, "_CHECK_SECONDS", 0.0)
    findings = probe.Findings(cache)
    await findings.learn(None)
    assert probe.Findings(cache).known() == findings.known() == WEAK
    allowed[:] = ["a filter that was installed since"]
    assert findings.known() is None, "of the process that has changed"
    assert probe.Findings(cache).known() is None, "of another process that is like it"
    await findings.learn(None)
    assert trials.count == 2


async def test_findings_do_not_hold_for_privileges_that_changed_during_the_probe(monkeypatch, tmp_path):
    trials, cache = Trials(monkeypatch), tmp_path / "found.json"
    allowed = ["as it was"]
    monkeypatch.setattr(probe, "privileges", lambda: list(allowed))
    monkeypatch.setattr(probe, "_CHECK_SECONDS", 0.0)
    findings = probe.Findings(cache)
    learning = asyncio.create_task(findings.learn(None))
    assert await asyncio.to_thread(trials.began.wait, 20)
    allowed[:] = ["less"]
    assert findings.known() is None
    trials.let.set()
    assert await asyncio.wait_for(learning, 20) == WEAK
    assert trials.count == 2


@pytest.mark.usefixtures("cold_launchers")
async def test_jobs_are_started_with_the_privileges_that_a_process_has_now(monkeypatch, tmp_path, policy):
    Trials(monkeypatch).let.set()
    allowed = ["as it was"]
    monkeypatch.setattr(probe, "privileges", lambda: list(allowed))
    monkeypatch.setattr(probe, "_CHECK_SECONDS", 0.0)
    sandbox = Sandbox(require=("env",), cache=tmp_path / "found.json")
    try:
        launchers = []
        for change in ([], [], ["less"]):
            allowed += change
            assert (await sandbox.run(python_job(tmp_path, policy), deadline=soon())).result == b'{"value": 1}'
            launchers.append(sandbox._launcher.pid)
        assert launchers[0] == launchers[1] != launchers[2]
        assert not Path(f"/proc/{launchers[0]}").exists()
    finally:
        sandbox.close()


async def test_a_probe_for_several_projects_notices_that_the_privileges_changed_just_now(monkeypatch, tmp_path):
    trials = Trials(monkeypatch)
    trials.let.set()
    allowed = ["as it was"]
    monkeypatch.setattr(probe, "privileges", lambda: list(allowed))
    together = probe.Findings(None)
    await probe.Findings(tmp_path / "one.json", tried=together).learn(None)
    allowed[:] = ["less"]
    await probe.Findings(tmp_path / "another.json", tried=together).learn(None)
    assert trials.count == 2


@pytest.fixture
def anew():
    """Has what is known of the installation read again, before and after."""
    probe._installation.cache_clear()
    yield probe._installation.cache_clear
    probe._installation.cache_clear()


@pytest.mark.parametrize("what", ["another boot", "another interpreter", "another version with the same times"])
async def test_findings_are_tried_again_after(monkeypatch, tmp_path, anew, what):
    trials, cache, read = Trials(monkeypatch), tmp_path / "found.json", probe._read_fact
    trials.let.set()
    findings = probe.Findings(cache)
    await findings.learn(None)
    anew()
    assert probe.Findings(cache).known() == WEAK
    if what == "another boot":
        monkeypatch.setattr(probe, "_read_fact", lambda path: "other" if path.endswith("boot_id") else read(path))
    elif what == "another interpreter":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    else:
        copy = shutil.copytree(Path(probe.__file__).parent, tmp_path / "sandbox")
        monkeypatch.setattr(probe, "__file__", str(copy / "probe.py"))
    anew()
    assert probe.Findings(cache).known() is None
    await probe.Findings(cache, tried=probe.Findings(None)).learn(None)
    assert trials.count == 2


CHANGES = {
    "no new privileges": "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)",
    "a limit": "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))",
    "a filter": """
import ctypes, struct
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
before = privileges()
libc.prctl(22, 2, struct.pack("@HP", len(steps), ctypes.addressof(packed)), 0, 0)
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process its privileges")
def test_processes_whose_filters_differ_do_not_share_findings():
    """Each has one filter, of which one refuses a call with these bits in its first argument."""
    code = """
import ctypes, os, struct, sys
from toolcrib.infra.sandbox.probe import privileges
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
for number, bits in eval(sys.argv[1]):
    reading, writing = os.pipe()
    if os.fork() == 0:
        steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x45, 0, 1, bits), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
        packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
        libc.prctl(22, 2, struct.pack("@HP", len(steps), ctypes.addressof(packed)), 0, 0)
        os.write(writing, repr(privileges()).encode())
        os._exit(0)
    os.close(writing)
    print(hash(open(reading, "rb").read()))
    os.wait()
"""
    unshare = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    everything = 0xFFFFFFFF
    filters = [
        (9_999, 1),
        *((unshare, bit) for bit in (0x00020000, 0x10000000, 0x40000000)),
        (445, everything),
        (446, everything),
    ]
    ended = subprocess.run(
        [sys.executable, "-c", code, repr(filters)], capture_output=True, text=True, timeout=30, check=True
    )
    assert len(set(ended.stdout.split())) == len(filters)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process its privileges")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_process_sees_that_its_own_privileges_have_changed(change):
    code = f"from toolcrib.infra.sandbox.probe import privileges\nbefore = privileges()\nassert before == privileges()\n{change}\nassert before != privileges()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("who", ["geteuid", "getegid"])
def test_the_privileges_of_another_user_or_group_are_others(monkeypatch, who):
    before = probe.privileges()
    monkeypatch.setattr(os, who, lambda: 54_321)
    assert probe.privileges() != before


def test_the_shared_folder_is_private_and_out_of_reach_of_tools(tmp_path):
    folder = probe.shared_folder(str(tmp_path))
    assert folder == tmp_path / "toolcrib"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert probe.shared_folder(str(tmp_path), workspace=tmp_path) is None
    (tmp_path / "link").symlink_to(tmp_path)
    assert probe.shared_folder(str(tmp_path), workspace=tmp_path / "link") is None
    folder.chmod(0o770)
    assert probe.shared_folder(str(tmp_path)) is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert probe.shared_folder(str(tmp_path)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another user")
def test_a_runtime_folder_of_another_user_is_not_used(tmp_path):
    """As after `su`, which leaves XDG_RUNTIME_DIR as it was."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, 65534, 65534)
    shared = probe.shared_folder(str(runtime))
    assert shared is None or shared.parent == Path("/tmp")
    assert list(runtime.iterdir()) == []
