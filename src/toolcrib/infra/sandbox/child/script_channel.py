"""The module `rye` for scripts: call other tools and reach the client of the call over the channel to the host. Also serves sinks."""

from __future__ import annotations

import json
import os
import sys
import threading

from toolcrib.infra.channel import MAX_LINE_BYTES, LineCutter, to_line

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

CHANNEL_VARIABLE = "TOOLCRIB_CHANNEL"
# As in the model, which a child does not load.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
QUESTIONS = {"elicit": "elicitation/create", "sample": "sampling/createMessage", "roots": "roots/list"}

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


def open_caller(channel: int | None) -> Caller:
    """Open the channel; without one messages are dropped, and calls and questions raise an error with the cure."""
    return _Unconnected() if channel is None else _Connected(channel)


def make_module(caller: Caller) -> ModuleType:
    """Create the module."""
    module = type(sys)("rye", "Call other tools of the crib, and reach the client of the call.")
    public: dict[str, object] = {"ToolError": ToolError, "progress": caller.progress, "log": caller.log}
    for name in ("execute", "elicit", "sample", "roots"):
        public[name] = getattr(caller, name)
        public[f"{name}_async"] = _without_blocking(getattr(caller, name))
    module.__dict__.update(public)
    module.__dict__["__all__"] = sorted(public)
    return module


def _without_blocking(function: Any) -> Any:
    async def call(*words: object, **more: object) -> object:
        """Do the same without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(function, *words, **more)

    return call


def check_level(level: object) -> None:
    """Refuse a level that no message of the log has."""
    if level not in LEVELS:
        raise ToolError("VALIDATION", f"there is no level {str(level)[:40]!r}; use one of {', '.join(LEVELS)}")


class Caller:
    """What a script tells and asks the client of its call; `execute`, `tell` and `ask` are those of the channel."""

    execute: Callable[..., object]
    tell: Callable[[dict[str, object]], None]
    ask: Callable[[dict[str, object]], object]

    def chunk(self, value: object) -> None:
        """Hand the client what the script yielded; blocks while the client is slower."""
        self.tell({"do": "chunk", "value": value})

    def end_chunks(self) -> None:
        """Wait until the host has read every chunk."""
        self.ask({"do": "end_chunks"})

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Say how far the call is; each figure should be greater than the last."""
        self.tell({"do": "progress", "progress": progress, "total": total, "message": message})

    def log(self, level: str, data: object) -> None:
        """Send a message of the log to the client; `data` is any JSON value."""
        check_level(level)
        self.tell({"do": "log", "level": level, "data": data})

    def elicit(self, message: str, schema: dict[str, object], *, key: str = "") -> object:
        """Ask the user of the client: `{"action": "accept", "content": {…}}`, or the action `decline` or `cancel`."""
        return self.ask({"do": "elicit", "message": message, "schema": schema, "key": key})

    def sample(self, messages: object, *, max_tokens: int = 1_000, key: str = "", **more: object) -> object:
        """Ask the model of the client; the answer has `role`, `content` and `model`."""
        return self.ask({"do": "sample", "messages": messages, "maxTokens": max_tokens, "key": key, "more": more})

    def roots(self, *, key: str = "") -> object:
        """Ask the client which folders it works on, each with a `uri`."""
        return self.ask({"do": "roots", "key": key})


class _Unconnected(Caller):
    """A script without a channel: it may not call tools, and the client of its call cannot be reached."""

    def execute(self, tool: str, /, *_: object, **__: object) -> object:
        """Raise the error that names the missing capability."""
        message = f"calling {tool} requires rye.execute; list it in requires"
        raise ToolError("CAPABILITY_MISSING", message, details={"missing": ["rye.execute"]})

    def tell(self, message: dict[str, object]) -> None:
        """Do nothing: there is no channel."""

    def ask(self, message: dict[str, object]) -> object:
        """Raise the error that a client without the capability gives too."""
        method = QUESTIONS[str(message["do"])]
        name = method.partition("/")[0]
        reason = (
            f"the client of this call cannot answer {method}; call the tool from a client with the capability {name!r}"
        )
        raise ToolError("CAPABILITY_MISSING", reason, details={"clientCapability": name})


class _Connected(Caller):
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
        message: dict[str, object] = {"tool": tool, "arguments": {**(arguments or {}), **more}}
        return self._settle(message, f"the arguments of {tool}")

    def tell(self, message: dict[str, object]) -> None:
        """Send what needs no answer."""
        self._write(message, f"what {message['do']} says")

    def ask(self, message: dict[str, object]) -> object:
        """Send a question, and wait for the answer."""
        return self._settle(message, f"what {message['do']} asks")

    def _settle(self, message: dict[str, object], what: str) -> object:
        with self._changed:
            self._last += 1
            number = self._last
        self._write({"id": number, **message}, what)
        answer = self._wait_for(number)
        if answer.get("ok") is True:
            return answer.get("value")
        raise _to_error(answer.get("error"))

    def _write(self, message: dict[str, object], what: str) -> None:
        if os.getpid() != self._owner:
            raise ToolError("PERMANENT", "rye answers only in the process that the script was started in")
        try:
            line = to_line(message)
        except (TypeError, ValueError, RecursionError) as problem:
            raise ToolError("VALIDATION", f"{what} cannot be sent: {problem}") from problem
        with self._writing:
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(self._channel, left) :]
            except OSError as problem:
                raise _gone() from problem

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
