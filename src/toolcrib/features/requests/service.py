"""Where missing tools come from: the queue of requests, the bench of the gate, the makers; each made when it is first needed."""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.core.resources import Parts
    from toolcrib.features.requests.auto_request import Obtaining, Wishing
    from toolcrib.features.requests.builder import Builder
    from toolcrib.features.requests.claim import Bench
    from toolcrib.features.requests.tracker import Requests
    from toolcrib.infra.programs.executables import Found
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Maker, Queue
    from toolcrib.model.tool import Entry

QUEUE_FILE = "queue.sqlite3"
BUILDS = "builds"
PERSON, COMMAND, OPENAI = "person", "command", "openai"


class Workshop:
    """What a Crib has for tools that do not exist yet. `find` looks a tool up as a call does, `suggest` hints at near names."""

    def __init__(self, parts: Parts, find: Callable[[str], Entry | None], suggest: Callable[[str], str]) -> None:
        self._parts = parts
        self._find = find
        self._suggest = suggest
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
        from toolcrib.features.requests.tracker import Requests

        settings = self._parts.settings
        return Requests(
            queue=lambda: self.queue,
            bench=lambda: self._bench,
            exists=self._exists,
            builds=lambda: self.builds,
            strict=settings.request_strict,
            lease_seconds=settings.builder_lease_seconds,
            seconds=settings.builder_seconds,
        )

    @cached_property
    def obtaining(self) -> Obtaining:
        """Who waits for tools."""
        from toolcrib.features.requests.auto_request import Obtaining

        return Obtaining(self.requests, self._find)

    @cached_property
    def wishing(self) -> Wishing:
        """Who files what was called or searched for in vain."""
        from toolcrib.features.requests.auto_request import Wishing

        return Wishing(self.requests, suggest=self._suggest)

    async def wish_for(self, call: Call) -> str:
        """The id of the request for a tool that was called and that nobody knows; empty if there is none."""
        import asyncio

        return await asyncio.to_thread(self.wishing.of_call, call.name, call.arguments) or ""

    def wish_from_search(self, text: str) -> str:
        """The id of the request for what was searched for in vain; empty if the operator wants none."""
        if not self._parts.settings.request_missing or self._parts.settings.root is None:
            return ""
        return self.wishing.of_search(text) or ""

    def builder(self, maker: str | None = None, say: Callable[[str], None] | None = None) -> Builder:
        """A Builder of this process; `maker` says who writes the code, by default the one of the settings."""
        from toolcrib.features.requests.builder import Builder

        settings = self._parts.settings
        return Builder(
            self.queue,
            self._maker(maker or settings.builder_maker),
            self._bench,
            folder=self.builds,
            owner=f"builder-{os.getpid()}-{os.urandom(4).hex()}",
            lease_seconds=settings.builder_lease_seconds,
            seconds=settings.builder_seconds,
            attempts=settings.builder_attempts,
            say=say,
        )

    @property
    def builds(self) -> Path:
        """Where makers work."""
        from toolcrib.infra.files.disk import make_folder

        folder = self._parts.data.folder() / BUILDS
        make_folder(folder)
        return folder

    def close(self) -> None:
        """Send home whoever waits, and let go of the queue."""
        if "requests" in self.__dict__:
            self.requests.close()
        if self._queue is not None:
            self._queue.close()

    @cached_property
    def _bench(self) -> Bench:
        from toolcrib.features.requests.claim import real_bench
        from toolcrib.features.requests.trial_crib import trials_of

        settings = self._parts.settings
        folders = self._parts.tool_folders()
        if not folders:
            raise SettingsError(f"built tools have no place; name a folder in {settings.where('tools')}")
        return real_bench(
            trial=trials_of(self._parts),
            tools=folders[0],
            exists=self._exists,
            seconds_per_call=settings.builder_call_seconds,
            capabilities=settings.builder_capabilities,
            unproved=settings.builder_unproved,
        )

    def _exists(self, name: str) -> str:
        """The address of the tool that a name means; empty if it means none."""
        entry = self._find(name)
        return "" if entry is None else entry.tool.address

    def _open_queue(self) -> Queue:
        from toolcrib.features.requests.queues import open_queue

        parts, settings = self._parts, self._parts.settings
        return open_queue(
            url=settings.queue_url,
            path=parts.data.folder() / QUEUE_FILE,
            password=self._secret("queue_secret", settings.queue_secret),
            requests=settings.queue_requests,
            ready=settings.queue_ready,
            hash_prefix=settings.queue_hash,
            original=settings.queue_original,
        )

    def _secret(self, setting: str, name: str) -> str:
        if not name:
            return ""
        secret = self._parts.data.secrets.get(name)
        if secret is None:
            where = self._parts.settings.where(setting)
            raise ToolError(
                Kind.AUTH, f"there is no secret {name!r}, which {where} names; set it: crib secret set {name}"
            )
        return secret.reveal()

    def _maker(self, name: str) -> Maker:
        if name == PERSON:
            from toolcrib.features.requests.makers.person import PersonMaker

            return PersonMaker()
        if name == COMMAND:
            return self._command_maker()
        if name == OPENAI:
            return self._openai_maker()
        makers = self._parts.plugins.makers
        if name not in makers:
            known = ", ".join((PERSON, COMMAND, OPENAI, *sorted(makers)))
            raise SettingsError(f"no maker is called {name!r:.80}; use one of {known} for builder_maker")
        return makers[name]

    def _command_maker(self) -> Maker:
        from pathlib import Path

        from toolcrib.features.requests.makers.command import CommandMaker
        from toolcrib.infra.sandbox.jobs import MEGABYTE

        parts, settings = self._parts, self._parts.settings
        home = parts.environment.get("HOME", "")
        maker = CommandMaker(
            parts.sandbox,
            parts.premises,
            command=settings.builder_command,
            find=self._find_program,
            egress=lambda: parts.egress,
            project=[place for place in (settings.root, settings.workspace) if place is not None],
            hidden=[Path(home)] if home.startswith("/") else [],
            hosts=settings.builder_hosts,
            variables=settings.builder_variables,
            variable=self._variable,
            disk_bytes=settings.builder_disk_mb * MEGABYTE,
        )
        # Else every request would fail by it, one after the other.
        maker.check()
        return maker

    def _find_program(self, command: str) -> Found | None:
        """A program of the operator's: on the search path, or where its absolute path says."""
        from pathlib import Path

        from toolcrib.infra.programs.executables import Commands

        parts = self._parts
        named = [str(Path(command).parent)] if command.startswith("/") else []
        places = os.pathsep.join([parts.environment.get("PATH", ""), *named])
        return Commands(places, tuple(parts.script_trees().values()), parts.settings.workspace).installed(command)

    def _openai_maker(self) -> Maker:
        from toolcrib.features.requests.makers.openai import OpenAIMaker
        from toolcrib.infra.secrets.secret import Secret

        parts, settings = self._parts, self._parts.settings
        if not settings.builder_url:
            raise SettingsError("builder_url names no endpoint; write the one that the maker openai should ask")
        key = self._secret("builder_key", settings.builder_key)
        return OpenAIMaker(
            lambda: parts.egress,
            url=settings.builder_url,
            model=settings.builder_model,
            key=Secret(settings.builder_key, key) if key else None,
        )

    def _variable(self, name: str) -> str | None:
        """A variable of the host, or a secret, by its name."""
        if name in self._parts.environment:
            return self._parts.environment[name]
        secret = self._parts.data.secrets.get(name)
        return None if secret is None else secret.reveal()
