"""Run the processes of scripts, and read their values from what they return or print."""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import chained, with_names
from toolcrib.features.scripts.container import Containers
from toolcrib.features.scripts.node_function import no_package, node_value
from toolcrib.features.scripts.program import (
    ARGUMENTS,
    CALLS,
    COMMAND,
    STREAM,
    Programs,
    Slots,
    is_node_function,
    names_the_file,
)
from toolcrib.infra.programs import (
    MAX_RESULT_BYTES,
    cure_of_output,
    cure_of_refusal,
    describe_end,
    described_error,
    exit_details,
    failure,
    has_crashed,
    no_variable,
    open_envelope,
    package_files,
    package_folders,
    read_answer,
    refuse_changed_package,
    refuse_early_end,
    report_crash,
    tail_of,
    to_outcome,
)
from toolcrib.infra.programs.child_channel import ChildClock, serve_calls
from toolcrib.infra.programs.code_parts import named_parts
from toolcrib.infra.programs.executables import basic_variables
from toolcrib.infra.programs.node_runtime import NAMES, explain
from toolcrib.infra.programs.observed_effects import EffectRecorder, make_proxy
from toolcrib.infra.programs.printed_lines import PrintedLines, prints_values, read_lines
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import Program, PythonFile, build_policy, python_runtime
from toolcrib.infra.secrets.secret import Secret, VariableMasking
from toolcrib.lib.command_arguments import check_words
from toolcrib.lib.command_line import Words
from toolcrib.lib.documents import read_json
from toolcrib.lib.environment_reads import needed_variables
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.lib.schema import compile_schema
from toolcrib.lib.system_tools import BASH, DOCKER, PYTHON, is_ours
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Convention, Script
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.scripts.chain import Order
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.programs.executables import Executables
    from toolcrib.infra.sandbox.attempt import Proxy, Talk
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, Job, WorkspacePolicy
    from toolcrib.infra.secrets.secret import Masking
    from toolcrib.model.call import Call, Context
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Tool

    # What the valves of a tool are set to; secrets as Secret.
    FindValves = Callable[[Tool], Mapping[str, object]]


logger = logging.getLogger("toolcrib.runners")

# What Bash says of a variable that is not set.
BASH_UNSET = re.compile(r": line [0-9]{1,9}: ([A-Za-z_]\w{0,127}): ([^\n]{0,80})")

MAX_PRINTED_BYTES = 8 * 1024 * 1024
# By convention: the container could not be created, the file is not executable, the command was not found. A retry fails
# in the same way.
NOTHING_RAN = frozenset({125, 126, 127})
PYTHON_LANGUAGE = "python"
# A file in a folder of tools declares no output schema: a JSON object or list that it prints is its value.
PLAIN_FILE = "file"
JAVASCRIPT = "javascript"
REMOVAL_SECONDS = 15.0
# An engine takes longer to end a container than the kernel to end a process.
REMOVAL_GRACE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A job, and for a container the job that removes it."""

    job: Job
    removal: Program | None = None


class ProcessDriver:
    """Runs orders as processes."""

    def __init__(
        self,
        sandbox: Sandbox,
        workspace_policy: WorkspacePolicy,
        *,
        commands: Executables,
        egress: Callable[[], Egress],
        environments: Path | None,
        observe: bool = False,
        valves: FindValves | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._commands = commands
        self._egress = egress
        self._environments = environments
        self._observe = observe
        self._valves = valves
        self._programs = Programs(commands, workspace_policy, observe=observe)
        self._containers = Containers(commands, workspace_policy)
        self._removals: set[asyncio.Task[None]] = set()

    def check(self, order: Order, call: Call) -> None:
        """Refuse what cannot be started, and a machine that cannot sandbox it."""
        self._sandbox.check_for(self._work(order).job)

    def preview(self, order: Order, call: Call) -> Iterator[RunPart]:
        """The command, its variables and its standard input."""
        order = with_names(order)
        work, slots = self._work(order), Slots(order)
        job = work.job
        variables = {**slots.read_by_file(), **slots.variables()}
        facts = [(f"variable {name}", value) for name, value in sorted(variables.items())]
        facts += [("set by the operator", ", ".join(sorted(self._valve_values(order))))] if self._valves else []
        if isinstance(job, PythonFile):
            words = shlex.join([job.path.name, *job.argv])
        else:
            # The name of a container is another one at each call.
            names = () if work.removal is None else (work.removal.argv[-1],)
            words = shlex.join("{name}" if word in names else word for word in job.argv)
            facts.append(("folder", str(job.cwd)))
        command = words.encode("utf-8", "surrogatepass")
        yield RunPart(kind=PartKind.COMMAND, title=order.chain.primitive, data=command, facts=tuple(facts))
        if not isinstance(job, PythonFile):
            # A primitive that is called by its own name has no folder: the caller names files of the one where it runs.
            homes = [chained(one).folder for one in order.chain.elements if not is_ours(one)] or [job.cwd]
            yield from named_parts(job.argv, (job.cwd, *homes), homes, order.run.script)
        if job.stdin is not None:
            yield RunPart(
                kind=PartKind.COMMAND, title="standard input", data=job.stdin.encode("utf-8", "surrogatepass")
            )

    async def run(self, order: Order, context: Context) -> Outcome:
        """Start the process, wait for its end, and read its output."""
        masking = VariableMasking(order.variable)
        for value in self._valve_values(order).values():
            if isinstance(value, Secret):
                masking.add(value.reveal())
        order = replace(order, streams=context.send_chunk is not None)
        work = self._work(replace(order, variable=masking.variable))
        if context.client is not None and work.removal is None:
            work = replace(work, job=replace(work.job, channel=True))
        ended = await self._run_job(work, order, context)
        meta: dict[str, object] = {"sandbox": self._sandbox.report_on(work.job)}
        ended = _without_folder(ended, order.run.script)
        outcome = to_outcome(ended, meta, lambda: _value(order, work.job, ended, context.seconds, masking, meta))
        if outcome.error is None and _answers_by_printing(work.job) and not _is_called(order):
            meta.pop("stdout", None)  # it is the value
        error = None if outcome.error is None else _explain(outcome.error, work.job)
        return masking.hide_outcome(replace(outcome, error=error))

    def _work(self, order: Order) -> Work:
        if _goes_through(order, DOCKER):
            job, removal = self._containers.job(order)
            return Work(job=job, removal=removal)
        script = order.run.script
        if script is not None and script.language == PYTHON_LANGUAGE and _is_our_python(order):
            return Work(job=self._python_file(order, script))
        return Work(job=self._programs.job(order))

    def _python_file(self, order: Order, script: Script) -> PythonFile:
        """A Python file under our own runtime: the bytes that were read, in a process that is already warm."""
        slots = Slots(order)
        reads_words = script.convention is Convention.ARGV
        line = slots.line() if reads_words else Words(words=(), stdin=slots.stdin())
        words = [*(slots.arguments(order.run.config.get(ARGUMENTS)) if reads_words else ()), *line.words]
        environment = {
            **slots.read_by_file(),
            **basic_variables(order.tool.requires, self._workspace_policy),
            **slots.variables(),
        }
        check_words([*words, *environment.values()], order.tool.name)
        # The process of a package sees only the files that were checked; that of a single file also what lies beside it.
        files = package_files(script)
        runtime = (*(files or (order.run.folder,)), *python_runtime())
        listed = package_folders(script)
        return PythonFile(
            path=script.path,
            code=script.code,
            entry=script.entry,
            arguments=order.arguments,
            policy=build_policy(
                order.tool.requires,
                self._workspace_policy,
                runtime,
                listed=listed,
                hidden=order.hidden,
                observe=self._observe,
            ),
            convention=script.convention,
            argv=tuple(words),
            imports=script.imports,
            interpreter=self._commands.python_for(
                script.path,
                script.code,
                environments=self._environments,
                name=order.tool.name,
                packages=script.packages,
            ),
            project=self._workspace_policy.workspace,
            environment=environment,
            channel=CALLS in order.tool.requires,
            files=files,
            stdin=line.stdin,
            binding=self._binding(order, script),
            streams=order.streams,
            joins_text=joins_text(order.tool.output_schema),
        )

    def _valve_values(self, order: Order) -> Mapping[str, object]:
        return {} if self._valves is None else self._valves(order.tool)

    def _binding(self, order: Order, script: Script) -> Mapping[str, object]:
        """How the function of another framework is called, with the values of its valves."""
        values = self._valve_values(order)
        if not values:
            return script.binding
        given = {name: value.reveal() if isinstance(value, Secret) else value for name, value in values.items()}
        return {**script.binding, "valves": given}

    async def _run_job(self, work: Work, order: Order, context: Context) -> CompletedJob:
        """Run the job; a container that did not end by itself is removed, also when the call fails."""
        deadline = kill_time(context.deadline, context.grace)
        if work.removal is None:
            return await self._start(work.job, order, context, deadline)
        left = context.deadline - time.monotonic()
        deadline = context.deadline - max(0.0, min(REMOVAL_GRACE_SECONDS, left / 4) - context.grace)
        try:
            ended = await self._start(work.job, order, context, deadline)
        except BaseException:
            await self._remove(work.removal)
            raise
        if ended.timed_out or ended.exit_code is None:
            await self._remove(work.removal)
        return ended

    async def _start(self, job: Job, order: Order, context: Context, deadline: float) -> CompletedJob:
        recorder = None
        if self._observe:
            recorder = EffectRecorder()
        deadline += await self._check_files(job, order)
        clock = ChildClock(context, self._sandbox, deadline)
        lines = None
        if context.send_chunk is not None and _prints_a_stream(order, job):
            lines = PrintedLines(order.tool, context.send_chunk)
        try:
            ended = await clock.run(
                job,
                _talk(context, recorder) if job.channel else None,
                max_stdout=MAX_PRINTED_BYTES,
                max_result=MAX_RESULT_BYTES,
                proxy=self._proxy(order, deadline + clock.extra_seconds, recorder) if job.policy.network else None,
                hear=None if lines is None else lines.feed,
            )
            if lines is not None:
                await lines.finish()
        finally:
            if lines is not None:
                await lines.close()
        return ended if recorder is None else recorder.add_to(ended)

    async def _check_files(self, job: Job, order: Order) -> float:
        """Refuse a package that changed on disk, if the changed files would run; the check does not count against the timeout."""
        script = order.run.script
        if script is None or not script.files:
            return 0.0
        began = time.monotonic()
        await refuse_changed_package(order.tool, script, self._sandbox, job)
        return time.monotonic() - began

    def _proxy(self, order: Order, deadline: float, recorder: EffectRecorder | None) -> Proxy:
        """The proxy of a job with a network; its hosts are those of the first in the chain that narrows them."""
        hosts = next((run.hosts for run in map(chained, order.chain.elements) if run.hosts is not None), None)
        return make_proxy(self._egress, hosts, deadline, recorder)

    async def _remove(self, removal: Program) -> None:
        """Remove a container, even if the call is cancelled meanwhile."""
        task = asyncio.ensure_future(self._removed(removal))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)
        await asyncio.shield(task)

    async def _removed(self, removal: Program) -> None:
        try:
            ended = await self._sandbox.run(removal, deadline=time.monotonic() + REMOVAL_SECONDS, nested=True)
        except ToolError as problem:
            logger.warning("container %s could not be removed: %s", removal.argv[-1], problem.message)
            return
        if ended.exit_code != 0:
            logger.warning("container %s could not be removed: %s", removal.argv[-1], tail_of(ended.stderr))


def printed_value(
    tool: Tool, ended: CompletedJob, seconds: float, *, prints_json: bool = False, streams: bool = False
) -> object:
    """The printed text without its last line end, or as JSON if the tool declares an output schema; raises ToolError.

    If `prints_json`, a JSON object or list is parsed without a declared schema too. If the tool `streams` and declares a
    list, each line is an item.
    """
    refuse_early_end(tool.name, ended, seconds)
    if ended.exit_code != 0:
        raise _failure(tool, ended)
    if streams and prints_values(tool) and not ended.stdout_dropped:
        return read_lines(tool, ended.stdout)
    return _printed(tool, ended, prints_json=prints_json)


def answered_value(tool: Tool, job: PythonFile, ended: CompletedJob, seconds: float, masking: Masking) -> object:
    """What the entry function returned; where that is nothing, what it printed counts, as it does for a program."""
    answer = read_answer(tool, job, ended, seconds)
    exit_code = _exit_code(answer)
    if exit_code:
        raise _failure(tool, replace(ended, exit_code=exit_code, signal=None))
    if exit_code is None and "value" not in answer:
        raise described_error(tool, job, answer, masking)
    value = answer.get("value")
    return value if value is not None or not ended.stdout or _may_be_null(tool) else _printed(tool, ended)


def _exit_code(answer: Mapping[str, object]) -> int | None:
    """The code with which the function ended the script, None if it did not."""
    described = answer.get("error")
    code = described.get("exit") if isinstance(described, dict) else None
    return code if isinstance(code, int) else None


def _may_be_null(tool: Tool) -> bool:
    return tool.output_schema is not None and compile_schema(tool.output_schema).is_valid(None)


def _printed(tool: Tool, ended: CompletedJob, *, prints_json: bool = False) -> object:
    if ended.stdout_dropped:
        message = f"{tool.name} printed more than {MAX_PRINTED_BYTES} bytes; print less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    text = ended.stdout.decode("utf-8", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    if tool.output_schema is None:
        prints_json = prints_json or tool.source_type == PLAIN_FILE
        return _as_json(text) if prints_json and text[:1] in {"{", "["} else text
    return _read(tool, text, tool.output_schema)


def _as_json(text: str) -> object:
    """The value that a plain program printed as JSON, and the text if it is none."""
    try:
        return read_json(text.encode("utf-8", "surrogatepass"), place="the output", max_bytes=4 * MAX_PRINTED_BYTES)
    except ToolError:
        return text


def _failure(tool: Tool, ended: CompletedJob) -> ToolError:
    """The error of a program that failed."""
    # Many scripts report their errors on standard output.
    said = tail_of(ended.stderr).strip() or tail_of(ended.stdout).strip()
    script = tool.script
    if script is not None and (name := _demanded(script, said)) is not None:
        return no_variable(tool, name)
    if script is not None and script.language == JAVASCRIPT and (problem := no_package(tool, said)) is not None:
        return problem
    message = f"{tool.name} {describe_end(ended)}" + (f": {said}" if said else "")
    details = exit_details(ended)
    cure = cure_of_output(tool, said).then(cure_of_refusal(ended))
    if ended.exit_code in NOTHING_RAN:
        return ToolError(Kind.PERMANENT, message, cure=cure, partial_side_effects=True, details=details)
    cure = report_crash(tool, ended) if has_crashed(ended) else cure
    return failure(tool, message, Kind.PERMANENT, cure=cure, details=details)


def _without_folder(ended: CompletedJob, script: Script | None) -> CompletedJob:
    """The output of a program with its path shortened to the file name: a caller must not see where the project lies.

    Shells put the whole path before each error message.
    """
    if script is None or not ended.stderr:
        return ended
    path = str(script.path.absolute()).encode("utf-8", "surrogateescape")
    return replace(ended, stderr=ended.stderr.replace(path, script.path.name.encode("utf-8", "surrogateescape")))


def _demanded(script: Script, said: str) -> str | None:
    """The unset variable that ended a Bash file (`${NAME:?}`, or `$NAME` after `set -u`); None if it ended for another reason."""
    if script.language != BASH:
        return None
    complaint = BASH_UNSET.search(said)
    if complaint is None:
        return None
    is_needed = complaint[2] == "unbound variable" or complaint[1] in needed_variables(script.code, BASH)
    return complaint[1] if is_needed else None


def _read(tool: Tool, text: str, promised: dict[str, object]) -> object:
    is_text = promised.get("type") == "string"
    try:
        value = read_json(text.encode(), place=f"what {tool.name} printed", max_bytes=4 * MAX_PRINTED_BYTES)
    except ToolError as problem:
        if is_text:
            return text
        message = f"{tool.name} promises a shape and so prints JSON, but: {problem.message}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
    return text if is_text and not isinstance(value, str) else value


def _talk(context: Context, recorder: EffectRecorder | None) -> Talk:
    """Serve the channel of a script that calls other tools, or reaches the client of its call."""
    return serve_calls(context if recorder is None else recorder.record_calls(context))


def _answers_by_printing(job: Job) -> bool:
    return not isinstance(job, PythonFile) or job.convention == Convention.ARGV


def _value(
    order: Order, job: Job, ended: CompletedJob, seconds: float, masking: Masking, meta: dict[str, object]
) -> object:
    if isinstance(job, PythonFile) and not _answers_by_printing(job):
        value = answered_value(order.tool, job, ended, seconds, masking)
        script = order.run.script
        return value if script is None else open_envelope(order.tool, script, value)
    if order.run.script is not None and _is_called(order):
        value, printed = node_value(order.tool, order.run.script, ended, seconds, meta)
        if not printed or _may_be_null(order.tool):
            return value
        meta.pop("stdout")  # it is the value
        return _printed(order.tool, replace(ended, stdout=printed.encode("utf-8", "surrogatepass")))
    streams = _prints_a_stream(order, job)
    return printed_value(order.tool, ended, seconds, prints_json=names_the_file(order), streams=streams)


def _prints_a_stream(order: Order, job: Job) -> bool:
    """Whether the tool declares that each line that it prints counts at once."""
    return order.run.config.get(STREAM) is True and _answers_by_printing(job) and not _is_called(order)


def _is_called(order: Order) -> bool:
    return order.run.script is not None and is_node_function(order.run.script)


def _explain(error: ToolError, job: Job) -> ToolError:
    """A hint at the likely cause of a failure."""
    if not isinstance(job, Program) or not job.policy.network or PurePath(job.argv[0]).name not in NAMES:
        return error
    return explain(error, job.argv[0])


def _goes_through(order: Order, runtime: str) -> bool:
    """Whether the chain leads through the platform's own runtime of that name."""
    return any(element.name == runtime and is_ours(element) for element in order.chain.elements[1:])


def _is_our_python(order: Order) -> bool:
    """Whether it is our own Python that runs the file, and no executor along the chain replaces its command."""
    namers = (element for element in order.chain.elements if COMMAND in chained(element).config)
    first = next(namers, None)
    return first is not None and first.name == PYTHON and is_ours(first)
