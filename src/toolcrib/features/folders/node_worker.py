"""Keep one Node process that holds a handler: start it, make a call, answer what it asks for meanwhile, read its result."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.features.folders.handler_messages import checked_files
from toolcrib.infra.programs import (
    LIMITS,
    describe_effects,
    describe_end,
    exit_details,
    has_crashed,
    node_runtime,
    refuse_early_end,
    report_crash,
    show_seconds,
    tail_of,
)
from toolcrib.infra.programs.child_channel import is_chunk
from toolcrib.infra.programs.executables import NODE, basic_variables, search_path
from toolcrib.infra.programs.node_runtime import refuse_without_proxy, version_of
from toolcrib.infra.programs.warm_process import LOOK_SECONDS, WarmProcess
from toolcrib.infra.sandbox import child
from toolcrib.infra.sandbox.jobs import Program, build_policy, has_network
from toolcrib.lib.javascript_error import find_place, log_fields, name_class, tell_all
from toolcrib.model.errors import NO_CURE, READ_THE_LOG, Kind, ToolError, cure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from toolcrib.features.folders.handler_messages import HandlerService
    from toolcrib.infra.programs.child_channel import ChildClock
    from toolcrib.infra.programs.executables import Executable, Executables
    from toolcrib.infra.sandbox.attempt import Lines, Talk
    from toolcrib.infra.sandbox.jobs import CompletedJob, WorkspacePolicy
    from toolcrib.model.tool import Handler, Tool

logger = logging.getLogger("toolcrib.runners")

JAVASCRIPT = "javascript"
OLDEST = (20, 19)
CURE = "install Node 20.19 or newer, or pip install 'toolcrib[node]'"
WORKER = Path(child.__file__).parent / "handler.cjs"
FILES = (WORKER, WORKER.with_name("modules.cjs"))
# How many messages of one call are served at once; further ones wait.
MAX_UNDER_WAY = 32
# How long each of the unawaited messages may still take after the handler has answered.
PARTING_SECONDS = 0.5
# How long a process may take to end after it closed its channel; its exit status tells why.
ENDING_SECONDS = 0.5
# How long a warm process may take to begin a call.
BEGINNING_SECONDS = 1.0
OUT_OF_MEMORY = b"JavaScript heap out of memory"
# Uncaught errors after a call: how many per process are logged, and how many recent calls are kept to name the cause.
MAX_LATE_ERRORS = 10
CALLS_REMEMBERED = 100
# Reasons why a handler cannot be loaded; the process chooses among them by number.
UNFIT = {
    "no execute": "it exports no function execute; write: export async function execute({ args, context }) { … }",
    "old Node": "its Node is too old; install Node 20.19 or newer, or pip install 'toolcrib[node]'",
}


def make_job(
    tool: Tool,
    run: Handler,
    commands: Executables,
    workspace_policy: WorkspacePolicy,
    granted: Mapping[str, str],
    *,
    observe: bool = False,
) -> Program:
    """The process that loads a handler; raises ToolError where there is no Node for it."""
    root = run.root.absolute()
    folders = run.folders
    found = _find(tool, commands)
    near = commands.near(folders[0])
    if has_network(tool.requires):
        codes = tuple(run.contents.values())
        refuse_without_proxy(tool.name, codes, found.argv[0], has_packages=node_runtime.has_packages(near))
    words = (str(WORKER), str(root / run.path), str(root), *map(str, folders))
    files = checked_files(run)
    packages = dict.fromkeys(place for folder in folders for place in commands.near(folder))
    return Program(
        argv=(*found.argv, *node_runtime.options(workspace_policy.memory_bytes, rye=False), *words),
        cwd=folders[0],
        environment={
            **granted,
            **basic_variables(tool.requires, workspace_policy),
            **node_runtime.ENVIRONMENT,
            "PATH": search_path(found.argv[0], near),
        },
        policy=build_policy(
            tool.requires,
            workspace_policy,
            (*files, *found.runtime, *packages, *FILES),
            listed=folders,
            observe=observe,
        ),
        channel=True,
        files=files,
    )


class NotBegunError(ToolError):
    """The process ended before it began the call, so another process may take it."""


class Worker(WarmProcess):
    """A process of one tool. `is_ready` means that the handler is loaded, `granted` are the variables of the host that it was started with."""

    def __init__(
        self,
        tool: Tool,
        run: Handler,
        live: Callable[[Talk], Coroutine[object, object, CompletedJob]],
        granted: Mapping[str, str],
    ) -> None:
        super().__init__(tool, live)
        self.tool = tool
        self.granted = granted
        self._run = run
        self.is_ready = False
        self._number = 0
        self._patience: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ids = deque[str](maxlen=CALLS_REMEMBERED)
        self._strays = 0
        self._has_begun = False

    async def effects(self) -> dict[str, object]:
        """The observed effects of the process, which ends with this call."""
        self.end()
        await self.see_ended()
        if not self._running.done() or self._running.cancelled() or self._running.exception() is not None:
            return {}
        return describe_effects(self._running.result())

    async def begin(self, deadline: float, seconds: float) -> None:
        """Wait until the handler is loaded; raises ToolError if it cannot be."""
        timer = self.loop.call_later(max(0.0, deadline - time.monotonic()), self._time_out, seconds)
        self._is_heard = True
        try:
            either: list[asyncio.Future[Any]] = [self._lines, self._running]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            said = await self._lines.result().read() if self._lines.done() else None
            if said is None:
                raise await self._early_end(seconds)
        finally:
            timer.cancel()
            self._is_heard = False
        if said.get("ready") is not True:
            raise self._not_loaded(said.get("failed"))
        self.is_ready = True

    async def call(
        self, arguments: Mapping[str, object], service: HandlerService, clock: ChildClock, seconds: float
    ) -> dict[str, object]:
        """Make one call; returns its result line. Raises ToolError if the process gives none."""
        self._number += 1
        self._ids.append(service.call_id)
        self._has_begun = False
        lines = self._lines.result()
        self._set_timer(clock, seconds)
        # A process that does not begin the call is blocked by what an earlier call left running.
        if self._number > 1:
            self._patience = self.loop.call_later(BEGINNING_SECONDS, self._give_up)
        sending: set[asyncio.Task[None]] = set()
        self._is_heard = True
        try:
            await self._ask(lines, arguments, service)
            while (said := await self._read_line(lines)) is not None:
                # Any message about the call means that it has begun; only a call that has not begun goes to another process.
                self._has_begun = True
                if "begun" in said:
                    self._stop_timer()
                    continue
                if "do" in said:
                    await self._serve(said, lines, service, sending)
                    continue
                self.is_spent = self.is_spent or said.get("spent") is True
                # Within the time of the call: one that is answered must not become a timeout.
                while sending and (left := min(PARTING_SECONDS, clock.left)) > 0:
                    done, _ = await asyncio.wait(sending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if not done:
                        break
                return said
            raise await self._early_end(seconds)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._stop_timer()
            self._is_heard = False
            for task in sending:
                task.cancel()
            service.close()

    async def _part(self, lines: Lines) -> None:
        """Log what a process sends after its last call."""
        if self._is_heard or lines.is_silent:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                while (said := await lines.read()) is not None:
                    self._log_late_error(said)

    async def _ask(self, lines: Lines, arguments: Mapping[str, object], service: HandlerService) -> None:
        try:
            await lines.write({"call": self._number, "args": arguments, "context": service.facts()})
        except ToolError as problem:
            message = f"{self.tool.name}: the arguments and the session's state are too long for one call"
            raise ToolError(Kind.LIMIT_EXCEEDED, message) from problem

    async def _read_line(self, lines: Lines) -> dict[str, object] | None:
        """The next line of the current call; None at the end of the channel."""
        said = await lines.read()
        while said is not None and self._log_late_error(said):
            said = await lines.read()
        if said is None or said.pop("call", None) == self._number:
            return said
        lines.problem = "the line belongs to no call that runs"
        return None

    def _log_late_error(self, said: Mapping[str, object]) -> bool:
        """Log an uncaught error of a call that was over; whether the line is one."""
        described, number = said.get("stray"), said.get("of")
        if not isinstance(described, dict):
            return False
        self.is_spent = True
        self._strays += 1
        if self._strays <= MAX_LATE_ERRORS:
            text = "%s: uncaught error after call %s was over\n%s"
            logger.error(text, self.tool.name, self._id_of(number), tell_all(described), extra=log_fields(described))
        return True

    def _id_of(self, number: object) -> str:
        """The id of the call that a process refers to by its running number."""
        back = self._number - number if isinstance(number, int) else -1
        return self._ids[-1 - back] if 0 <= back < len(self._ids) else "(unknown)"

    async def _serve(
        self, said: dict[str, object], lines: Lines, service: HandlerService, sending: set[asyncio.Task[None]]
    ) -> None:
        """Serve one request of the handler; messages are sent in the background."""
        if is_chunk(said):
            try:
                await service.chunk(said)
            except ToolError as refusal:
                self.end(refusal)
                raise
            return
        await service.slow_down()
        if "ask" not in said:
            await service.answer(said)
            return
        while len(sending) >= MAX_UNDER_WAY:
            await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
        task = self.loop.create_task(_send(said, lines, service))
        sending.add(task)
        task.add_done_callback(sending.discard)

    def _set_timer(self, clock: ChildClock, seconds: float) -> None:
        """End the process when the time of its call is up; while its client is asked, that time does not run."""
        self._timer = self.loop.call_later(max(0.0, clock.left, LOOK_SECONDS), self._look_at, clock, seconds)

    def _look_at(self, clock: ChildClock, seconds: float) -> None:
        if clock.left > 0:
            self._set_timer(clock, seconds)
        else:
            self._time_out(seconds)

    def _give_up(self) -> None:
        """End a process that did not answer in time; its answer may still be unread if this event loop was blocked."""
        if self._has_begun:
            return
        if self._lines.result().is_silent:
            self.end()
        else:
            self._patience = self.loop.call_later(LOOK_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _time_out(self, seconds: float) -> None:
        what = "ran" if self.is_ready else "took to load"
        message = f"{self.tool.name} {what} longer than {show_seconds(seconds)}; its process was killed"
        self.end(ToolError(Kind.TIMEOUT, message, partial_side_effects=self.is_ready))

    async def _early_end(self, seconds: float) -> ToolError:
        """Why there is no answer; the process has ended by then."""
        problem = self._lines.result().problem if self._lines.done() else ""
        if not problem:
            self._close_channel()
            await asyncio.wait([self._running], timeout=ENDING_SECONDS)
        self.end()
        self._close_channel()
        await self.see_ended()
        if self._reason is not None:
            return self._reason
        if self.is_ready and not self._has_begun and not problem:
            return NotBegunError(Kind.INTERNAL, f"{self.tool.name}: its process ended before it began the call")
        if problem:
            message = f"{self.tool.name} gave an answer that cannot be read: {problem}; its process was killed"
            return ToolError(Kind.INTERNAL, message, partial_side_effects=True)
        return self._explain_end(seconds)

    def _explain_end(self, seconds: float) -> ToolError:
        name = self.tool.name
        if not self._running.done() or self._running.cancelled():
            return ToolError(Kind.INTERNAL, f"{name}: its process was killed", partial_side_effects=True)
        try:
            ended = self._running.result()
            refuse_early_end(name, ended, seconds)
        except ToolError as problem:
            return problem
        if ended.stderr:
            logger.warning("%s: its process printed: %s", name, tail_of(ended.stderr))
        if ended.signal is not None and OUT_OF_MEMORY in ended.stderr:
            message = f"{name} used {LIMITS['mem']}; its process ended"
            return ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True, details={"limit": "mem"})
        how = describe_end(ended).replace("ended with", "ended itself with")
        message = f"{name} {how} before {'it answered' if self.is_ready else 'its handler was loaded'}"
        cure = cure_of("return a response from execute") if self.is_ready else NO_CURE
        cure = report_crash(self.tool, ended) if has_crashed(ended) else cure
        return ToolError(
            Kind.INTERNAL, message, cure=cure, partial_side_effects=self.is_ready, details=exit_details(ended)
        )

    def _not_loaded(self, described: object) -> ToolError:
        """The error of a handler that failed to load; its message goes to the log."""
        self.end()
        name, described = self.tool.name, described if isinstance(described, dict) else {}
        reason = UNFIT.get(str(described.get("reason")))
        if reason is not None:
            return ToolError(Kind.INTERNAL, f"{name}: its handler could not be loaded: {reason}")
        logger.error("%s could not be loaded\n%s", name, tell_all(described), extra=log_fields(described))
        place = find_place(described, self._run)
        what = f"{name_class(described)} in {place}" if place else name_class(described)
        message = f"{name}: its handler could not be loaded ({what})"
        error = ToolError(Kind.INTERNAL, message, cure=READ_THE_LOG)
        error.trace = tell_all(described)
        return error


def _find(tool: Tool, commands: Executables) -> Executable:
    # Only the operator's: what a project has installed runs in it, and is not what it runs on.
    found = commands.installed(NODE)
    if found is None:
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} needs Node, which was not found; {CURE}")
    program = found.argv[0]
    if not node_runtime.is_node(found):
        message = f"{tool.name} needs Node, and {found.argv[-1]} is a script of {program}; {CURE}"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
    version = version_of(program)
    if version is not None and version < OLDEST:
        message = f"{tool.name} needs Node 20.19 or newer, and {program} is {'.'.join(map(str, version))}; {CURE}"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
    return found


async def _send(said: dict[str, object], lines: Lines, service: HandlerService) -> None:
    answer = await service.answer(said)
    if answer is not None:
        await lines.write(answer)
