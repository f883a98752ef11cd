"""Run sinks: classes that events are written to, in a child process that lives as long as the sink is open."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files.safe_paths import choose_opener
from toolcrib.infra.programs import returned_value, show_seconds
from toolcrib.infra.programs.executables import basic_variables
from toolcrib.infra.programs.observed_effects import make_proxy
from toolcrib.infra.sandbox.jobs import WRITE, OneFile, PythonFile, build_policy, python_runtime
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.schema import compile_schema, fill_defaults
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.lib.templates import compile_template
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Chained, Convention

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from typing import Any

    from toolcrib.core.grants import Grants
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.files.safe_paths import Opened
    from toolcrib.infra.sandbox.attempt import Lines
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, WorkspacePolicy
    from toolcrib.infra.secrets.grants import GrantedVariables
    from toolcrib.model.tool import Script, Tool

PATH = "path"
PYTHON = "python"
EVENT_SECONDS = 30.0
LONGEST_SECONDS = 7 * 24 * 3600.0
# Without O_NONBLOCK a fifo would block until another process reads.
_LOOK = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY


@asynccontextmanager
async def open_sink(
    tool: Tool,
    arguments: Mapping[str, object],
    *,
    sandbox: Sandbox,
    workspace_policy: WorkspacePolicy,
    jail: Jail,
    egress: Callable[[], Egress],
    grants: Grants,
    variables: GrantedVariables | None = None,
    hidden: tuple[Path, ...] = (),
    seconds: float = EVENT_SECONDS,
) -> AsyncIterator[Sink]:
    """A sink to write events to; once the block is left, all of them are on disk.

    Its class is made from the tool's config and the arguments, of which the config wins. `path` lies in the workspace and
    is the one file there that the class may write: the config's by that alone, the caller's only where fs.write is granted.
    `seconds` is how long one event may take.
    """
    run, script = _parts_of(tool)
    granted, masking = ({}, VariableMasking()) if variables is None else variables.of(tool, script.code)
    given = _merge(tool, _fill_variables(run.config, masking), arguments)
    _refuse_missing(tool, grants, tool.requires if PATH in run.config or PATH not in given else tool.requires | {WRITE})
    place = await asyncio.to_thread(_make_file, jail, given.get(PATH))
    with _hold(jail.root, place) as file:
        job = _job(tool, run, script, given, workspace_policy, file, granted, hidden)
        deadline = time.monotonic() + LONGEST_SECONDS
        proxy = make_proxy(egress, run.hosts, deadline) if job.policy.network else None
        sink = Sink(tool, job, seconds, masking)
        # Outside the job slots: a few sinks that stay open would block every other job.
        running = asyncio.ensure_future(sandbox.run(job, deadline=deadline, talk=sink.listen, proxy=proxy, nested=True))
        sink.watch(running)
        try:
            yield sink
        except BaseException:
            # An exception of the block takes precedence.
            with suppress(ToolError):
                await _finish(sink, jail, place)
            raise
        else:
            await _finish(sink, jail, place)
        finally:
            running.cancel()
            await asyncio.wait([running])


class Sink:
    """Takes events, one after the other. The first that fails ends it; the next write, or the end of the block, raises the error."""

    def __init__(self, tool: Tool, job: PythonFile, seconds: float, masking: VariableMasking) -> None:
        self._masking = masking
        self.written = 0
        self._tool = tool
        self._name = tool.name
        self._job = job
        self._seconds = seconds
        self._sent = 0
        self._is_closing = False
        self._problem: ToolError | None = None
        self._was_told = False
        self._writing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Future[Lines] = self._loop.create_future()
        self._running: asyncio.Future[CompletedJob] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, event: str) -> None:
        """Queue an event; events are written in order while more are queued."""
        if not isinstance(event, str):
            raise ToolError(Kind.VALIDATION, f"{self._name}: an event is a text, not a {type(event).__name__}")
        async with self._writing:
            lines = await self._reach()
            self._sent += 1
            try:
                await lines.write({"event": event})
            except ToolError as problem:
                error = self._failure(problem.kind, f"is too long with {len(event)} letters", self._sent)
                self._sent -= 1
                raise error from None
            if self._timer is None:
                self._expect_answer()

    def watch(self, running: asyncio.Future[CompletedJob]) -> None:
        """Record how the job ended."""
        self._running = running

    async def listen(self, lines: Lines) -> None:
        """Read the acknowledgement of each event until the channel closes."""
        self._lines.set_result(lines)
        while (answer := await lines.read()) is not None:
            self._note(answer)

    async def finish(self) -> None:
        """Flush and close the sink; raises its first error, unless a write raised it already."""
        try:
            await self._begin()
            if not self._running.done():
                self._is_closing = True
                self._expect_answer()
                await self._lines.result().write({"close": True})
            await asyncio.wait([self._running])
        finally:
            self._stop_timer()
        problem = self._why_ended()
        if problem is not None and not self._was_told:
            raise problem

    async def _begin(self) -> None:
        """Wait until the process is up or has failed to start."""
        either: list[asyncio.Future[Any]] = [self._lines, self._running]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)

    async def _reach(self) -> Lines:
        """The channel to the process."""
        await self._begin()
        if self._running.done() or self._problem is not None:
            self._was_told = True
            raise self._why_ended() or ToolError(Kind.PERMANENT, f"{self._name} is closed and takes no event")
        return self._lines.result()

    def _note(self, answer: dict[str, object]) -> None:
        if self._problem is None and answer.get("ok") is not True:
            self._problem = self._failure(Kind.PERMANENT, f"failed: {self._masking.hide(str(answer.get('error')))}")
        elif self._problem is None and self.written < self._sent:
            self.written += 1
        self._expect_answer()

    def _expect_answer(self) -> None:
        """Wait as long as one event may take; without a limit if no acknowledgement is outstanding."""
        self._stop_timer()
        if self._is_closing or self.written < self._sent:
            self._timer = self._loop.call_later(self._seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._problem = self._problem or self._failure(Kind.TIMEOUT, f"took longer than {show_seconds(self._seconds)}")
        self._running.cancel()

    def _why_ended(self) -> ToolError | None:
        """The error of the sink, of an event first; None if there is none."""
        if self._problem is not None or self._running.cancelled() or not self._running.done():
            return self._problem
        try:
            returned_value(self._tool, self._job, self._running.result(), self._seconds, self._masking)
        except ToolError as problem:
            return self._masking.hide_error(problem)
        return self._failure(Kind.INTERNAL, "was not written") if self.written < self._sent else None

    def _failure(self, kind: Kind, what: str, number: int = 0) -> ToolError:
        """The error about an event, by default the first that was not acknowledged, or about closing if there is none."""
        number = number or self.written + 1
        subject = f"event {number}" if number <= self._sent else "closing it"
        details = {"event": number, "written": self.written}
        return ToolError(kind, f"{self._name}: {subject} {what}", partial_side_effects=True, details=details)


async def _finish(sink: Sink, jail: Jail, place: Path | None) -> None:
    try:
        await sink.finish()
    except ToolError:
        with suppress(ToolError):  # the first error is reported
            await _sync(jail, place)
        raise
    await _sync(jail, place)


async def _sync(jail: Jail, place: Path | None) -> None:
    if place is not None:
        await asyncio.to_thread(jail.append, str(place), b"")


def _parts_of(tool: Tool) -> tuple[Chained, Script]:
    run = tool.run
    if not isinstance(run, Chained) or run.script is None or run.script.convention is not Convention.SINK:
        cure = Cure(f"call it with: crib call {tool.name}", "call it as any tool")
        raise ToolError(Kind.VALIDATION, f"{tool.name} is not a sink", cure=cure)
    if run.script.language != PYTHON:
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name}: a sink is written in Python")
    return run, run.script


def _fill_variables(config: Mapping[str, object], masking: VariableMasking) -> dict[str, object]:
    """The config with `${NAME}` filled in. Any other braces are for the class: a sink is given no arguments per event."""

    def fill(value: object) -> object:
        template = compile_template(value)
        return template.render(lambda name: f"{{{name}}}", masking.variable) if template.variables else value

    return {name: fill(value) for name, value in config.items()}


def _merge(tool: Tool, config: Mapping[str, object], arguments: Mapping[str, object]) -> dict[str, object]:
    """What the class is made from, checked against what it takes; other words of the config are not meant for it."""
    properties = tool.parameters.get("properties")
    taken = properties if isinstance(properties, dict) else {}
    given = {**arguments, **{name: value for name, value in config.items() if name in taken}}
    fill = fill_defaults(tool.parameters)
    given = given if fill is None else fill(given)
    validator = compile_schema(tool.parameters)
    if not validator.is_valid(given):
        problems = explain_problems(validator, given, tool.parameters)
        message = f"Invalid arguments for {tool.name}: {'; '.join(problems)}"
        cure = Cure(f"see: crib show {tool.name}")
        raise ToolError(Kind.VALIDATION, message, cure=cure, details={"problems": problems})
    return given


def _refuse_missing(tool: Tool, grants: Grants, required: frozenset[str]) -> None:
    missing = grants.missing(tool, required)
    if not missing:
        return
    refusal = grants.refusal(tool, missing)
    if missing == {WRITE} and WRITE not in tool.requires:
        written = f"{refusal.cure.operator}, or let the author write {PATH} into the config of {tool.name}"
        refusal = refusal.replace(cure=replace(refusal.cure, operator=written))
    raise refusal


def _make_file(jail: Jail, path: object) -> Path | None:
    """The file of the sink, made if it is missing; the jail refuses what no tool may write."""
    if not isinstance(path, str):
        return None
    place = jail.root / path.replace("\\", "/")
    with suppress(ValueError, OSError):  # a path that cannot be followed is refused by the jail in better words
        place = Path(os.path.realpath(place))
    jail.append(str(place), b"")
    return place


@contextmanager
def _hold(root: Path, place: Path | None) -> Iterator[OneFile | None]:
    """An open descriptor of the file: another tool may replace the path at any time."""
    if place is None:
        yield None
        return
    opened = _look(root, place)
    try:
        facts = os.fstat(opened.descriptor)
        if root / opened.real != place or not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise _replaced(place)
        yield OneFile(path=place, device=facts.st_dev, inode=facts.st_ino)
    finally:
        os.close(opened.descriptor)


def _look(root: Path, place: Path) -> Opened:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return choose_opener(folder)(folder, place.relative_to(root).parts, _LOOK)
    except OSError as problem:
        raise _replaced(place) from problem
    finally:
        os.close(folder)


def _replaced(place: Path) -> ToolError:
    return ToolError(Kind.TRANSIENT, f"{place}: the file was replaced meanwhile; call again", retryable=True)


def _job(
    tool: Tool,
    run: Chained,
    script: Script,
    given: dict[str, object],
    workspace_policy: WorkspacePolicy,
    file: OneFile | None,
    granted: Mapping[str, str],
    hidden: tuple[Path, ...],
) -> PythonFile:
    if WRITE in tool.requires and workspace_policy.unwritable:
        raise ToolError(Kind.BLOCKED, f"{tool.name} requires {WRITE}: {workspace_policy.unwritable}")
    policy = build_policy(tool.requires, workspace_policy, (run.folder, *python_runtime()), hidden=hidden)
    return PythonFile(
        path=script.path,
        code=script.code,
        entry=script.entry,
        arguments=given if file is None else {**given, PATH: str(file.path)},
        policy=policy if file is None else replace(policy, files=(file,)),
        convention=script.convention,
        imports=script.imports,
        environment={**granted, **basic_variables(tool.requires, workspace_policy)},
        channel=True,
    )
