"""Handlers in Python, each call in a fresh child process that talks with the host while it runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.host import strike_time
from toolcrib.ground.sandbox.jobs import PythonFile
from toolcrib.ground.sandbox.walls import build_walls, python_runtime
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Convention
from toolcrib.runners.handler.contents import checked_files, refuse_changed
from toolcrib.runners.handler.context import Desk
from toolcrib.runners.handler.response import invalid_response, read_response, thrown
from toolcrib.runners.leading import lead_out
from toolcrib.runners.program import basic_variables
from toolcrib.runners.raised import to_error
from toolcrib.runners.script import MAX_RESULT_BYTES, described_error, read_answer, run_in_place, to_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.ground.egress import Egress
    from toolcrib.ground.sandbox.conversation import Lines
    from toolcrib.ground.sandbox.host import Sandbox
    from toolcrib.ground.sandbox.interpreters import Interpreter
    from toolcrib.ground.sandbox.jobs import Ended
    from toolcrib.ground.sandbox.walls import Premises
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Handler, Tool

PYTHON = "python"
ENTRY = "execute"
# How many messages of one handler may be under way; one that sends more waits.
MAX_UNDER_WAY = 32


class PythonHandler:
    """A handler of a tool folder and the sandbox that it runs in.

    `interpreter` finds the Python of an environment that it has to itself; None means the one that runs Toolcrib. `observe`
    takes note of what it does and tries.
    """

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self,
        tool: Tool,
        run: Handler,
        *,
        sandbox: Sandbox,
        premises: Premises,
        egress: Callable[[], Egress],
        interpreter: Callable[[Handler], Interpreter | None],
        observe: bool = False,
    ) -> None:
        self._tool = tool
        self._run = run
        self._sandbox = sandbox
        self._premises = premises
        self._egress = egress
        self._interpreter = interpreter
        self._observe = observe
        self._files = checked_files(run)
        runtime = (*self._files, *python_runtime())
        self._walls = build_walls(tool.requires, premises, runtime, listed=run.folders, observe=observe)

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse a language that nobody runs here, and a machine that cannot keep the handler in."""
        run = self._run
        if run.language != PYTHON:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{run.path}: {run.language!r} is not {PYTHON!r}")
        if run.path not in run.files:
            raise ToolError(Kind.NOT_FOUND, f"{run.path} is missing; write def {ENTRY}(args, context) there, and build")
        self._interpreter(run)
        self._sandbox.check(self._walls)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Call `execute` in a process of its own, and answer there what it asks for meanwhile."""
        tool = self._tool
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{tool.name} runs only in a call")
        desk, asked = Desk(tool, context), time.monotonic()
        job = self._job({"args": arguments, "context": desk.facts()})
        await self._look_at_files(job)
        # The time in which the walls are tried before the first job of all is not its own.
        deadline = strike_time(context.deadline, context.room) + time.monotonic() - asked
        ended, begun = await self._until_its_end(job, desk, deadline)
        meta: dict[str, object] = {"sandbox": self._sandbox.report_on(job)}
        said = to_outcome(ended, meta, lambda: _read(tool, job, ended, context.seconds))
        outcome = replace(said.value, meta=said.meta) if isinstance(said.value, Outcome) else said
        return replace(outcome, waited=begun - asked)

    def _job(self, given: Mapping[str, object]) -> PythonFile:
        run = self._run
        return PythonFile(
            path=run.root / run.path,
            code=run.files[run.path],
            entry=ENTRY,
            arguments=given,
            walls=self._walls,
            convention=Convention.HANDLER,
            interpreter=self._interpreter(run),
            project=self._premises.workspace,
            environment=basic_variables(self._tool.requires, self._premises),
            channel=True,
            files=self._files,
        )

    async def _look_at_files(self, job: PythonFile) -> None:
        """Refuse what changed on disk, as far as that would run."""
        await self._sandbox.learn()
        refuse_changed(self._tool, self._run, self._sandbox.report_on(job)["layers"])

    async def _until_its_end(self, job: PythonFile, desk: Desk, deadline: float) -> tuple[Ended, float]:
        """How the process ended, and when it began."""
        begun, witness = time.monotonic(), None

        async def talk(lines: Lines) -> None:
            nonlocal begun
            begun = time.monotonic()
            await serve(desk, lines)

        if self._observe:
            from toolcrib.runners.witness import Witness

            witness = Witness()
        ended = await run_in_place(
            self._sandbox,
            job,
            deadline=deadline,
            max_result=MAX_RESULT_BYTES,
            talk=talk,
            proxy=lead_out(self._egress, self._run.hosts, deadline, witness) if job.walls.network else None,
        )
        return ended if witness is None else witness.testify(ended), begun


async def serve(desk: Desk, lines: Lines) -> None:
    """Answer a handler until it has nothing more to say; what it only tells does not wait behind what it sends."""
    room = asyncio.Semaphore(MAX_UNDER_WAY)

    async def answer(message: dict[str, object]) -> None:
        try:
            said = await desk.answer(message)
            if said is not None:
                await lines.write(said)
        finally:
            room.release()

    async with asyncio.TaskGroup() as group:
        while (message := await lines.read()) is not None:
            await room.acquire()
            group.create_task(answer(message))
    if lines.problem:
        # What it said last was not heard, and what it says from now on will not be: that must not look like success.
        reason = f"a handler said something that cannot be read: {lines.problem}; its process was killed"
        raise ToolError(Kind.INTERNAL, reason, partial_side_effects=True)


def _read(tool: Tool, job: PythonFile, ended: Ended, seconds: float) -> Outcome:
    """The response of the handler; raises ToolError where it came to none."""
    answer = read_answer(tool, job, ended, seconds)
    if "value" in answer:
        return read_response(tool, answer["value"])
    described = answer.get("error")
    if not isinstance(described, dict):
        raise described_error(tool, job, answer)
    raise _failure(tool, job, described)


def _failure(tool: Tool, job: PythonFile, described: Mapping[str, object]) -> ToolError:
    """What the handler raised, in words of ours; a refusal of the sandbox's comes with the capability that opens it."""
    facts = described.get("tool_error")
    if isinstance(facts, dict):
        own = {
            "type": facts.get("kind"),
            "retryable": facts.get("retryable", False),
            "partialSideEffects": facts.get("partial_side_effects", False),
            "details": facts.get("details"),
        }
        return thrown(tool, {"message": described.get("message"), "toolError": own})
    if "in_result" in described:
        return invalid_response(tool, f"it has no JSON form ({described.get('type')})")
    return to_error(tool, job, described)
