"""What is known about the walls of this machine: tried once, shared by every Sandbox of the process, kept on disk."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from toolcrib.ground.sandbox.jobs import Walls
    from toolcrib.ground.sandbox.probe import Report, RunJob


@functools.cache
def findings_at(cache: Path | None) -> Findings:
    """What this process knows, kept in this file; what was tried for one file needs no second trial for another."""
    return Findings(cache, tried=None if cache is None else findings_at(None))


def profile_of(walls: Walls | None, *, program: bool = False) -> str:
    """Which of the reports speaks of a job behind such walls."""
    if walls is not None and walls.network:
        return "network"
    return "program" if program or (walls is not None and walls.programs) else "plain"


class Findings:
    """The reports of the probe, one for each profile of jobs. `tried` has them tried for several of these."""

    def __init__(self, cache: Path | None, tried: Findings | None = None) -> None:
        self._cache = cache
        self._tried = tried
        self._lock = threading.Lock()
        self._trying: tuple[int, Future[None]] | None = None
        self._trial: asyncio.Task[None] | None = None
        self._reports: Mapping[str, Report] | None = None
        self._looked = False

    def known(self) -> Mapping[str, Report] | None:
        """The reports, None if nobody has tried yet."""
        if self._reports is None and not self._looked and self._cache is not None:
            from toolcrib.ground.sandbox import probe

            self._reports = probe.load(self._cache)
            self._looked = True
        return self._reports

    async def learn(self, run_job: RunJob) -> None:
        """Have it tried: the first who asks does it, the others wait, and it goes on if one of them is cancelled."""
        while self.known() is None:
            own, trying = self._begin()
            if own:
                self._trial = asyncio.create_task(self._try(run_job, trying))
                await asyncio.shield(self._trial)
            else:
                await asyncio.shield(asyncio.wrap_future(trying))

    async def rest(self) -> None:
        """Break off a trial that this loop began; whoever else waits for it begins anew."""
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
        from toolcrib.ground.sandbox import probe

        try:
            self._reports = await self._probe(run_job)
            if self._cache is not None:
                with contextlib.suppress(OSError):  # then the next process tries again
                    probe.store(self._cache, self._reports)
        finally:
            with self._lock:
                self._trying = None
            trying.set_result(None)

    async def _probe(self, run_job: RunJob) -> Mapping[str, Report]:
        from toolcrib.ground.sandbox import probe

        if self._tried is None:
            return await probe.probe(run_job)
        await self._tried.learn(run_job)
        return self._tried.known() or {}
