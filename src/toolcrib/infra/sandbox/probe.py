"""What this machine guarantees: probed once, shared by every Sandbox of the process, cached on disk."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox.jobs import NETWORK_PROFILE, PLAIN_PROFILE, PROFILES, PROGRAM_PROFILE
from toolcrib.infra.sandbox.probe_trials import try_everything

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from toolcrib.infra.sandbox.jobs import RunJob, SandboxPolicy


@functools.cache
def findings_at(cache: Path | None) -> Findings:
    """The findings of this process with this cache file; all cache files share one probe."""
    return Findings(cache, tried=None if cache is None else findings_at(None))


def profile_of(policy: SandboxPolicy | None, *, program: bool = False) -> str:
    """The profile of a job under this policy."""
    if policy is not None and policy.network:
        return NETWORK_PROFILE
    return PROGRAM_PROFILE if program or (policy is not None and policy.programs) else PLAIN_PROFILE


class Findings:
    """The reports of the probe, one per profile. `tried` runs the probe on behalf of several Findings."""

    def __init__(self, cache: Path | None, tried: Findings | None = None) -> None:
        self._cache = cache
        self._tried = tried
        self._lock = threading.Lock()
        self._trying: tuple[int, Future[None]] | None = None
        self._trial: asyncio.Task[None] | None = None
        self._reports: Mapping[str, Report] | None = None
        self._looked = False

    def known(self) -> Mapping[str, Report] | None:
        """The reports, None if the machine was not probed yet."""
        if self._reports is None and not self._looked and self._cache is not None:
            self._reports = load(self._cache)
            self._looked = True
        return self._reports

    async def learn(self, run_job: RunJob) -> None:
        """Run the probe: the first caller runs it, the others wait, and it continues if one of them is cancelled."""
        while self.known() is None:
            own, trying = self._begin()
            if own:
                self._trial = asyncio.create_task(self._try(run_job, trying))
                await asyncio.shield(self._trial)
            else:
                await asyncio.shield(asyncio.wrap_future(trying))

    async def rest(self) -> None:
        """Cancel a probe that this event loop started; other waiting callers start it again."""
        trial = self._trial
        if trial is None or trial.done() or trial.get_loop() is not asyncio.get_running_loop():
            return
        if self._tried is not None:
            await self._tried.rest()
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)

    def _begin(self) -> tuple[bool, Future[None]]:
        from concurrent.futures import Future

        with self._lock:
            if self._trying is not None and self._trying[0] == os.getpid():
                return False, self._trying[1]
            trying: Future[None] = Future()
            self._trying = (os.getpid(), trying)
            return True, trying

    async def _try(self, run_job: RunJob, trying: Future[None]) -> None:

        try:
            self._reports = await self._probe(run_job)
            if self._cache is not None:
                with contextlib.suppress(OSError):  # the next process probes again
                    store(self._cache, self._reports)
        finally:
            with self._lock:
                self._trying = None
            trying.set_result(None)

    async def _probe(self, run_job: RunJob) -> Mapping[str, Report]:

        if self._tried is None:
            return await probe(run_job)
        await self._tried.learn(run_job)
        return self._tried.known() or {}


# The probe: jobs that try what is forbidden, and a cache that is valid while the system stays the same.


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The guarantees that held for one profile, and the layers that were active during the probe."""

    guarantees: frozenset[str]
    layers: tuple[str, ...]


async def probe(run_job: RunJob) -> dict[str, Report]:
    """Try everything that is forbidden; `run_job` is `Sandbox.run` without any requirement."""
    found = await try_everything(run_job, PROFILES)
    return {profile: Report(guarantees=kept, layers=layers) for profile, (kept, layers) in found.items()}


def load(path: Path) -> dict[str, Report] | None:
    """Load earlier findings; None if there are none that are valid for the system as it is now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return None
        try:
            document = json.loads(file.read())
            if document["of"] != _circumstances():
                return None
            return {profile: _read_report(document["reports"][profile]) for profile in PROFILES}
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def store(path: Path, reports: Mapping[str, Report]) -> None:
    """Store the findings; raises OSError if they cannot be written."""
    document = {
        "of": _circumstances(),
        "reports": {
            profile: {"guarantees": sorted(report.guarantees), "layers": list(report.layers)}
            for profile, report in reports.items()
        },
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        fresh.replace(path)
    except OSError:
        fresh.unlink()
        raise


def _read_report(document: object) -> Report:
    if not isinstance(document, dict):
        raise ValueError("a report is a mapping")
    guarantees, layers = document["guarantees"], document["layers"]
    if not all(isinstance(name, str) for name in (*guarantees, *layers)):
        raise ValueError("names are texts")
    return Report(guarantees=frozenset(guarantees), layers=tuple(layers))


def _circumstances() -> list[str]:
    """What the findings depend on: another kernel, user, interpreter or sandbox invalidates them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        boot = ""
    folder = Path(__file__).parent
    files = (*folder.glob("*.py"), *(folder / "child").glob("*.py"))
    code = sorted(f"{file.name} {file.stat().st_mtime_ns}" for file in files)
    system = os.uname()
    who = f"{os.geteuid()}:{os.getegid()}"
    return [boot, system.release, system.version, who, os.path.realpath(sys.executable), sys.version, *code]
