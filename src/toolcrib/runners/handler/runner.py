"""Tool folders: JavaScript handlers in warm processes of Node, Python handlers in fresh ones."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.host import strike_time
from toolcrib.ground.sandbox.walls import READ, WRITE
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Handler
from toolcrib.runners.handler.contents import refuse_changed
from toolcrib.runners.handler.context import LARGEST_OF_NODE, Desk
from toolcrib.runners.handler.node import JAVASCRIPT, make_job
from toolcrib.runners.handler.response import invalid_response, read_response, thrown
from toolcrib.runners.handler.worker import NotBegunError, Worker
from toolcrib.runners.handler.workers import Workers
from toolcrib.runners.leading import lead_out
from toolcrib.runners.script import PRINTED_TAIL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.ground.egress import Egress
    from toolcrib.ground.sandbox.attempt import Talk
    from toolcrib.ground.sandbox.host import Sandbox
    from toolcrib.ground.sandbox.interpreters import Interpreter
    from toolcrib.ground.sandbox.jobs import Ended, Program
    from toolcrib.ground.sandbox.walls import Premises
    from toolcrib.model.call import Call, Context
    from toolcrib.model.protocols import Bound
    from toolcrib.model.tool import Tool
    from toolcrib.runners.commands import Commands

PYTHON = "python"
LONGEST_SECONDS = 7 * 24 * 3600.0
MAX_PRINTED_BYTES = 64 * 1024


class HandlerRunner:
    """Runs the handlers of tool folders.

    `commands` finds Node, `egress` leads out those that may use the network; both are only made when they are needed.
    `environments` is where those of Python handlers are kept.
    `workers` processes of Node are kept at the most, for all tools together; with `fresh` each call has one of its own,
    and so it has with `observe`, which takes note of what each call does.
    """

    kind = Handler.kind

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        premises: Premises,
        commands: Callable[[], Commands],
        egress: Callable[[], Egress],
        workers: int,
        environments: Path | None = None,
        fresh: bool = False,
        observe: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._premises = premises
        self._commands = commands
        self._egress = egress
        self._environments = environments
        self._workers = Workers(workers, fresh=fresh or observe)
        self._observe = observe

    def bind(self, tool: Tool) -> Bound:
        """Take the handler's bytes as they were read; its process is started by the first call."""
        run = tool.run
        if isinstance(run, Handler) and run.language == JAVASCRIPT:
            return _NodeHandler(tool, run, self._workers, self._sandbox, self._make_job, self._egress)
        if isinstance(run, Handler) and run.language == PYTHON:
            from toolcrib.runners.handler.python import PythonHandler

            return PythonHandler(
                tool,
                run,
                sandbox=self._sandbox,
                premises=self._premises,
                egress=self._egress,
                interpreter=partial(self._interpreter, tool),
                observe=self._observe,
            )
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name}: a handler is written in JavaScript or Python")

    async def close(self) -> None:
        """End the processes that wait and those that run."""
        await self._workers.close()

    def _interpreter(self, tool: Tool, run: Handler) -> Interpreter | None:
        from toolcrib.ground.sandbox.environments import find_interpreter

        path, commands = run.root.absolute() / run.path, self._commands()
        return find_interpreter(
            path,
            run.files[run.path],
            root=commands.folders(path.parent)[-1],
            # Without a folder for environments there is none in it.
            envs=self._environments or Path(os.devnull),
            search_path=commands.trusted_path,
            name=tool.name,
        )

    def _make_job(self, tool: Tool, run: Handler) -> Program:
        return make_job(tool, run, self._commands(), self._premises, observe=self._observe)


class _NodeHandler:
    """A handler in JavaScript, and the workers that hold it."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self,
        tool: Tool,
        run: Handler,
        workers: Workers,
        sandbox: Sandbox,
        make_job: Callable[[Tool, Handler], Program],
        egress: Callable[[], Egress],
    ) -> None:
        self._tool = tool
        self._run = run
        self._workers = workers
        self._sandbox = sandbox
        self._make_job = make_job
        self._egress = egress
        self._job: Program | None = None

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse where there is no Node, and a machine that cannot keep the handler in; who is ready was checked."""
        _refuse_beyond_node(self._tool, arguments)
        if not self._workers.has_ready(self._tool):
            self._sandbox.check_for(self._make_job(self._tool, self._run))

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Have a worker call `execute`, and answer there what it asks for meanwhile."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        asked = time.monotonic()
        try:
            return await self._serve(arguments, context, asked)
        except NotBegunError:
            # Whatever the process went for has nothing to do with this call, so it may have another, a new one; but not for
            # ever. What holds one up may hold up all that an earlier caller used.
            self._workers.dismiss(self._tool)
            return await self._serve(arguments, context, asked)

    async def _serve(self, arguments: dict[str, object], context: Context, asked: float) -> Outcome:
        deadline = strike_time(context.deadline, context.room)
        worker = await self._workers.take(self._tool, self._make_worker, deadline)
        began: float | None = None
        try:
            if not worker.is_ready:
                await worker.begin(deadline, context.seconds)
            began = time.monotonic()
            said = await worker.call(arguments, Desk(self._tool, context), deadline, context.seconds)
            outcome = self._read(said, worker)
        except NotBegunError:
            raise
        except ToolError as problem:
            outcome, said = Outcome(error=problem), {}
        except BaseException:
            worker.end()
            raise
        finally:
            self._workers.give_back(worker)
        waited = (began or time.monotonic()) - asked
        seen = await worker.effects() if self._job is not None and self._job.walls.observe else {}
        return replace(outcome, meta={**self._meta(), **_printed(said), **seen}, waited=waited)

    def _make_worker(self) -> Worker:
        self._job = job = self._make_job(self._tool, self._run)
        worker = Worker(self._tool, self._run, partial(self._live, job))
        # The walls around the workspace are mounts, which the kernel takes away when what they stand on is replaced; a
        # process that may use the workspace is not kept until that happens.
        worker.is_spent = not self._tool.requires.isdisjoint({READ, WRITE})
        return worker

    async def _live(self, job: Program, talk: Talk) -> Ended:
        """The life of one process, from the last look at its files."""
        await self._sandbox.learn()
        refuse_changed(self._tool, self._run, self._sandbox.report_on(job)["layers"])
        deadline = time.monotonic() + LONGEST_SECONDS
        return await self._sandbox.run(
            job,
            deadline=deadline,
            max_stdout=MAX_PRINTED_BYTES,
            max_stderr=MAX_PRINTED_BYTES,
            talk=talk,
            proxy=lead_out(self._egress, self._run.hosts, deadline) if job.walls.network else None,
            nested=True,  # beside the places for jobs: it stays when its call is over
        )

    def _read(self, said: Mapping[str, object], worker: Worker) -> Outcome:
        """What came of the call, as the worker says it."""
        tool, described, value = self._tool, said.get("thrown"), said.get("value")
        if isinstance(described, dict):
            return Outcome(error=thrown(tool, described))
        if said.get("tooLong") is True:
            message = f"{tool.name} returned more than 8 MB; return less, or write it to a file"
            return Outcome(error=ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True))
        if "value" not in said:
            reason = f"it is {said.get('unsendable', 'nothing')}, which has no JSON form"
            return Outcome(error=invalid_response(tool, reason))
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            # Whatever spoils its answers, be it something that it changed for good, ends with the process.
            worker.end()
        return read_response(tool, value)

    def _meta(self) -> dict[str, object]:
        return {} if self._job is None else {"sandbox": self._sandbox.report_on(self._job)}


def _refuse_beyond_node(tool: Tool, value: object) -> None:
    """Refuse whole numbers that Node would round: whoever acts on another number than was given acts on the wrong thing."""
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_beyond_node(tool, inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_beyond_node(tool, inner)
    elif type(value) is int and abs(value) > LARGEST_OF_NODE:
        message = f"{tool.name} is written in JavaScript, which would round {value}; give whole numbers up to 2^53 as such, larger ones as text"
        raise ToolError(Kind.VALIDATION, message)


def _printed(said: Mapping[str, object]) -> dict[str, object]:
    """The end of what the handler printed during the call."""
    return {name: str(said[name])[-PRINTED_TAIL:] for name in ("stdout", "stderr") if said.get(name)}
