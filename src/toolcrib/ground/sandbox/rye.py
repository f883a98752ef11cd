"""What a script gets when it writes `import rye`: a way to call other tools, over the channel to the host."""

from __future__ import annotations

import json
import os
import sys
import threading

from toolcrib.ground.channel import LineCutter, to_line

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from types import ModuleType

CHANNEL_VARIABLE = "TOOLCRIB_CHANNEL"

_READ_BYTES = 65536


class ToolError(Exception):
    """A call that failed: `type` says why, `retryable` whether it may be made again as it is."""

    def __init__(
        self,
        type: str,  # noqa: A002 - the word of every face for it
        message: str,
        *,
        retryable: bool = False,
        partial_side_effects: bool = False,
        details: object = None,
    ) -> None:
        super().__init__(message)
        self.type = self.kind = type
        self.message = message
        self.retryable = retryable
        self.partial_side_effects = partial_side_effects
        self.details = details if isinstance(details, dict) else {}


def make_module(channel: int | None) -> ModuleType:
    """The module; without a channel every call says what is missing."""
    module = type(sys)("rye", "Call other tools of the crib.")
    execute = _refuse if channel is None else _Caller(channel).execute

    async def execute_async(tool: str, arguments: dict[str, object] | None = None, /, **more: object) -> object:
        """Call a tool while other coroutines go on."""
        import asyncio

        return await asyncio.to_thread(execute, tool, arguments, **more)

    module.__dict__.update(execute=execute, execute_async=execute_async, ToolError=ToolError)
    module.__dict__["__all__"] = ["ToolError", "execute", "execute_async"]
    return module


def _refuse(tool: str, /, *_: object, **__: object) -> object:
    """Say what a script must write to be allowed to call tools."""
    message = f"calling {tool} requires rye.execute; list it in requires"
    raise ToolError("CAPABILITY_MISSING", message, details={"missing": ["rye.execute"]})


class _Caller:
    """Calls from any thread over one channel: whoever waits and finds nobody reading reads for all."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._owner = os.getpid()
        self._cutter = LineCutter()
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._reading = False
        self._over = False
        self._last = 0
        self._answers: dict[object, dict[str, object]] = {}

    def execute(self, tool: str, arguments: dict[str, object] | None = None, /, **more: object) -> object:
        """Call a tool and wait for its value; raises ToolError if it fails."""
        if os.getpid() != self._owner:
            raise ToolError("PERMANENT", "rye.execute answers only in the process that the script was started in")
        answer = self._wait_for(self._ask(tool, {**(arguments or {}), **more}))
        if answer.get("ok") is True:
            return answer.get("value")
        raise _to_error(answer.get("error"))

    def _ask(self, tool: str, arguments: dict[str, object]) -> int:
        with self._changed:
            self._last += 1
            number = self._last
        try:
            line = to_line({"id": number, "tool": tool, "arguments": arguments})
        except (TypeError, ValueError, RecursionError) as problem:
            raise ToolError("VALIDATION", f"the arguments of {tool} cannot be sent: {problem}") from problem
        with self._writing:
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(self._channel, left) :]
            except OSError as problem:
                raise _gone() from problem
        return number

    def _wait_for(self, number: int) -> dict[str, object]:
        with self._changed:
            while number not in self._answers:
                if self._over:
                    raise _gone()
                if self._reading:
                    self._changed.wait()
                else:
                    self._read_for_all()
            return self._answers.pop(number)

    def _read_for_all(self) -> None:
        """Read once, with the lock let go meanwhile."""
        self._reading = True
        self._changed.release()
        try:
            data = os.read(self._channel, _READ_BYTES)
        except OSError:
            data = b""
        finally:
            self._changed.acquire()
            self._reading = False
            self._changed.notify_all()
        self._over = not data
        self._cutter.feed(data)
        while (line := self._cutter.next()) is not None:
            self._note(json.loads(line))

    def _note(self, answer: dict[str, object]) -> None:
        if answer.get("id") is None:  # the host reads nothing more
            self._over = True
            return
        self._answers[answer["id"]] = answer


def _gone() -> ToolError:
    return ToolError("CANCELLED", "the crib does not answer any more")


def _to_error(error: object) -> ToolError:
    facts = error if isinstance(error, dict) else {}
    return ToolError(
        str(facts.get("type", "INTERNAL")),
        str(facts.get("message", "the call failed")),
        retryable=facts.get("retryable") is True,
        partial_side_effects=facts.get("partialSideEffects") is True,
        details=facts.get("details"),
    )
