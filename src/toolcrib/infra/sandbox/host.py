"""The sandbox as the rest of Toolcrib uses it: run a job in a child process and report which guarantees held."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.channel import FAREWELL, ORDER_BYTES, to_order
from toolcrib.infra.sandbox import GUARANTEES, JOBS, QUEUE, REQUIRE, Slots, WaitingJobs, system
from toolcrib.infra.sandbox.attempt import Attempt
from toolcrib.infra.sandbox.jobs import Program, PythonFile, encode
from toolcrib.infra.sandbox.probe import findings_at, profile_of, shared_folder
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.files.protected_files import ProtectedFiles, ProtectedFolders
    from toolcrib.infra.sandbox.attempt import Hear, Proxy, Talk
    from toolcrib.infra.sandbox.jobs import CompletedJob, Job, SandboxPolicy
    from toolcrib.infra.sandbox.probe import Report

NO_LANDLOCK = "Landlock is blocked here, or not in the kernel"
ALLOW_LANDLOCK = (
    "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the seccomp profile of the container, "
    "as deploy/seccomp.json does, or use Linux 5.13 or later"
)
LOWER = Cure("the operator may lower the setting sandbox.require")


# The guarantees that hold even for an unconfined job.
ALWAYS = ("time", "reap", "env")
MAX_STREAM_BYTES = 256 * 1024
MAX_RESULT_BYTES = 8 * 1024 * 1024
_LONGEST_SECONDS = 7 * 24 * 3600.0
_KILL_SECONDS = 0.5  # what killing a process tree and reporting it may take
_BUSY_SECONDS = 0.002
_ATTEMPTS = 3
_OWN = Path(sys.executable)


def kill_time(deadline: float, delay: float = 0.0) -> float:
    """When to start killing a job so that its result is ready by the deadline, or `delay` seconds after it."""
    left = deadline - time.monotonic()
    return deadline - max(0.0, min(_KILL_SECONDS, left / 10) - delay)


class Sandbox:
    """Run jobs in child processes, forked from a launcher that the first job starts and all jobs share.

    `require` names the guarantees without which no job runs. The machine is probed before the first job; the findings
    are cached in the file `cache` and, unless `runtime` is None, shared with all processes of this user below that
    folder (or a private one in /tmp if it is empty). `jobs` run at once and `queue` more may wait. An interpreter
    inside the `workspace` is never started. `protected` gives what finds the protected files of a guarded folder, when the
    first job asks for such a folder. One Sandbox serves any number of event loops and threads; `close` kills what is running,
    and a later job starts the launcher again.
    """

    def __init__(
        self,
        *,
        require: Iterable[str] = REQUIRE,
        jobs: int = JOBS,
        queue: int = QUEUE,
        cache: Path | None = None,
        runtime: str | None = None,
        workspace: Path | None = None,
        protected: Callable[[], ProtectedFolders] | None = None,
    ) -> None:
        self._require = tuple(require)
        self._slots = Slots(jobs, queue)
        self.waiting = WaitingJobs(max(1, jobs // 2))
        self._launchers = Launchers()
        self._findings = findings_at(cache, None if runtime is None else shared_folder(runtime, workspace))
        self._workspace = workspace
        self._protected = protected

    def report(self, profile: str = "plain") -> dict[str, list[str]]:
        """The guarantees, layers and missing guarantees of a profile; empty before the machine was probed."""
        reports = self._findings.known() or {}
        report = reports.get(profile)
        guarantees = frozenset() if report is None else report.guarantees
        return {
            "guarantees": [name for name in GUARANTEES if name in guarantees],
            "layers": [] if report is None else list(report.layers),
            "missing": [name for name in GUARANTEES if name not in guarantees],
        }

    def report_on(self, job: Job) -> dict[str, list[str]]:
        """As `report`, for a job like this one."""
        if job.policy.unconfined:
            missing = [name for name in GUARANTEES if name not in ALWAYS]
            return {"guarantees": list(ALWAYS), "layers": ["hygiene"], "missing": missing}
        return self.report(profile_of(job.policy, program=isinstance(job, Program)))

    def check(self, policy: SandboxPolicy | None = None, profile: str = "") -> None:
        """Raise SANDBOX_UNAVAILABLE if a required guarantee is known to be missing under this policy.

        A machine that was not probed yet passes: `run` probes it.
        """
        self._check(self._findings.known(), profile or profile_of(policy))

    def _check(self, reports: Mapping[str, Report] | None, profile: str) -> None:
        guarantees = GUARANTEES if reports is None else reports[profile].guarantees
        missing = [name for name in self._require if name not in guarantees]
        if not missing:
            return
        message = f"the sandbox cannot guarantee {', '.join(missing)} on this system"
        cure = LOWER
        layers = () if reports is None else reports[profile].layers
        if layers and not any(layer.startswith("landlock") for layer in layers):
            message, cure = f"{message}: {NO_LANDLOCK}", Cure(f"{ALLOW_LANDLOCK}; {LOWER.operator}")
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, cure=cure, details={"missing": missing})

    def check_for(self, job: Job) -> None:
        """As `check`, for a job like this one; an unconfined job passes."""
        if not job.policy.unconfined:
            self.check(profile=profile_of(job.policy, program=isinstance(job, Program)))

    async def learn(self) -> None:
        """Probe what this machine guarantees, unless it is known already."""
        await self._findings.learn(self._try)

    async def run(
        self,
        job: Job,
        *,
        deadline: float,
        max_stdout: int = MAX_STREAM_BYTES,
        max_stderr: int = MAX_STREAM_BYTES,
        max_result: int = MAX_RESULT_BYTES,
        talk: Talk | None = None,
        proxy: Proxy | None = None,
        nested: bool = False,
        extra_seconds: float = 0.0,
        hear: Hear | None = None,
    ) -> CompletedJob:
        """Run a job until it ends or `deadline` (time.monotonic) passes; no process of it is left when this returns.

        That holds for cancellation too. The time of the probe before the very first job does not count against the
        deadline. Output beyond a stream's limit is dropped; a result beyond its limit ends the job. `talk` answers on
        the channel of a job that has one, `proxy` accepts the connections of a job with network; both run until the job
        ends. A `nested` job was requested by a running one and shares its slot. With `extra_seconds` a job that has
        begun may stay that much longer, for a caller that ends it earlier itself. `hear` is called with what the job prints,
        as far as it is kept.
        """
        job = await self._guard(job)
        if job.policy.network and proxy is None:
            raise ToolError(
                Kind.SANDBOX_UNAVAILABLE, "a job with network access needs an egress proxy, and none was given"
            )
        interpreter = job.interpreter if isinstance(job, PythonFile) else None
        if interpreter is not None:
            self._refuse_from_workspace(interpreter.program)
        profile = profile_of(job.policy, program=isinstance(job, Program))
        # Read once: the job runs with the layers for which its guarantees were checked, even if findings change meanwhile.
        reports = self._findings.known()
        if self._require and reports is None:
            encode(job, deadline)  # refuse what cannot be encoded before probing
            began = time.monotonic()
            reports = await self._findings.learn(self._try)
            deadline += time.monotonic() - began
        until = min(deadline, time.monotonic() + _LONGEST_SECONDS)
        layers: tuple[str, ...] = ()
        if not job.policy.unconfined:
            self._check(reports, profile)
            layers = reports[profile].layers if reports is not None and self._require else ()
        last = min(until + extra_seconds, time.monotonic() + _LONGEST_SECONDS)
        message = encode(job, last, layers)
        limits = (max_stdout, max_stderr, max_result)
        place = contextlib.nullcontext() if nested else self._slots.take(until)
        async with place:
            program = _OWN if interpreter is None else interpreter.program
            with self._launchers.use(program, self._findings.generation, job.policy.processes) as handle:
                return await self._run(handle, _order_for(job), message, last, limits, talk, proxy, hear)

    async def _guard(self, job: Job) -> Job:
        """Complete the policy with the protected files, and what Git runs, as they are now."""
        import asyncio  # late, for the reason that `toolcrib.infra.sandbox` gives

        return replace(job, policy=await asyncio.to_thread(self._complete, job.policy)) if job.policy.guarded else job

    def _complete(self, policy: SandboxPolicy) -> SandboxPolicy:
        if self._protected is None:
            raise TypeError("a Sandbox for jobs with guarded folders needs `protected`")
        folders = self._protected()
        guarded = {root: folders.below(root, policy.opened) for root in policy.guarded}
        hooks = [path for files in guarded.values() for path in files.find_git_paths()] if policy.write else []
        masked = [path for root, files in guarded.items() for path in _secrets_to_mask(root, files, policy)]
        return replace(policy, masked=tuple(masked), hooks=tuple(hooks)) if masked or hooks else policy

    def start(self) -> None:
        """Start the launcher of Toolcrib's own interpreter early, so that the first job does not wait for it."""
        # The first job reports why the launcher does not start.
        with contextlib.suppress(ToolError), self._launchers.use(_OWN, self._findings.generation) as handle:
            handle.running()

    async def settle(self) -> None:
        """Cancel a running probe, which would start the launcher again."""
        await self._findings.rest()

    def close(self) -> None:
        """End the launchers and every job under them; waits a few seconds at most."""
        self._launchers.close()

    @property
    def _launcher(self) -> LauncherProcess | None:
        """The launcher of Toolcrib's own interpreter, if it is running."""
        return self._launchers.find(_OWN, self._findings.generation)

    async def _try(self, job: Job, *, deadline: float, proxy: Proxy | None = None) -> CompletedJob:
        """Run a job of the probe, without required guarantees and without a slot."""
        limits = (MAX_STREAM_BYTES, MAX_STREAM_BYTES, MAX_RESULT_BYTES)
        with self._launchers.use(_OWN, self._findings.generation, job.policy.processes) as handle:
            return await self._run(handle, _order_for(job), encode(job, deadline), deadline, limits, None, proxy)

    def _refuse_from_workspace(self, program: Path) -> None:
        """Refuse an interpreter in a folder that tools can write to: the launcher runs outside the sandbox."""
        if self._workspace is None or not program.resolve().is_relative_to(self._workspace.resolve()):
            return
        message = f"{program} lies in the workspace, where tools write; install that Python elsewhere"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)

    async def _run(
        self,
        handle: LauncherHandle,
        order: bytes,
        message: bytes,
        until: float,
        limits: tuple[int, int, int],
        talk: Talk | None,
        proxy: Proxy | None,
        hear: Hear | None = None,
    ) -> CompletedJob:
        began = time.monotonic()
        for _ in range(_ATTEMPTS):
            attempt = Attempt(*limits, hear=hear)
            try:
                await _order(handle, attempt, order, until)
                await attempt.finish(message, until, talk=talk, proxy=proxy)
            finally:
                await attempt.end()
            if attempt.never_started:
                handle.replace_if_silent_since(began)
                break
            if not attempt.was_lost:
                handle.note_answer()
                return attempt.ended()
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, "the launcher of the sandbox does not start the job", retryable=True)


def _secrets_to_mask(root: Path, files: ProtectedFiles, policy: SandboxPolicy) -> list[Path]:
    """The secret files below the root; a tool may read its own folder and runtime, and a closed path needs no mask."""
    found = files.find_secrets()
    if not found:
        return []
    real = root.resolve()
    apart = {real / place.relative_to(root) for place in (*policy.read, *policy.closed) if root in place.parents}
    return [path for path in found if apart.isdisjoint((path, *path.parents))]


def _order_for(job: Job) -> bytes:
    """The order for the launcher: the modules to preload for the job."""
    if not isinstance(job, PythonFile):
        return to_order(())
    return to_order((*job.imports, "asyncio") if b"async" in job.code else job.imports)


async def _order(handle: LauncherHandle, attempt: Attempt, order: bytes, until: float) -> None:
    """Request a supervisor, waiting while the launcher is busy."""
    import asyncio  # late, for the reason that `toolcrib.infra.sandbox` gives

    while True:
        launcher = handle.running()
        try:
            if launcher.order(order, attempt.descriptors()):
                return
        except ConnectionError:
            handle.drop(launcher)
            continue
        if time.monotonic() > until:
            raise ToolError(Kind.OVERLOADED, "too many jobs wait for the sandbox; call again later", retryable=True)
        await asyncio.sleep(_BUSY_SECONDS)


# The launcher processes: one per interpreter, started on demand, with a bounded number of idle ones.

MAX_LAUNCHERS = 4
_MAX_STARTS = 10
_STARTS_WITHIN_SECONDS = 60.0


class Launchers:
    """Provide launchers; when there are too many, end those that have been idle longest.

    A launcher keeps the privileges with which it was started, so those of an earlier generation of privileges are not used again.
    """

    def __init__(self) -> None:
        # The garbage collector may close a job of a closed event loop in this thread, which releases its handle: hence
        # reentrant.
        self._lock = threading.RLock()
        self._handles: dict[tuple[Path, int], LauncherHandle] = {}  # least recently used first

    @contextlib.contextmanager
    def use(self, program: Path, generation: int, processes: int = 0) -> Iterator[LauncherHandle]:
        """The handle of the launcher for this interpreter, which is kept while in use by a job with so many processes."""
        tasks = processes * system.TASKS_PER_PROCESS
        with self._lock:
            place = (program, generation)
            handle = self._handles.pop(place, None) or LauncherHandle(program)
            self._handles[place] = handle
            handle.users += 1
            handle.tasks += tasks
            spare = self._take_spare(generation)
        for other in spare:
            other.close()
        handle.limit()
        try:
            yield handle
        finally:
            with self._lock:
                handle.users -= 1
                handle.tasks -= tasks
            handle.limit()

    def find(self, program: Path, generation: int) -> LauncherProcess | None:
        """The launcher for this interpreter, if it is running."""
        handle = self._handles.get((program, generation))
        return None if handle is None else handle.launcher

    def close(self) -> None:
        """End every launcher and every job under it; waits a few seconds at most."""
        for handle in list(self._handles.values()):
            handle.close()

    def _take_spare(self, generation: int) -> list[LauncherHandle]:
        idle = [place for place, handle in self._handles.items() if handle.users == 0]
        outdated = [place for place in idle if place[1] != generation]
        surplus = idle[: max(0, len(self._handles) - MAX_LAUNCHERS)]
        return [self._handles.pop(place) for place in {*outdated, *surplus}]


class LauncherHandle:
    """One launcher, started on demand and restarted when it is gone."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._starts: collections.deque[float] = collections.deque(maxlen=_MAX_STARTS)
        self._last_answer = 0.0
        self.launcher: LauncherProcess | None = None
        self.users = 0
        self.tasks = 0

    def running(self) -> LauncherProcess:
        """The launcher, started if necessary."""
        with self._lock:
            if self.launcher is not None and not self.launcher.is_ours:
                self.launcher.close()
                self.launcher = None
            if self.launcher is None:
                # From now on untrusted code of the same user runs, and must not read this process's memory and
                # environment.
                system.prctl(system.DUMPABLE, 0)
                self.launcher = self._start()
                self.limit()
            return self.launcher

    def limit(self) -> None:
        """Limit the launcher to the tasks of the jobs that use it now."""
        launcher = self.launcher
        if launcher is not None:
            launcher.limit(lambda: self.tasks)

    def note_answer(self) -> None:
        """Remember that it started a job just now."""
        self._last_answer = time.monotonic()

    def replace_if_silent_since(self, moment: float) -> None:
        """Kill a launcher that hangs; one that is only busy has started other jobs meanwhile."""
        launcher = self.launcher
        if launcher is not None and self._last_answer < moment:
            launcher.kill()
            self.drop(launcher)

    def drop(self, launcher: LauncherProcess) -> None:
        """Close this launcher and forget it."""
        with self._lock:
            if self.launcher is launcher:
                self.launcher = None
        launcher.close()

    def close(self) -> None:
        """End the launcher and every job under it."""
        launcher = self.launcher
        if launcher is not None:
            self.drop(launcher)
        self._starts.clear()

    def _start(self) -> LauncherProcess:
        now = time.monotonic()
        if len(self._starts) == _MAX_STARTS and now - self._starts[0] < _STARTS_WITHIN_SECONDS:
            message = f"the launcher of the sandbox ended {_MAX_STARTS} times within {_STARTS_WITHIN_SECONDS:g} s; wait a minute"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True)
        self._starts.append(now)
        try:
            return LauncherProcess(self._program)
        except OSError as problem:
            message = f"the launcher of the sandbox cannot be started: {problem.strerror}"
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True) from problem


# Starting a launcher from the host, and its control socket.

_END_SECONDS = 6.0
# One message is one order, where the system preserves message boundaries.
_ORDERS = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
# The packages are registered without running their __init__, which would load all of Toolcrib into every worker.
_BOOT = """\
import sys
folder = sys.argv[1]
for name in ("toolcrib", "toolcrib.lib", "toolcrib.infra", "toolcrib.infra.sandbox", "toolcrib.infra.sandbox.child"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [folder + name.removeprefix("toolcrib").replace(".", "/")]
from toolcrib.infra.sandbox.child.launcher import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""


class LauncherProcess:
    """A running launcher process and its control socket."""

    def __init__(self, program: Path) -> None:
        self._owner = os.getpid()
        self._tasks: Callable[[], int] = lambda: 0
        self._cgroup: str | None = None
        self._cgroup_lock = threading.RLock()  # reentrant for the reason that `Launchers` gives
        self._control, theirs = socket.socketpair(socket.AF_UNIX, _ORDERS)
        self._control.settimeout(0)
        package = Path(__file__).resolve().parents[2]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter outside the workspace, running our own code
                [
                    *(str(program), "-I", "-S", "-X", "utf8", "-c", _BOOT),
                    *(str(package), str(theirs.fileno()), str(self._owner)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._confining = self._confine()

    @property
    def is_ours(self) -> bool:
        """Whether this process started it; a fork of the host only inherits it."""
        return self._owner == os.getpid()

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def order(self, order: bytes, descriptors: Sequence[int]) -> bool:
        """Request a supervisor; False if too many orders are pending, ConnectionError if the launcher is gone."""
        try:
            socket.send_fds(self._control, [order[:ORDER_BYTES]], descriptors)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno == errno.ETOOMANYREFS:
                return False
            if isinstance(problem, ConnectionError):
                raise
            raise ConnectionError(str(problem)) from problem
        return True

    def _confine(self) -> threading.Thread | None:
        """As root, put the launcher into a cgroup in the background; other users are limited by RLIMIT_NPROC."""
        if os.geteuid() != 0:
            return None
        thread = threading.Thread(target=self._enter_cgroup, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread available: each call is measured anyway
            return None
        return thread

    def _enter_cgroup(self) -> None:
        self._cgroup = system.enter_cgroup(self._process.pid)
        self._limit_cgroup()

    def limit(self, tasks: Callable[[], int]) -> None:
        """Limit its cgroup, if it has one, to so many tasks of jobs."""
        self._tasks = tasks
        self._limit_cgroup()

    def _limit_cgroup(self) -> None:
        if self._cgroup is None or not self.is_ours:
            return
        # Counted within the lock, so that the last one to write has the newest number.
        with self._cgroup_lock, contextlib.suppress(OSError):
            system.limit_cgroup(self._cgroup, self._tasks())

    def kill(self) -> None:
        """Kill it; its supervisors end their calls."""
        self._process.kill()

    def close(self) -> None:
        """End it and every call under it, and wait for that."""
        if self._confining is not None and self.is_ours:
            self._confining.join(_END_SECONDS)  # the launcher leaves its cgroup when it ends
        if self._cgroup is not None and self.is_ours:
            with contextlib.suppress(OSError):  # then it leaves its cgroup by itself
                self._control.send(FAREWELL)
        self._control.close()
        if not self.is_ours:
            self._process.returncode = 0  # the parent process waits for it
            return
        if not self._has_ended(_END_SECONDS):
            self._process.kill()
            self._process.wait(_END_SECONDS)
        if self._cgroup is not None:
            with contextlib.suppress(OSError):  # else the next launcher removes it
                Path(self._cgroup).rmdir()

    def _has_ended(self, seconds: float) -> bool:
        """Wait until it has ended; a pidfd says so at once, while `Popen.wait` looks less and less often."""
        try:
            descriptor = os.pidfd_open(self._process.pid) if self._process.poll() is None else None
        except (AttributeError, OSError):
            descriptor = None
        if descriptor is not None:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            is_over = bool(poll.poll(seconds * 1000))
            os.close(descriptor)
            if not is_over:
                return False
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
