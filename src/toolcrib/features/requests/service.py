"""The service of requests: their queue, the makers, and the gate with its trials, each made on first use.

A trial is a Crib of its own for a tool that is not in the catalog: it allows what the terms allow and observes every call.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.features.requests.auto_request import AutoRequests, Obtainer
from toolcrib.features.requests.builder import Builder
from toolcrib.features.requests.built_package import write_files, write_generated
from toolcrib.features.requests.claim import ProofSetup
from toolcrib.features.requests.settings import BuilderSettings, QueueSettings, RequestsSettings
from toolcrib.features.requests.tracker import Requests
from toolcrib.infra.egress.recorded import Recorded
from toolcrib.infra.files import make_folder
from toolcrib.infra.programs.observed_effects import find_deeds, read_effects
from toolcrib.infra.sandbox import SandboxSettings
from toolcrib.infra.sandbox.child import notifications, resource_limits
from toolcrib.infra.sandbox.host import MAX_RESULT_BYTES
from toolcrib.infra.sandbox.jobs import has_network
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.tool import Chained, Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.features.requests.gate import OpenTrial, Trial, TrialTerms
    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.infra.settings import Settings
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Maker, Queue
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Entry, Tool


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
            setup=lambda: self._setup,
            exists=self._exists,
            builds=lambda: self.builds,
            record=self._resources.record,
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
        if not self._requests_missing:
            return ""
        return await asyncio.to_thread(self.auto_requests.of_call, call.name, call.arguments) or ""

    def request_from_search(self, text: str) -> str:
        """File a request for what a search did not find; its id, or empty unless `requests.missing` is set."""
        if not self._requests_missing:
            return ""
        return self.auto_requests.of_search(text) or ""

    @property
    def _requests_missing(self) -> bool:
        """Whether a missing tool that was called or searched for is requested."""
        settings = self._resources.settings
        return settings.root is not None and settings.table(RequestsSettings).missing

    def builder(self, maker: str | None = None, say: Callable[[str], None] | None = None) -> Builder:
        """A Builder of this process; `maker` names what writes the code, by default the setting builder.maker."""
        settings = self._resources.settings.table(BuilderSettings)
        return Builder(
            self.queue,
            self._maker(maker or settings.maker),
            self._setup,
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
    def _setup(self) -> ProofSetup:
        settings = self._resources.settings
        folders = self._resources.tool_folders()
        if not folders:
            raise SettingsError(f"built tools have no place; name a folder in {settings.where('catalog.folders')}")
        builder = settings.table(BuilderSettings)
        return ProofSetup(
            trial=self.trials,
            tools=folders[0],
            exists=self._exists,
            seconds_per_call=builder.call_seconds,
            capabilities=builder.capabilities,
            unproved=builder.unproved,
            record=self._resources.record,
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


EFFECTS = "effects"
TOOLS = "tools"
# Not a valid name of a tool or a module.
PROBE_TOOL, PROBE_FILE = "probe-of-a-trial", "probe-of-a-trial.py"
PROBE = "probe"
# Not a valid name of a file in a package.
AUTHORITY = ".authorities.pem"
# Where programs of all kinds look for trusted certificates.
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
# What a trial shares with the Crib whose sandbox it uses: where programs and environments are found, and how much a job may use.
SHARED_VARIABLES = ("PATH", "HOME", "XDG_CACHE_HOME")
SHARED_SETTINGS = ("jobs", "memory_mb", "processes", "disk_mb")
# The loggers that report failed calls.
LOGGERS = ("toolcrib.pipeline", "toolcrib.runners")

_is_on_trial: ContextVar[bool] = ContextVar("is_on_trial", default=False)


def trials_of(lender: Resources, open_crib: OpenCrib) -> OpenTrial:
    """Trials in the sandbox of these Resources, whose launcher runs already; `open_crib` opens the Crib of one."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_lower_level)

    @asynccontextmanager
    async def open_trial(tool: Tool, terms: TrialTerms) -> AsyncIterator[Trial]:
        _refuse_unobservable()
        recorded = Recorded(terms.answers, fail_from=terms.fail_from)
        async with _private_folder() as place:
            placed = _in_own_folder(tool, terms, recorded, place)
            async with _open_crib(lender, open_crib, placed, terms, recorded, place) as crib:
                yield _Trial(crib, placed)

    return open_trial


def _open_crib(
    lender: Resources, open_crib: OpenCrib, tool: Tool, terms: TrialTerms, recorded: Recorded, place: Path
) -> TrialCrib:
    """Open a Crib of one tool, which runs in a sandbox that it does not own and is answered from records."""
    workspace = place / "workspace"
    workspace.mkdir()
    sandbox = lender.settings.table(SandboxSettings)
    return open_crib(
        {"sandbox": lender.get("sandbox"), "egress": recorded},
        tools=[tool],
        environment={name: value for name, value in lender.environment.items() if name in SHARED_VARIABLES},
        observe=True,
        workspace={"folder": workspace},
        grants={"*": sorted(terms.requires)},
        builtins={"enabled": False},
        scripts={"folders": []},
        calls={"result_bytes": MAX_RESULT_BYTES},
        sandbox={name: getattr(sandbox, name) for name in SHARED_SETTINGS},
    )


class TrialCrib(AbstractAsyncContextManager["TrialCrib"], Protocol):
    """What a trial needs of a Crib."""

    settings: Settings

    def add(self, tool: Tool) -> Tool:
        """Register a tool."""

    def call(self, name: str, arguments: Mapping[str, object], /) -> Awaitable[Result]:
        """Call a tool."""


class OpenCrib(Protocol):
    """Opens a Crib with these settings, which uses the `lent` parts of another Crib."""

    def __call__(self, lent: Mapping[str, object], /, **settings: Any) -> TrialCrib:
        """Open it."""


class _Trial:
    """A tool in the Crib of its trial."""

    def __init__(self, crib: TrialCrib, tool: Tool) -> None:
        self._crib = crib
        self._tool = tool
        self._probes = 0
        # The time that a call waits for a slot would count as its own.
        self._turns = asyncio.Semaphore(min(crib.settings.table(SandboxSettings).jobs, os.cpu_count() or 1))

    async def call(self, arguments: Mapping[str, object]) -> Result:
        """Call it like any tool."""
        return await self._perform(self._tool, arguments)

    async def load(self, probe: str) -> Result:
        """Run a probe in its place."""
        self._probes += 1
        tool = self._crib.add(_with_probe(self._tool, probe, self._probes))
        return await self._perform(tool, {})

    def deeds(self, result: Result) -> list[Deed]:
        """What the result shows that was done or tried."""
        return find_deeds(self._tool, read_effects(result.meta.get(EFFECTS)), self._crib.settings.workspace)

    async def _perform(self, tool: Tool, arguments: Mapping[str, object]) -> Result:
        async with self._turns:
            before = _is_on_trial.set(True)
            try:
                result = await self._crib.call(tool.address, arguments)
            finally:
                _is_on_trial.reset(before)
        return replace(result, meta={EFFECTS: [], **result.meta})


def _lower_level(record: logging.LogRecord) -> bool:
    """Log failures on trial as information: the gate reports them to the maker."""
    if _is_on_trial.get() and record.levelno > logging.INFO:
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True


@asynccontextmanager
async def _private_folder() -> AsyncIterator[Path]:
    """A temporary folder, removed with everything that the tool wrote to it."""
    # A tool must not see from the name that it is on trial.
    place = tempfile.mkdtemp()
    try:
        yield _without_links(place)
    finally:
        await asyncio.to_thread(resource_limits.remove, place)


def _without_links(place: str) -> Path:
    return Path(place).resolve()


def _refuse_unobservable() -> None:
    if notifications.is_available():
        return
    message = (
        "a candidate is proved only where its calls can be observed, which this system does not allow; build where the kernel "
        "is Linux 5.5 or newer and lets seccomp notify a supervisor"
    )
    raise ToolError(Kind.SANDBOX_UNAVAILABLE, message)


def _in_own_folder(tool: Tool, terms: TrialTerms, recorded: Recorded, place: Path) -> Tool:
    """The tool with its files in a folder of its own, the hosts and the time of the terms, and the certificate of the trial."""
    run, script = _code_of(tool)
    folder, config = place / TOOLS / tool.name, dict(run.config)
    entry = folder / script.path.name
    files = dict(script.files or {entry.name: script.code})
    if has_network(terms.requires):
        files[AUTHORITY] = recorded.authority.pem
        config["env"] = dict.fromkeys(CERTIFICATE_VARIABLES, str(folder / AUTHORITY))
    # The folder holds the same files as after publishing, so that a tool cannot tell the difference.
    write_files(folder, {**files, **(write_generated(tool, TOOLS) if script.files else {})})
    return replace(
        tool,
        limits=replace(tool.limits, timeout_ms=max(1, round(terms.seconds * 1000))),
        run=replace(
            run,
            folder=folder,
            config=config,
            hosts=run.hosts if terms.hosts is None else terms.hosts,
            script=replace(script, path=entry, files=files),
        ),
    )


def _code_of(tool: Tool) -> tuple[Chained, Script]:
    run = tool.run
    if not isinstance(run, Chained) or run.script is None:
        raise ToolError(Kind.VALIDATION, f"{tool.name} is not a file of code; only those are tried")
    return run, run.script


def _with_probe(tool: Tool, probe: str, number: int) -> Tool:
    """A tool that runs the probe in the place of the other tool, with the same capabilities and limits."""
    run, script = _code_of(tool)
    there = Script(
        path=script.path.with_name(PROBE_FILE),
        code=probe.encode(),
        language=script.language,
        entry=PROBE,
        imports=script.imports,
        files=script.files,
    )
    return replace(
        tool,
        name=f"{PROBE_TOOL}-{number}",
        parameters={"type": "object", "additionalProperties": False},
        output_schema=None,
        examples=(),
        run=replace(run, script=there),
    )
