"""Files of code, each call in a fresh child process."""

from __future__ import annotations

import logging
import signal
import time
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.host import strike_time
from toolcrib.ground.sandbox.jobs import PythonFile
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Script
from toolcrib.pure.documents import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.ground.sandbox.host import Sandbox
    from toolcrib.ground.sandbox.jobs import Ended
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.runners")

PYTHON = "python"
SECONDS_WITHOUT_CONTEXT = 30.0
MAX_RESULT_BYTES = 8 * 1024 * 1024
PRINTED_TAIL = 2_000


class ScriptRunner:
    """Runs scripts in a sandbox, which it closes."""

    kind = Script.kind

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def bind(self, tool: Tool) -> BoundScript:
        """Take the tool's bytes as they were read."""
        if not isinstance(tool.run, Script):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is not a script")
        return BoundScript(tool.name, tool.run, self._sandbox)

    async def close(self) -> None:
        """The sandbox belongs to whoever made it."""


class BoundScript:
    """A script and the sandbox that it runs in."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(self, name: str, script: Script, sandbox: Sandbox) -> None:
        self._name = name
        self._script = script
        self._sandbox = sandbox

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse a language that nobody runs, and a machine that cannot keep the script in."""
        if self._script.language != PYTHON:
            message = f"{self._script.path}: no runner for {self._script.language!r}; scripts are written in {PYTHON!r}"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        self._sandbox.check()

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Call the script's entry function in a process of its own."""
        started = time.monotonic()
        deadline = started + SECONDS_WITHOUT_CONTEXT if context is None else context.deadline
        seconds = SECONDS_WITHOUT_CONTEXT if context is None else context.seconds
        script = self._script
        job = PythonFile(path=script.path, code=script.code, entry=script.entry, arguments=arguments)
        ended = await self._sandbox.run(job, deadline=strike_time(deadline), max_result=MAX_RESULT_BYTES)
        meta: dict[str, object] = {"sandbox": self._sandbox.report()}
        if ended.stdout:
            meta["stdout"] = ended.stdout.decode("utf-8", "replace")[-PRINTED_TAIL:]
        if ended.stderr:
            meta["stderr"] = ended.stderr.decode("utf-8", "replace")[-PRINTED_TAIL:]
        try:
            return Outcome(value=self._value(ended, seconds), meta=meta)
        except ToolError as error:
            return Outcome(value=error.value, error=error, meta=meta)

    def _value(self, ended: Ended, seconds: float) -> object:
        """What the entry function returned; raises ToolError if it did not."""
        if ended.cannot_start:
            raise ToolError(Kind.INTERNAL, f"{self._name} could not be started: {ended.cannot_start}")
        if ended.timed_out:
            message = f"{self._name} ran longer than {show_seconds(seconds)}; its processes were killed"
            raise ToolError(Kind.TIMEOUT, message, partial_side_effects=True)
        if ended.result_too_long:
            message = f"{self._name} returned more than {MAX_RESULT_BYTES} bytes; return less, or write it to a file"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
        if ended.result is None:
            message = f"{self._name} {describe_end(ended)} before it returned a result; return a value from {self._script.entry}"
            raise ToolError(Kind.INTERNAL, message, partial_side_effects=True)
        answer = self._read(ended.result)
        if "value" in answer:
            return answer["value"]
        raise self._to_error(answer.get("error"))

    def _read(self, result: bytes) -> Mapping[str, object]:
        """The answer of the child, which may be anything: the script can write where its answer goes."""
        try:
            answer = read_json(result, place="the answer", max_bytes=MAX_RESULT_BYTES)
        except ToolError as problem:
            raise self._unreadable(problem.message) from problem
        if not isinstance(answer, dict) or len(answer) != 1:
            raise self._unreadable("it is not one value")
        return answer

    def _unreadable(self, reason: str) -> ToolError:
        message = f"{self._name} gave an answer that cannot be read: {reason}"
        return ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)

    def _to_error(self, described: object) -> ToolError:
        """The script's own exception, its traceback kept for the log."""
        if not isinstance(described, dict):
            return self._unreadable("it holds neither a value nor an error")
        facts = described.get("tool_error")
        if isinstance(facts, dict):
            return self._own_error(str(described.get("message")), facts)
        logger.error("%s failed unexpectedly\n%s", self._name, described.get("traceback"))
        if "exit" in described:
            message = f"{self._name} ended itself with exit code {described['exit'] or 0}; return a value from {self._script.entry}"
        else:
            message = f"{self._name} failed unexpectedly ({described.get('type')}); the log has the details"
        return ToolError(Kind.INTERNAL, message, partial_side_effects=True)

    def _own_error(self, message: str, facts: dict[str, object]) -> ToolError:
        """An error that the script meant to give: its word counts for everything but the closed list of kinds."""
        kind, details = facts.get("kind"), facts.get("details")
        return ToolError(
            Kind(kind) if isinstance(kind, str) and kind in set(Kind) else Kind.INTERNAL,
            message,
            retryable=facts.get("retryable") is True,
            partial_side_effects=facts.get("partial_side_effects") is True,
            details=details if isinstance(details, dict) else {},
            value=facts.get("value"),
        )


def show_seconds(seconds: float) -> str:
    """A time limit in words, without the microseconds that passed before it was read."""
    return f"{round(seconds, 1 if seconds >= 1 else 2):g} s"


def describe_end(ended: Ended) -> str:
    """How the process came to its end, as the rest of a sentence."""
    if ended.signal is not None:
        return f"was ended by {_name_signal(ended.signal)}"
    return "was killed" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
