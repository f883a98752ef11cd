"""The sandbox as the rest of Toolcrib sees it: run a job in a child, and say what that child was kept from."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files.hook_folders import find_hook_folders
from toolcrib.infra.sandbox.attempt import Attempt
from toolcrib.infra.sandbox.child.preload import to_order
from toolcrib.infra.sandbox.jobs import Program, PythonFile, encode
from toolcrib.infra.sandbox.launchers import Launchers
from toolcrib.infra.sandbox.probe import findings_at, profile_of
from toolcrib.infra.sandbox.secret_files import SecretFiles
from toolcrib.infra.settings.readers import GUARANTEES
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from toolcrib.infra.sandbox.attempt import Proxy, Talk
    from toolcrib.infra.sandbox.jobs import Ended, Job, Walls
    from toolcrib.infra.sandbox.launchers import LauncherProcess, Seat


# How many jobs run at once: those beyond that number wait in the order in which they came.

JOBS = 8
QUEUE = 1_000

_LONGEST_ADVICE_SECONDS = 60
_WEIGHT_OF_THE_LAST = 0.2


class Slots:
    """Places for jobs, first come first served, whichever event loop or thread they come from."""

    def __init__(self, jobs: int = JOBS, queue: int = QUEUE) -> None:
        self._jobs = jobs
        self._queue = queue
        self._lock = threading.Lock()
        self._usual_seconds = 0.0
        self._open()

    @contextlib.asynccontextmanager
    async def take(self, deadline: float) -> AsyncIterator[None]:
        """Have a place while inside; raises OVERLOADED if there is none before the deadline (time.monotonic)."""
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
        turn = self._line_up()
        if turn is None:
            return
        try:
            await asyncio.wait((turn,), timeout=max(0.0, deadline - time.monotonic()))
        except asyncio.CancelledError:
            if not self._leave(turn):
                self._release()
            raise
        if self._leave(turn):
            raise self._refusal("no place in the sandbox became free in the time of the call")

    def _line_up(self) -> asyncio.Future[None] | None:
        """Take a free place, or stand at the end of the queue."""
        with self._lock:
            if self._owner != os.getpid():  # a fork of the host: the jobs of its parent are none of its own
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
        """Go away from the queue; False if the place was already given."""
        with self._lock:
            return self._waiting.pop(turn, None) is not None

    def _release(self, seconds: float | None = None) -> None:
        """Hand the place to whoever waits longest."""
        with self._lock:
            if seconds is not None:
                self._usual_seconds += (seconds - self._usual_seconds) * _WEIGHT_OF_THE_LAST
            while self._waiting:
                turn = next(iter(self._waiting))
                loop = self._waiting.pop(turn)
                try:
                    loop.call_soon_threadsafe(_give, turn)
                except RuntimeError:  # its loop was closed under it
                    continue
                return
            self._free += 1

    def _refusal(self, reason: str) -> ToolError:
        seconds = self._usual_seconds * (len(self._waiting) + 1) / self._jobs
        advice = min(max(1, math.ceil(seconds)), _LONGEST_ADVICE_SECONDS)
        message = f"{reason}; call again in {advice} s, or raise the setting sandbox_jobs"
        return ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": advice})


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


# What holds even for a job without walls.
ALWAYS = ("time", "reap", "env")
REQUIRE = ("env", "time", "reap", "fs", "net", "priv")

MAX_STREAM_BYTES = 256 * 1024
MAX_RESULT_BYTES = 8 * 1024 * 1024

_LONGEST_SECONDS = 7 * 24 * 3600.0
_KILL_ROOM_SECONDS = 0.5  # what ending a tree of processes and telling about it may take
_BUSY_SECONDS = 0.002
_ATTEMPTS = 3


def strike_time(deadline: float, room: float = 0.0) -> float:
    """When to begin ending a job so that its answer is there by the deadline, or that many seconds behind it."""
    left = deadline - time.monotonic()
    return deadline - max(0.0, min(_KILL_ROOM_SECONDS, left / 10) - room)


class Sandbox:
    """Runs jobs in child processes, which come out of a launcher that the first job starts and all share.

    `require` names the guarantees without which no job runs; what this machine guarantees is tried before the first job
    and kept in the file `cache`. `jobs` run at once and `queue` more may wait. No interpreter that lies in the `workspace`
    is started. One Sandbox serves any number of event loops and threads; `close` ends what is running, and a later job
    starts the launcher again.
    """

    def __init__(
        self,
        *,
        require: Iterable[str] = REQUIRE,
        jobs: int = JOBS,
        queue: int = QUEUE,
        cache: Path | None = None,
        workspace: Path | None = None,
    ) -> None:
        self._require = tuple(require)
        self._slots = Slots(jobs, queue)
        self._launchers = Launchers()
        self._findings = findings_at(cache)
        self._workspace = workspace
        self._secrets: dict[tuple[Path, tuple[str, ...]], SecretFiles] = {}

    def report(self, profile: str = "plain") -> dict[str, list[str]]:
        """What holds for jobs of a profile, by which layers, and what nobody guarantees; nothing before it was tried."""
        reports = self._findings.known() or {}
        report = reports.get(profile)
        guarantees = frozenset() if report is None else report.guarantees
        return {
            "guarantees": [name for name in GUARANTEES if name in guarantees],
            "layers": [] if report is None else list(report.layers),
            "missing": [name for name in GUARANTEES if name not in guarantees],
        }

    def report_on(self, job: Job) -> dict[str, list[str]]:
        """What holds for a job like this one."""
        if job.walls.open:
            missing = [name for name in GUARANTEES if name not in ALWAYS]
            return {"guarantees": list(ALWAYS), "layers": ["hygiene"], "missing": missing}
        return self.report(profile_of(job.walls, program=isinstance(job, Program)))

    def check(self, walls: Walls | None = None, profile: str = "") -> None:
        """Refuse, with SANDBOX_UNAVAILABLE, if a required guarantee is known to be missing for jobs behind such walls.

        What has not been tried yet passes: `run` tries it.
        """
        reports = self._findings.known()
        guarantees = GUARANTEES if reports is None else reports[profile or profile_of(walls)].guarantees
        missing = [name for name in self._require if name not in guarantees]
        if not missing:
            return
        message = (
            f"the sandbox cannot guarantee {', '.join(missing)} on this system; "
            "the operator may lower the setting sandbox_require"
        )
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, message, details={"missing": missing})

    def check_for(self, job: Job) -> None:
        """As `check`, for a job like this one; one without walls needs none."""
        if not job.walls.open:
            self.check(profile=profile_of(job.walls, program=isinstance(job, Program)))

    async def learn(self) -> None:
        """Try what this machine guarantees, if nobody has yet."""
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
    ) -> Ended:
        """Run a job until it ends or `deadline` (time.monotonic) passes; no process of it is left when this returns.

        That holds for cancellation too. The time in which the walls are tried before the first job of all is not its own.
        What a stream carries beyond its limit is dropped; a result beyond its limit ends the job. `talk` answers on the
        channel of a job that has one, `proxy` where a job with a network knocks; both go on until the job ends. A `nested`
        job was asked for by one that runs: it shares the place of that one.
        """
        job = await self._guard(job)
        if job.walls.network and proxy is None:
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, "a job with a network needs a proxy to lead it; none was given")
        interpreter = job.interpreter if isinstance(job, PythonFile) else None
        if interpreter is not None:
            self._refuse_from_workspace(interpreter.program)
        profile = profile_of(job.walls, program=isinstance(job, Program))
        if self._require and self._findings.known() is None:
            encode(job, deadline)  # what cannot be sent is refused before anything is tried
            began = time.monotonic()
            await self.learn()
            deadline += time.monotonic() - began
        self.check_for(job)
        until = min(deadline, time.monotonic() + _LONGEST_SECONDS)
        message = encode(job, until, [] if job.walls.open else self._layers(profile))
        limits = (max_stdout, max_stderr, max_result)
        place = contextlib.nullcontext() if nested else self._slots.take(until)
        async with place:
            with self._launchers.use(_OWN if interpreter is None else interpreter.program) as seat:
                return await self._run(seat, _order_for(job), message, until, limits, talk, proxy)

    async def _guard(self, job: Job) -> Job:
        """The job, kept from what lies now in the folders that it can see."""
        return replace(job, walls=await asyncio.to_thread(self._complete, job.walls)) if job.walls.guarded else job

    def _complete(self, walls: Walls) -> Walls:
        hooks = [path for root in walls.guarded for path in find_hook_folders(root)] if walls.write else []
        masked = [path for root in walls.guarded for path in self._find_secrets(root, walls)]
        return replace(walls, masked=tuple(masked), hooks=tuple(hooks)) if masked or hooks else walls

    def _find_secrets(self, root: Path, walls: Walls) -> list[Path]:
        """Those that are to be masked: a tool reads its own folder and its runtime, and what is closed needs no mask."""
        found = self._secrets_of(root, walls).find()
        if not found:
            return []
        real = root.resolve()
        apart = {real / place.relative_to(root) for place in (*walls.read, *walls.closed) if root in place.parents}
        return [path for path in found if apart.isdisjoint((path, *path.parents))]

    def _secrets_of(self, root: Path, walls: Walls) -> SecretFiles:
        key = root, walls.opened
        return self._secrets.setdefault(key, self._secrets.get(key) or SecretFiles(*key))

    def start(self) -> None:
        """Start the launcher of Toolcrib's own interpreter ahead of the first job, which waits for it otherwise."""
        # Whatever keeps it from starting, the job will say.
        with contextlib.suppress(ToolError), self._launchers.use(_OWN) as seat:
            seat.running()

    async def settle(self) -> None:
        """Begin nothing any more by itself: what is still being tried is broken off, and would start the launcher again."""
        await self._findings.rest()

    def close(self) -> None:
        """End the launchers and every job under them; waits for that, a few seconds at the most."""
        self._launchers.close()

    @property
    def _launcher(self) -> LauncherProcess | None:
        """The launcher of Toolcrib's own interpreter, if it runs."""
        return self._launchers.find(_OWN)

    def _layers(self, profile: str) -> tuple[str, ...]:
        """The walls that stood when the guarantees were tried, without which they are worth nothing."""
        reports = self._findings.known()
        return reports[profile].layers if reports is not None and self._require else ()

    async def _try(self, job: Job, *, deadline: float, proxy: Proxy | None = None) -> Ended:
        """Run a job of the probe: it needs no guarantee and no place."""
        limits = (MAX_STREAM_BYTES, MAX_STREAM_BYTES, MAX_RESULT_BYTES)
        with self._launchers.use(_OWN) as seat:
            return await self._run(seat, _order_for(job), encode(job, deadline), deadline, limits, None, proxy)

    def _refuse_from_workspace(self, program: Path) -> None:
        """Whoever chose the interpreter: what tools can write is not started outside of the sandbox."""
        if self._workspace is None or not program.resolve().is_relative_to(self._workspace.resolve()):
            return
        message = f"{program} lies in the workspace, where tools write; install that Python elsewhere"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)

    async def _run(
        self,
        seat: Seat,
        wish: bytes,
        message: bytes,
        until: float,
        limits: tuple[int, int, int],
        talk: Talk | None,
        proxy: Proxy | None,
    ) -> Ended:
        began = time.monotonic()
        for _ in range(_ATTEMPTS):
            attempt = Attempt(*limits)
            try:
                await _order(seat, attempt, wish, until)
                await attempt.finish(message, until, talk=talk, proxy=proxy)
            finally:
                await attempt.end()
            if attempt.was_ignored:
                seat.replace_if_silent_since(began)
                break
            if not attempt.was_lost:
                seat.note_answer()
                return attempt.ended()
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, "the sandbox's launcher does not start the job", retryable=True)


_OWN = Path(sys.executable)


def _order_for(job: Job) -> bytes:
    """What the launcher should have ready for the job."""
    if not isinstance(job, PythonFile):
        return to_order(())
    return to_order((*job.imports, "asyncio") if b"async" in job.code else job.imports)


async def _order(seat: Seat, attempt: Attempt, wish: bytes, until: float) -> None:
    """Have a supervisor started."""
    while True:
        launcher = seat.running()
        try:
            if launcher.order(wish, attempt.descriptors()):
                return
        except ConnectionError:
            seat.drop(launcher)
            continue
        if time.monotonic() > until:
            raise ToolError(Kind.OVERLOADED, "too many jobs wait for the sandbox; call again later", retryable=True)
        await asyncio.sleep(_BUSY_SECONDS)
