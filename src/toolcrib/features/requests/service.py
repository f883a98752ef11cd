"""The service of requests: their queue, the bench of the gate and the makers, each made on first use."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.features.requests.auto_request import AutoRequests, Obtainer
from toolcrib.features.requests.builder import Builder
from toolcrib.features.requests.claim import Bench
from toolcrib.features.requests.settings import BuilderSettings, QueueSettings, RequestsSettings
from toolcrib.features.requests.tracker import Requests
from toolcrib.features.requests.trial_crib import trials_of
from toolcrib.infra.files import make_folder
from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.features.requests.gate.contract import OpenTrial
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Maker, Queue
    from toolcrib.model.tool import Entry

BUILDS = "builds"
# A URL of another scheme is one that the client of Redis knows.
REDIS = "redis"


class RequestService:
    """What a Crib has for tools that do not exist yet: requests, their queue, and Builders."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._find: Callable[[str], Entry | None] = resources.get("find")
        self._suggest: Callable[[str], str] = resources.get("suggest")
        self._opening = threading.Lock()
        self._queue: Queue | None = None

    @property
    def queue(self) -> Queue:
        """Where requests wait: one object for all threads."""
        with self._opening:
            if self._queue is None:
                self._queue = self._open_queue()
            return self._queue

    @cached_property
    def requests(self) -> Requests:
        """What can be done with requests."""
        settings = self._resources.settings
        builder = settings.table(BuilderSettings)
        return Requests(
            queue=lambda: self.queue,
            bench=lambda: self._bench,
            exists=self._exists,
            builds=lambda: self.builds,
            strict=settings.table(RequestsSettings).strict,
            lease_seconds=builder.lease_seconds,
            seconds=builder.seconds,
        )

    @cached_property
    def obtainer(self) -> Obtainer:
        """Waits for tools."""
        return Obtainer(self.requests, self._find)

    @cached_property
    def auto_requests(self) -> AutoRequests:
        """Files requests for missing tools that were called or searched for."""
        return AutoRequests(self.requests, suggest=self._suggest)

    async def request_for(self, call: Call) -> str:
        """File a request for a missing tool that was called; its id, or empty if none was filed."""
        if not self._files_missing:
            return ""
        return await asyncio.to_thread(self.auto_requests.of_call, call.name, call.arguments) or ""

    def request_from_search(self, text: str) -> str:
        """File a request for what a search did not find; its id, or empty unless `requests.missing` is set."""
        if not self._files_missing:
            return ""
        return self.auto_requests.of_search(text) or ""

    @property
    def _files_missing(self) -> bool:
        """Whether what was asked for in vain becomes a request."""
        settings = self._resources.settings
        return settings.root is not None and settings.table(RequestsSettings).missing

    def builder(self, maker: str | None = None, say: Callable[[str], None] | None = None) -> Builder:
        """A Builder of this process; `maker` names what writes the code, by default the setting builder.maker."""
        settings = self._resources.settings.table(BuilderSettings)
        return Builder(
            self.queue,
            self._maker(maker or settings.maker),
            self._bench,
            folder=self.builds,
            owner=f"builder-{os.getpid()}-{os.urandom(4).hex()}",
            lease_seconds=settings.lease_seconds,
            seconds=settings.seconds,
            attempts=settings.attempts,
            say=say,
        )

    @property
    def builds(self) -> Path:
        """Where makers work."""
        folder = self._resources.data.folder() / BUILDS
        make_folder(folder)
        return folder

    @property
    def trials(self) -> OpenTrial:
        """Opens a Crib for the trial of a tool, in the sandbox of this one."""
        return trials_of(self._resources, self._resources.get("open_trial_crib"))

    def close(self) -> None:
        """Wake all waiters, and close the queue."""
        if "requests" in self.__dict__:
            self.requests.close()
        if self._queue is not None:
            self._queue.close()

    @cached_property
    def _bench(self) -> Bench:
        settings = self._resources.settings
        folders = self._resources.tool_folders()
        if not folders:
            raise SettingsError(f"built tools have no place; name a folder in {settings.where('catalog.folders')}")
        builder = settings.table(BuilderSettings)
        return Bench(
            trial=self.trials,
            tools=folders[0],
            exists=self._exists,
            seconds_per_call=builder.call_seconds,
            capabilities=builder.capabilities,
            unproved=builder.unproved,
        )

    def _exists(self, name: str) -> str:
        """The address of the tool that a name means; empty if it means none."""
        entry = self._find(name)
        return "" if entry is None else entry.tool.address

    def _open_queue(self) -> Queue:
        plugins, url = self._resources.plugins, self._resources.settings.table(QueueSettings).url
        scheme = url.partition(":")[0]
        parts = plugins.parts("queues", scheme) or plugins.parts("queues", REDIS)
        return parts[-1].make(self._resources)  # type: ignore[no-any-return]  # what is registered as a queue is one

    def _maker(self, name: str) -> Maker:
        parts = self._resources.plugins.parts("makers", name)
        if not parts:
            known = ", ".join(part.name for part in self._resources.plugins.parts("makers"))
            raise SettingsError(f"no maker is called {name!r:.80}; use one of {known} for builder.maker")
        maker = parts[-1].make(self._resources)
        if hasattr(maker, "check"):
            # Otherwise every request would fail for the same reason, one after the other.
            maker.check()
        return maker  # type: ignore[no-any-return]  # what is registered as a maker is one
