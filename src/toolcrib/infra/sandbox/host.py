"""The sandbox as the rest of Toolcrib uses it: run a job in a child process and report which guarantees held."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.channel import to_order
from toolcrib.infra.files.protected_files import SecretFiles, find_hook_folders
from toolcrib.infra.sandbox import GUARANTEES, JOBS, QUEUE, REQUIRE
from toolcrib.infra.sandbox.attempt import Attempt
from toolcrib.infra.sandbox.jobs import Program, PythonFile, encode
from toolcrib.infra.sandbox.launchers import Launchers
from toolcrib.infra.sandbox.probe import findings_at, profile_of, shared_folder
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from toolcrib.infra.sandbox.attempt import Proxy, Talk
    from toolcrib.infra.sandbox.jobs import CompletedJob, Job, SandboxPolicy
    from toolcrib.infra.sandbox.launchers import LauncherHandle, LauncherProcess
    from toolcrib.infra.sandbox.probe import Report


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
    inside the `workspace` is never started. One Sandbox serves any number of event loops and threads; `close` kills
    what is running, and a later job starts the launcher again.
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
    ) -> None:
        self._require = tuple(require)
        self._slots = Slots(jobs, queue)
        self.waiting = WaitingJobs(max(1, jobs // 2))
        self._launchers = Launchers()
        self._findings = findings_at(cache, None if runtime is None else shared_folder(runtime, workspace))
        self._workspace = workspace
        self._secrets: dict[tuple[Path, tuple[str, ...]], SecretFiles] = {}

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
        message = (
            f"the sandbox cannot guarantee {', '.join(missing)} on this system; "
            "the operator may lower the setting sandbox.require"
        )
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, details={"missing": missing})

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
    ) -> CompletedJob:
        """Run a job until it ends or `deadline` (time.monotonic) passes; no process of it is left when this returns.

        That holds for cancellation too. The time of the probe before the very first job does not count against the
        deadline. Output beyond a stream's limit is dropped; a result beyond its limit ends the job. `talk` answers on
        the channel of a job that has one, `proxy` accepts the connections of a job with network; both run until the job
        ends. A `nested` job was requested by a running one and shares its slot. With `extra_seconds` a job that has
        begun may stay that much longer, for a caller that ends it earlier itself.
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
            with self._launchers.use(_OWN if interpreter is None else interpreter.program) as handle:
                return await self._run(handle, _order_for(job), message, last, limits, talk, proxy)

    async def _guard(self, job: Job) -> Job:
        """Complete the policy with the protected files and hook folders that exist now."""
        return replace(job, policy=await asyncio.to_thread(self._complete, job.policy)) if job.policy.guarded else job

    def _complete(self, policy: SandboxPolicy) -> SandboxPolicy:
        hooks = [path for root in policy.guarded for path in find_hook_folders(root)] if policy.write else []
        masked = [path for root in policy.guarded for path in self._find_secrets(root, policy)]
        return replace(policy, masked=tuple(masked), hooks=tuple(hooks)) if masked or hooks else policy

    def _find_secrets(self, root: Path, policy: SandboxPolicy) -> list[Path]:
        """The secret files to mask; a tool may read its own folder and runtime, and a closed path needs no mask."""
        found = self._secrets_of(root, policy).find()
        if not found:
            return []
        real = root.resolve()
        apart = {real / place.relative_to(root) for place in (*policy.read, *policy.closed) if root in place.parents}
        return [path for path in found if apart.isdisjoint((path, *path.parents))]

    def _secrets_of(self, root: Path, policy: SandboxPolicy) -> SecretFiles:
        key = root, policy.opened
        return self._secrets.setdefault(key, self._secrets.get(key) or SecretFiles(*key))

    def start(self) -> None:
        """Start the launcher of Toolcrib's own interpreter early, so that the first job does not wait for it."""
        # The first job reports why the launcher does not start.
        with contextlib.suppress(ToolError), self._launchers.use(_OWN) as handle:
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
        return self._launchers.find(_OWN)

    async def _try(self, job: Job, *, deadline: float, proxy: Proxy | None = None) -> CompletedJob:
        """Run a job of the probe, without required guarantees and without a slot."""
        limits = (MAX_STREAM_BYTES, MAX_STREAM_BYTES, MAX_RESULT_BYTES)
        with self._launchers.use(_OWN) as handle:
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
    ) -> CompletedJob:
        began = time.monotonic()
        for _ in range(_ATTEMPTS):
            attempt = Attempt(*limits)
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


def _order_for(job: Job) -> bytes:
    """The order for the launcher: the modules to preload for the job."""
    if not isinstance(job, PythonFile):
        return to_order(())
    return to_order((*job.imports, "asyncio") if b"async" in job.code else job.imports)


async def _order(handle: LauncherHandle, attempt: Attempt, order: bytes, until: float) -> None:
    """Request a supervisor, waiting while the launcher is busy."""
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


# Job slots: a bounded number of jobs run at once, the others wait in first-in, first-out order.

_LONGEST_ADVICE_SECONDS = 60
_WEIGHT_OF_THE_LAST = 0.2


class Slots:
    """Slots for running jobs, granted in FIFO order across event loops and threads."""

    def __init__(self, jobs: int = JOBS, queue: int = QUEUE) -> None:
        self._jobs = jobs
        self._queue = queue
        self._lock = threading.Lock()
        self._usual_seconds = 0.0
        self._open()

    @contextlib.asynccontextmanager
    async def take(self, deadline: float) -> AsyncIterator[None]:
        """Hold a slot inside the block; raises OVERLOADED if none becomes free before the deadline (time.monotonic)."""
        await self._enter(deadline)
        began, owner = time.monotonic(), self._owner
        try:
            yield
        finally:
            if owner == os.getpid():
                self._release(time.monotonic() - began)

    def _open(self) -> None:
        self._owner = os.getpid()
        self._free = self._jobs
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    async def _enter(self, deadline: float) -> None:
        turn = self._enqueue()
        if turn is None:
            return
        try:
            await asyncio.wait((turn,), timeout=max(0.0, deadline - time.monotonic()))
        except asyncio.CancelledError:
            if not self._leave(turn):
                self._release()
            raise
        if self._leave(turn):
            raise self._refusal("no sandbox slot became free before the deadline of the call")

    def _enqueue(self) -> asyncio.Future[None] | None:
        """Take a free slot, or join the end of the queue."""
        with self._lock:
            if self._owner != os.getpid():  # after a fork of the host: the parent's jobs do not count here
                self._open()
            if self._free > 0:
                self._free -= 1
                return None
            if len(self._waiting) >= self._queue:
                raise self._refusal(f"{self._jobs} jobs run in the sandbox and {len(self._waiting)} more wait")
            loop = asyncio.get_running_loop()
            turn = loop.create_future()
            self._waiting[turn] = loop
            return turn

    def _leave(self, turn: asyncio.Future[None]) -> bool:
        """Leave the queue; False if the slot was already granted."""
        with self._lock:
            return self._waiting.pop(turn, None) is not None

    def _release(self, seconds: float | None = None) -> None:
        """Pass the slot to the job that has waited longest."""
        with self._lock:
            if seconds is not None:
                self._usual_seconds += (seconds - self._usual_seconds) * _WEIGHT_OF_THE_LAST
            while self._waiting:
                turn = next(iter(self._waiting))
                loop = self._waiting.pop(turn)
                try:
                    loop.call_soon_threadsafe(_grant, turn)
                except RuntimeError:  # its event loop was closed
                    continue
                return
            self._free += 1

    def _refusal(self, reason: str) -> ToolError:
        seconds = self._usual_seconds * (len(self._waiting) + 1) / self._jobs
        advice = min(max(1, math.ceil(seconds)), _LONGEST_ADVICE_SECONDS)
        message = f"{reason}; call again in {advice} s, or raise the setting sandbox.jobs"
        return ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": advice})


class WaitingJobs:
    """Places for jobs that wait for the client of their call.

    Such a job keeps its slot, so only some may wait, and one caller cannot take the last place from the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_a_caller = max(1, most - 1)
        self._lock = threading.Lock()
        self._callers: Counter[str] = Counter()

    @contextlib.contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Take a place within the block; raises OVERLOADED where none is free."""
        with self._lock:
            if self._callers.total() >= self._most or self._callers[caller] >= self._most_of_a_caller:
                message = f"{self._callers.total()} jobs wait for an answer of their clients; ask again later"
                raise ToolError(Kind.OVERLOADED, message, retryable=True)
            self._callers[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._callers[caller] -= 1
                if not self._callers[caller]:
                    del self._callers[caller]


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
