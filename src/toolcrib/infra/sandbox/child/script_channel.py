"""The module `rye` for scripts: call other tools over the channel to the host. Also serves sinks."""

from __future__ import annotations

import json
import os
import sys
import threading

from toolcrib.infra.channel import MAX_LINE_BYTES, LineCutter, to_line

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

CHANNEL_VARIABLE = "TOOLCRIB_CHANNEL"

_READ_BYTES = 65536


class ToolError(Exception):
    """A failed call: `type` is its kind, `retryable` whether it may be repeated unchanged."""

    def __init__(
        self,
        type: str,  # noqa: A002 - the wire name of the kind
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
    """Create the module; without a channel every call raises an error with the cure."""
    module = type(sys)("rye", "Call other tools of the crib.")
    execute = _refuse if channel is None else _Caller(channel).execute

    async def execute_async(tool: str, arguments: dict[str, object] | None = None, /, **more: object) -> object:
        """Call a tool without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(execute, tool, arguments, **more)

    module.__dict__.update(execute=execute, execute_async=execute_async, ToolError=ToolError)
    module.__dict__["__all__"] = ["ToolError", "execute", "execute_async"]
    return module


def _refuse(tool: str, /, *_: object, **__: object) -> object:
    """Raise the error that names the missing capability."""
    message = f"calling {tool} requires rye.execute; list it in requires"
    raise ToolError("CAPABILITY_MISSING", message, details={"missing": ["rye.execute"]})


class _Caller:
    """Calls from any thread over one channel: one waiting thread reads the answers for all of them."""

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
        """Read once, with the lock released meanwhile."""
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
        if answer.get("id") is None:  # the host stopped reading
            self._over = True
            return
        self._answers[answer["id"]] = answer


def _gone() -> ToolError:
    return ToolError("CANCELLED", "the connection to the crib was closed")


def _to_error(error: object) -> ToolError:
    facts = error if isinstance(error, dict) else {}
    return ToolError(
        str(facts.get("type", "INTERNAL")),
        str(facts.get("message", "the call failed")),
        retryable=facts.get("retryable") is True,
        partial_side_effects=facts.get("partialSideEffects") is True,
        details=facts.get("details"),
    )


# A sink in the worker: an object to which events are written until the channel is closed.

_MAX_ERROR_CHARACTERS = 2_000


def serve(sink: Any, channel: int) -> None:
    """Write the events from the channel to the sink, answer each one, and close the sink in any case."""
    import asyncio

    asyncio.run(_serve(sink, channel))


async def _serve(sink: Any, channel: int) -> None:
    import asyncio
    import socket

    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=channel), limit=MAX_LINE_BYTES)
    try:
        await _write_events(sink, reader, writer)
    finally:
        problem = await _close(sink)
        await _answer(writer, problem)
    if problem is not None:
        raise problem


async def _write_events(sink: Any, reader: StreamReader, writer: StreamWriter) -> None:
    while True:
        message = json.loads(await reader.readline() or b'{"close": true}')
        if "event" not in message:
            return
        try:
            await _settle(sink.write(message["event"]))
        except Exception as problem:  # noqa: BLE001 - a border to foreign code: any exception is reported
            await _answer(writer, problem)
        else:
            await _answer(writer, None)


async def _answer(writer: StreamWriter, problem: Exception | None) -> None:
    answer: dict[str, object] = {"ok": problem is None}
    if problem is not None:
        answer["error"] = f"{type(problem).__qualname__}: {problem}"[:_MAX_ERROR_CHARACTERS]
    writer.write(to_line(answer))
    try:
        await writer.drain()
    except ConnectionError:  # the host is gone; the sink is closed anyway
        return


async def _close(sink: Any) -> Exception | None:
    """Call its close method, or close the files it holds; returns the error, if any."""
    try:
        if callable(getattr(sink, "close", None)):
            await _settle(sink.close())
        else:
            for file in _files_in(sink):
                file.flush()
                os.fsync(file.fileno())
                file.close()
    except Exception as problem:  # noqa: BLE001 - a border to foreign code: the host reports it
        return problem
    return None


async def _settle(value: Any) -> None:
    if hasattr(value, "__await__"):
        await value


def _files_in(sink: Any) -> Iterator[Any]:
    """The open files in the attributes of the object, directly or in a collection."""
    names = [*getattr(sink, "__dict__", ()), *(name for kind in type(sink).__mro__ for name in _slots_of(kind))]
    for value in [getattr(sink, name, None) for name in names]:
        several = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list | set | tuple) else [value]
        )
        for one in list(several):
            if all(callable(getattr(one, name, None)) for name in ("write", "flush", "fileno", "close")):
                yield from () if one.closed else (one,)


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
