"""Run the handlers of tool folders: JavaScript in warm processes of Node, Python in a fresh process for each call."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.folders.handler_messages import (
    LARGEST_OF_NODE,
    NO_SESSION,
    HandlerService,
    checked_files,
    invalid_response,
    read_response,
    refuse_changed,
    thrown,
)
from toolcrib.features.folders.node_worker import JAVASCRIPT, NotBegunError, Worker, make_job
from toolcrib.infra.programs import (
    MAX_RESULT_BYTES,
    PRINTED_TAIL,
    described_error,
    read_answer,
    to_error,
    to_outcome,
)
from toolcrib.infra.programs.child_channel import ChildClock, is_chunk, is_told
from toolcrib.infra.programs.executables import basic_variables
from toolcrib.infra.programs.observed_effects import EffectRecorder, make_proxy
from toolcrib.infra.programs.worker_pool import Workers
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import READ, WRITE, PythonFile, build_policy, python_runtime
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Convention, Handler
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.programs.executables import Executables
    from toolcrib.infra.sandbox.attempt import Lines, Talk
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, Interpreter, Program, WorkspacePolicy
    from toolcrib.infra.secrets.grants import GrantedVariables
    from toolcrib.model.call import Call, Context
    from toolcrib.model.protocols import Bound
    from toolcrib.model.tool import Tool

    Granted = Callable[[], tuple[dict[str, str], VariableMasking]]

ENTRY = "execute"
# How many messages of one handler are served at once; further ones wait.
MAX_UNDER_WAY = 32
PYTHON = "python"
LONGEST_SECONDS = 7 * 24 * 3600.0
MAX_PRINTED_BYTES = 64 * 1024


def no_variables() -> tuple[dict[str, str], VariableMasking]:
    """What a handler without grants gets."""
    return {}, VariableMasking()


def handler_parts(run: Handler) -> Iterator[RunPart]:
    """The file that holds `execute`, then the others that run; what only describes the tool comes last."""
    contents = run.contents
    code_endings = (".js", ".mjs", ".cjs", ".py")
    order = sorted(contents, key=lambda path: (path != run.path, not path.endswith(code_endings), path))
    for path in order:
        facts = (("language", run.language), ("entry", ENTRY)) if path == run.path else ()
        yield RunPart(kind=PartKind.CODE, title=path, data=contents[path], facts=facts)


class HandlerRunner:
    """Runs the handlers of tool folders.

    `commands` finds Node, `egress` connects those that may use the network; both are only made when they are needed.
    `environments` is where the environments of Python handlers are kept. At most `workers` processes of Node are kept, for all
    tools together; with `fresh` each call has its own process, and so it has with `observe`, which records what each call does.
    """

    kind = Handler.kind

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        workspace_policy: WorkspacePolicy,
        commands: Callable[[], Executables],
        egress: Callable[[], Egress],
        workers: int,
        environments: Path | None = None,
        variables: Callable[[], GrantedVariables] | None = None,
        fresh: bool = False,
        observe: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._commands = commands
        self._egress = egress
        self._environments = environments
        self._variables = variables
        self._workers = Workers[Worker](workers, "folders.workers", fresh=fresh or observe)
        self._observe = observe

    def bind(self, tool: Tool) -> Bound:
        """Take the handler's bytes as they were read; its process is started by the first call."""
        run = tool.run
        if isinstance(run, Handler) and run.language == JAVASCRIPT:
            return _NodeHandler(
                tool, run, self._workers, self._sandbox, self._make_job, self._egress, partial(self._granted, tool, run)
            )
        if isinstance(run, Handler) and run.language == PYTHON:
            return PythonHandler(
                tool,
                run,
                sandbox=self._sandbox,
                workspace_policy=self._workspace_policy,
                egress=self._egress,
                interpreter=partial(self._interpreter, tool),
                granted=partial(self._granted, tool, run),
                observe=self._observe,
            )
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name}: a handler is written in JavaScript or Python")

    async def close(self) -> None:
        """End all worker processes."""
        await self._workers.close()

    def _interpreter(self, tool: Tool, run: Handler) -> Interpreter | None:
        path, code = run.root.absolute() / run.path, run.files[run.path]
        return self._commands().python_for(path, code, environments=self._environments, name=tool.name)

    def _granted(self, tool: Tool, run: Handler) -> tuple[dict[str, str], VariableMasking]:
        """The variables that are granted to the tool and named in its files, and what masks them in the outcome."""
        return no_variables() if self._variables is None else self._variables().of(tool, *run.contents.values())

    def _make_job(self, tool: Tool, run: Handler, granted: Mapping[str, str]) -> Program:
        return make_job(tool, run, self._commands(), self._workspace_policy, granted, observe=self._observe)


class PythonHandler:
    """A handler of a tool folder and the sandbox that it runs in.

    `interpreter` finds the Python of an environment that it has to itself; None means the one that runs Toolcrib. `granted`
    gives the variables of the host that it may see. `observe` records what it does and tries.
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
        workspace_policy: WorkspacePolicy,
        egress: Callable[[], Egress],
        interpreter: Callable[[Handler], Interpreter | None],
        granted: Granted = no_variables,
        observe: bool = False,
    ) -> None:
        self._granted = granted
        self._tool = tool
        self._run = run
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._egress = egress
        self._interpreter = interpreter
        self._observe = observe
        self._files = checked_files(run)
        runtime = (*self._files, *python_runtime())
        self._policy = build_policy(tool.requires, workspace_policy, runtime, listed=run.folders, observe=observe)

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse an unknown language, and a machine that cannot sandbox the handler."""
        run = self._run
        if run.language != PYTHON:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{run.path}: {run.language!r} is not {PYTHON!r}")
        if run.path not in run.files:
            raise ToolError(Kind.NOT_FOUND, f"{run.path} is missing; write def {ENTRY}(args, context) there, and build")
        self._interpreter(run)
        self._sandbox.check(self._policy)

    def preview(self, arguments: dict[str, object], call: Call) -> Iterator[RunPart]:
        """The files of the folder and the shared ones, as they were read."""
        return handler_parts(self._run)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Call `execute` in a process of its own, and answer there what it asks for meanwhile."""
        tool = self._tool
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{tool.name} runs only in a call")
        service, asked = HandlerService(tool, context), time.monotonic()
        granted, masking = self._granted()
        job = replace(
            self._job({"args": arguments, "context": service.facts()}, granted), streams=context.send_chunk is not None
        )
        await self._check_files(job)
        # The sandbox probe before the first job does not count against the timeout.
        deadline = kill_time(context.deadline, context.grace) + time.monotonic() - asked
        ended, begun = await self._run_job(job, service, context, deadline)
        meta: dict[str, object] = {"sandbox": self._sandbox.report_on(job)}
        said = to_outcome(ended, meta, lambda: _read(tool, job, ended, context.seconds, masking))
        outcome = replace(said.value, meta=said.meta) if isinstance(said.value, Outcome) else said
        return masking.hide_outcome(replace(outcome, waited=begun - asked))

    def _job(self, given: Mapping[str, object], granted: Mapping[str, str]) -> PythonFile:
        run = self._run
        return PythonFile(
            path=run.root / run.path,
            code=run.files[run.path],
            entry=ENTRY,
            arguments=given,
            policy=self._policy,
            convention=Convention.HANDLER,
            interpreter=self._interpreter(run),
            project=self._workspace_policy.workspace,
            environment={**granted, **basic_variables(self._tool.requires, self._workspace_policy)},
            channel=True,
            files=self._files,
            joins_text=joins_text(self._tool.output_schema),
        )

    async def _check_files(self, job: PythonFile) -> None:
        """Refuse what changed on disk, as far as that would run."""
        await self._sandbox.learn()
        refuse_changed(self._tool, self._run, self._sandbox.report_on(job)["layers"])

    async def _run_job(
        self, job: PythonFile, service: HandlerService, context: Context, deadline: float
    ) -> tuple[CompletedJob, float]:
        """Run the job; returns how it ended and when it began."""
        begun, recorder = time.monotonic(), None
        clock = ChildClock(context, self._sandbox, deadline)

        async def talk(lines: Lines) -> None:
            nonlocal begun
            begun = time.monotonic()
            await serve(service, lines)

        if self._observe:
            recorder = EffectRecorder()
        latest = deadline + clock.extra_seconds
        ended = await clock.run(
            job,
            talk,
            max_result=MAX_RESULT_BYTES,
            proxy=make_proxy(self._egress, self._run.hosts, latest, recorder) if job.policy.network else None,
        )
        return ended if recorder is None else recorder.add_to(ended), begun


async def serve(service: HandlerService, lines: Lines) -> None:
    """Serve the messages of a handler until it ends; audit entries do not wait behind sent messages."""
    slots = asyncio.Semaphore(MAX_UNDER_WAY)

    async def answer(message: dict[str, object]) -> None:
        try:
            said = await service.answer(message)
            if said is not None:
                await lines.write(said)
        finally:
            slots.release()

    refusal: ToolError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            while (message := await lines.read()) is not None:
                if is_chunk(message):
                    try:
                        await service.chunk(message)
                    except ToolError as problem:
                        refusal = problem
                        break
                    continue
                await service.slow_down()
                if is_told(message):
                    # Not in a task of its own, so that the order of the handler is kept.
                    await service.answer(message)
                    continue
                await slots.acquire()
                group.create_task(answer(message))
    finally:
        service.close()
    if refusal is not None:
        raise refusal  # which ends the handler
    if lines.problem:
        # Messages were lost, so the call must not look like a success.
        reason = f"a handler said something that cannot be read: {lines.problem}; its process was killed"
        raise ToolError(Kind.INTERNAL, reason, partial_side_effects=True)


def _read(tool: Tool, job: PythonFile, ended: CompletedJob, seconds: float, masking: VariableMasking) -> Outcome:
    """The response of the handler; raises ToolError if there is none. What is masked is not in the log either."""
    answer = read_answer(tool, job, ended, seconds)
    if "value" in answer:
        return read_response(tool, answer["value"])
    described = masking.hide_in(answer.get("error"))
    if not isinstance(described, dict):
        raise described_error(tool, job, answer)
    raise _failure(tool, job, described)


def _failure(tool: Tool, job: PythonFile, described: Mapping[str, object]) -> ToolError:
    """The error for what the handler raised; a refusal of the sandbox names the capability that would allow it."""
    facts = described.get("tool_error")
    if isinstance(facts, dict):
        own = {
            "type": facts.get("kind"),
            "retryable": facts.get("retryable", False),
            "partialSideEffects": facts.get("partial_side_effects", False),
            "details": facts.get("details"),
        }
        return thrown(tool, {"message": described.get("message"), "toolError": own})
    if described.get("message") == NO_SESSION:
        return thrown(tool, described)
    if "in_result" in described:
        return invalid_response(tool, f"it has no JSON form: {described.get('message')}")
    # The caller sees only what is in a response; the text of an exception is logged.
    return to_error(tool, job, {name: value for name, value in described.items() if name != "said"})


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
        workers: Workers[Worker],
        sandbox: Sandbox,
        make_job: Callable[[Tool, Handler, Mapping[str, str]], Program],
        egress: Callable[[], Egress],
        granted: Granted,
    ) -> None:
        self._tool = tool
        self._run = run
        self._workers = workers
        self._sandbox = sandbox
        self._make_job = make_job
        self._egress = egress
        self._granted = granted
        self._job: Program | None = None

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse a machine without Node or without a sandbox; a ready worker was checked before."""
        _refuse_beyond_node(self._tool, arguments)
        if not self._workers.has_ready(self._tool):
            self._sandbox.check_for(self._make_job(self._tool, self._run, {}))

    def preview(self, arguments: dict[str, object], call: Call) -> Iterator[RunPart]:
        """The files of the folder and the shared ones, as they were read."""
        return handler_parts(self._run)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Have a worker call `execute`, and answer there what it asks for meanwhile."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        asked = time.monotonic()
        try:
            return await self._serve(arguments, context, asked)
        except NotBegunError:
            # The process ended before it began this call, so another one may take it; but not without limit: what
            # blocks one process may block all that served earlier callers.
            self._workers.dismiss(self._tool)
            return await self._serve(arguments, context, asked)

    async def _serve(self, arguments: dict[str, object], context: Context, asked: float) -> Outcome:
        deadline = kill_time(context.deadline, context.grace)
        granted, masking = self._granted()
        worker = await self._take(granted, deadline)
        began: float | None = None
        try:
            if not worker.is_ready:
                await worker.begin(deadline, context.seconds)
            began = time.monotonic()
            said = await worker.call(
                arguments,
                HandlerService(self._tool, context),
                ChildClock(context, self._sandbox, deadline),
                context.seconds,
            )
            outcome = self._read(said, worker, masking)
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
        seen = await worker.effects() if self._job is not None and self._job.policy.observe else {}
        return masking.hide_outcome(replace(outcome, meta={**self._meta(), **_printed(said), **seen}, waited=waited))

    async def _take(self, granted: dict[str, str], deadline: float) -> Worker:
        """A worker that sees these variables; one that was started before a secret changed still has the old value."""
        while True:
            worker = await self._workers.take(self._tool, partial(self._make_worker, granted), deadline)
            if worker.granted == granted:
                return worker
            worker.is_spent = True
            self._workers.give_back(worker)

    def _make_worker(self, granted: dict[str, str]) -> Worker:
        self._job = job = self._make_job(self._tool, self._run, granted)
        worker = Worker(self._tool, self._run, partial(self._live, job), granted)
        # The sandbox mounts paths of the workspace, and the kernel removes a mount whose target is replaced; a process
        # with access to the workspace is therefore not reused.
        worker.is_spent = not self._tool.requires.isdisjoint({READ, WRITE})
        return worker

    async def _live(self, job: Program, talk: Talk) -> CompletedJob:
        """Run one process, from the last check of its files to its end."""
        await self._sandbox.learn()
        refuse_changed(self._tool, self._run, self._sandbox.report_on(job)["layers"])
        deadline = time.monotonic() + LONGEST_SECONDS
        return await self._sandbox.run(
            job,
            deadline=deadline,
            max_stdout=MAX_PRINTED_BYTES,
            max_stderr=MAX_PRINTED_BYTES,
            talk=talk,
            proxy=make_proxy(self._egress, self._run.hosts, deadline) if job.policy.network else None,
            nested=True,  # outside the job slots: it outlives its call
        )

    def _read(self, said: Mapping[str, object], worker: Worker, masking: VariableMasking) -> Outcome:
        """The outcome of the call as the worker reports it; what is masked is not in the log either."""
        tool, described, value = self._tool, masking.hide_in(said.get("thrown")), said.get("value")
        if isinstance(described, dict):
            return Outcome(error=thrown(tool, described))
        if said.get("tooLong") is True:
            message = f"{tool.name} returned more than 8 MB; return less, or write it to a file"
            return Outcome(error=ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True))
        if "value" not in said:
            reason = f"it is {said.get('unsendable', 'nothing')}, which has no JSON form"
            return Outcome(error=invalid_response(tool, reason))
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            # A process that gave an invalid answer may be corrupted; it is not reused.
            worker.end()
        return read_response(tool, value)

    def _meta(self) -> dict[str, object]:
        return {} if self._job is None else {"sandbox": self._sandbox.report_on(self._job)}


def _refuse_beyond_node(tool: Tool, value: object) -> None:
    """Refuse whole numbers that Node would round: a handler that gets another number than was given acts on the wrong thing."""
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
