"""Plain files of Python, each call in a fresh child process; and what came of a child, whatever ran in it."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox.host import strike_time
from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.lib.documents import read_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path
    from typing import Any

    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import Ended, Job, Walls
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Script, Tool

PYTHON = "python"
SECONDS_WITHOUT_CONTEXT = 30.0
MAX_RESULT_BYTES = 8 * 1024 * 1024
PRINTED_TAIL = 2_000
# Walls that are mounts fall when the host replaces what they stand on, as an editor does that saves the settings.
WALLS = "walls"
LIMITS = {
    "mem": "more memory than it may (setting sandbox_memory_mb)",
    "pids": "more processes than it may (setting sandbox_processes)",
    "disk": "more disk than it may (setting sandbox_disk_mb)",
}


class BoundScript:
    """A script and the sandbox that it runs in."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(self, tool: Tool, script: Script, sandbox: Sandbox, walls: Walls, workspace: Path) -> None:
        self._tool = tool
        self._script = script
        self._sandbox = sandbox
        self._walls = walls
        self._workspace = workspace

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse a language that nobody runs, and a machine that cannot keep the script in."""
        if self._script.language != PYTHON:
            message = f"{self._script.path}: no runner for {self._script.language!r}; scripts are written in {PYTHON!r}"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        self._sandbox.check(self._walls)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Call the script's entry function in a process of its own."""
        if context is None:
            strike, seconds = time.monotonic() + SECONDS_WITHOUT_CONTEXT, SECONDS_WITHOUT_CONTEXT
        else:
            strike, seconds = strike_time(context.deadline, context.room), context.seconds
        script = self._script
        job = PythonFile(
            path=script.path,
            code=script.code,
            entry=script.entry,
            arguments=arguments,
            walls=self._walls,
            convention=script.convention,
            imports=script.imports,
            project=self._workspace,
            files={script.path.absolute().parent / path: content for path, content in script.files.items()},
        )
        if script.files:
            from toolcrib.infra.programs.checked_files import refuse_changed_package

            await refuse_changed_package(self._tool, script, self._sandbox, job)
        ended = await run_in_place(self._sandbox, job, deadline=strike, max_result=MAX_RESULT_BYTES)
        meta: dict[str, object] = {"sandbox": self._sandbox.report_on(job)}
        return to_outcome(ended, meta, lambda: self._value(job, ended, seconds))

    def _value(self, job: PythonFile, ended: Ended, seconds: float) -> object:
        value = returned_value(self._tool, job, ended, seconds)
        if not self._script.enveloped:
            return value
        from toolcrib.infra.programs.script_errors import open_envelope

        return open_envelope(self._tool, self._script, value)


class ParentSlot:
    """The slot of a running script in the sandbox, which one nested job of its calls uses at a time.

    A nested job that waits for a slot of its own while its script holds one could wait for ever. One at a time, because a
    script that calls itself several times over, ten deep, would otherwise fill the machine.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()

    def lend_in_this_task(self) -> None:
        """Have the jobs that this task starts use the slot."""
        _parent_slot.set(self)


_parent_slot: ContextVar[ParentSlot | None] = ContextVar("the slot of the script that makes this call", default=None)


@asynccontextmanager
async def lent_slot() -> AsyncIterator[bool]:
    """Use the slot of the script that makes this call, in turn with its other calls; False where no script makes it."""
    slot = _parent_slot.get()
    if slot is None or slot.loop is not asyncio.get_running_loop():
        yield False
        return
    async with slot.lock:
        yield True


async def run_in_place(sandbox: Sandbox, job: Job, **how: Any) -> Ended:
    """Run a job; one that a script asks for by a call of its own runs in the slot of that script."""
    async with lent_slot() as nested:
        return await sandbox.run(job, nested=nested, **how)


def to_outcome(ended: Ended, meta: dict[str, object], read: Callable[[], object]) -> Outcome:
    """The value that `read` finds, or the error that it raises, beside what was printed and observed."""
    for stream, printed in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        if printed:
            meta[stream] = tail_of(printed)
    meta |= describe_effects(ended)
    try:
        return Outcome(value=read(), meta=meta)
    except ToolError as error:
        return Outcome(value=error.value, error=error, meta=meta)


def describe_effects(ended: Ended) -> dict[str, object]:
    """What a process was seen to do, for `meta`; nothing where nobody looked."""
    effects = [{"act": effect.act, "what": effect.what, "denied": effect.denied} for effect in ended.effects]
    return {"effects": effects} if effects else {}


def returned_value(tool: Tool, job: PythonFile, ended: Ended, seconds: float) -> object:
    """What the entry function returned; raises ToolError if it did not."""
    answer = read_answer(tool, job, ended, seconds)
    if "value" in answer:
        return answer["value"]
    raise described_error(tool, job, answer)


def read_answer(tool: Tool, job: PythonFile, ended: Ended, seconds: float) -> Mapping[str, object]:
    """What the script answered, a `value` or an `error`; raises ToolError if it came to no answer."""
    refuse_early_end(tool.name, ended, seconds)
    if ended.result_too_long:
        message = f"{tool.name} returned more than {MAX_RESULT_BYTES} bytes; return less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    if ended.result is not None:
        return _read(tool.name, ended.result)
    from toolcrib.infra.programs.script_errors import failure

    message = f"{tool.name} {describe_end(ended)} before it returned a result; return a value from {job.entry}"
    raise failure(tool, message, details=exit_details(ended))


def described_error(tool: Tool, job: PythonFile, answer: Mapping[str, object]) -> ToolError:
    """The error of an answer that holds no value."""
    described = answer.get("error")
    if not isinstance(described, dict):
        return _unreadable(tool.name, "it holds neither a value nor an error")
    from toolcrib.infra.programs.script_errors import to_error

    return to_error(tool, job, described)


def refuse_early_end(name: str, ended: Ended, seconds: float) -> None:
    """Raise ToolError for what never started, and for what was ended because it took too long or too much."""
    if ended.cannot_start:
        raise ToolError(Kind.INTERNAL, f"{name} could not be started: {ended.cannot_start}")
    if ended.timed_out:
        message = f"{name} ran longer than {show_seconds(seconds)}; its processes were killed"
        raise ToolError(Kind.TIMEOUT, message, partial_side_effects=True)
    if ended.exceeded == WALLS:
        message = f"something that {name} is kept from was replaced while it ran; its processes were killed; look at what stands there now, and call again"
        raise ToolError(Kind.TRANSIENT, message, retryable=True, partial_side_effects=True, details={"limit": WALLS})
    if ended.exceeded:
        message = f"{name} used {LIMITS.get(ended.exceeded, ended.exceeded)}; its processes were killed"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True, details={"limit": ended.exceeded})


def tail_of(printed: bytes) -> str:
    """The end of what a process printed, as text."""
    return printed.decode("utf-8", "replace")[-PRINTED_TAIL:]


def show_seconds(seconds: float) -> str:
    """A time limit in words, without the microseconds that passed before it was read."""
    return f"{round(seconds, 1 if seconds >= 1 else 2):g} s"


def describe_end(ended: Ended) -> str:
    """How the process came to its end, as the rest of a sentence."""
    if ended.signal is not None:
        return f"was ended by {_name_signal(ended.signal)}"
    return "was killed" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"


def exit_details(ended: Ended) -> dict[str, object]:
    """The exit code, where there is one."""
    return {} if ended.exit_code is None else {"exitCode": ended.exit_code}


def _read(name: str, result: bytes) -> Mapping[str, object]:
    """The answer of the child, which may be anything: the script can write where its answer goes."""
    try:
        answer = read_json(result, place="the answer", max_bytes=MAX_RESULT_BYTES)
    except ToolError as problem:
        raise _unreadable(name, problem.message) from problem
    if not isinstance(answer, dict) or len(answer) != 1:
        raise _unreadable(name, "it is not one value")
    return answer


def _unreadable(name: str, reason: str) -> ToolError:
    message = f"{name} gave an answer that cannot be read: {reason}"
    return ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
