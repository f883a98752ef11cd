"""The context of a handler in the worker, which uses the channel to the host, and the handler's imports."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from importlib.machinery import (  # at module level: inside `find_spec` an import would recurse
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from types import MappingProxyType

from toolcrib import handler
from toolcrib.infra.channel import LineCutter, to_line
from toolcrib.infra.sandbox.child.script_channel import LEVELS

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import Future
    from types import ModuleType, TracebackType
    from typing import Any

_READ_BYTES = 65536
_MAX_EVENT_LETTERS = 200


class Facts(dict[str, "Any"]):
    """Values as items and attributes, spelled as in the document (`clientId`) and in Python style (`client_id`)."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        first, *rest = name.split("_")
        for spelling in (name, first + "".join(map(str.capitalize, rest))):
            if spelling in self:
                return self[spelling]
        raise AttributeError(f"there is no {name}; there are {', '.join(self)}")


class HandlerSession:
    """The messages between a handler and the host while it runs: the handler gets its context from the `with` block.

    All messages are delivered before the process ends. A failed message that was not awaited is an error of the
    handler.
    """

    def __init__(self, facts: dict[str, Any], channel: int) -> None:
        self._facts = facts
        self._line = _Line(channel)

    def chunk(self, value: object) -> None:
        """Hand the client what the handler yielded; blocks while the client is slower."""
        self._line.tell({"do": "chunk", "value": value})

    def __enter__(self) -> Facts:
        facts, line = self._facts, self._line
        session = Facts({**facts["session"], "state": MappingProxyType(facts["session"]["state"])})
        parts = {"messaging": _Messaging(line), "voice": _Voice(facts["voice"]), "audit": _Audit(line)}
        known = {"clientId": facts["clientId"], "tool": Facts(facts["tool"]), "session": session}
        # Some authors look for them under `capabilities`.
        return Facts({**known, **parts, "capabilities": Facts(parts), **_Client(line).methods()})

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        missed = self._line.finish()
        if problem is None and missed is not None:
            raise missed


class _Messaging:
    """Messages to the client."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def send(self, message: object) -> Coroutine[Any, Any, None]:
        """Send a message; awaiting it raises ConnectionError if it was not delivered."""
        sending = self._line.ask({"do": "send", "message": message})

        async def send() -> None:
            await self._line.hear(sending)

        return send()


class _Voice:
    """Whether the client uses voice or text."""

    def __init__(self, is_active: bool) -> None:  # noqa: FBT001 - it is all there is to say
        self._is_active = is_active

    def is_active(self) -> bool:
        """Whether the conversation is spoken."""
        return self._is_active

    isActive = is_active  # noqa: N815 - as the document spells it


class _Audit:
    """Entries in the audit log."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def log(self, event: object, data: object = None) -> None:
        """Write an audit entry."""
        if not isinstance(event, str) or not 0 < len(event) <= _MAX_EVENT_LETTERS:
            raise ValueError(f"the event of an audit entry is a text of 1 to {_MAX_EVENT_LETTERS} letters")
        if data is not None and not isinstance(data, dict):
            raise TypeError(f"the data of the audit entry {event!r} is a {type(data).__name__}; write {{...}}")
        self._line.tell({"do": "audit", "event": event, "data": data or {}})


class _Client:
    """What a handler tells and asks the client of its call."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def methods(self) -> dict[str, object]:
        """Its methods, as the context has them."""
        return {name: getattr(self, name) for name in ("progress", "log", "elicit", "sample", "roots")}

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Say how far the call is; each figure should be greater than the last."""
        self._line.tell({"do": "progress", "progress": progress, "total": total, "message": message})

    def log(self, level: str, data: object) -> None:
        """Send a message of the log to the client; `data` is any JSON value."""
        if level not in LEVELS:
            raise ValueError(f"there is no level {level!r:.40}; use one of {', '.join(LEVELS)}")
        self._line.tell({"do": "log", "level": level, "data": data})

    async def elicit(self, message: str, schema: Mapping[str, object], *, key: str = "") -> object:
        """Ask the user of the client: `{"action": "accept", "content": {…}}`, or the action `decline` or `cancel`."""
        return await self._ask({"do": "elicit", "message": message, "schema": dict(schema), "key": key})

    async def sample(self, messages: object, *, max_tokens: int = 1_000, key: str = "", **more: object) -> object:
        """Ask the model of the client; the answer has `role`, `content` and `model`."""
        return await self._ask(
            {"do": "sample", "messages": messages, "maxTokens": max_tokens, "key": key, "more": more}
        )

    async def roots(self, *, key: str = "") -> object:
        """Ask the client which folders it works on, each with a `uri`."""
        return await self._ask({"do": "roots", "key": key})

    async def _ask(self, message: dict[str, object]) -> object:
        return await self._line.hear(self._line.ask(message))


class _Line:
    """The connection to the host. A thread receives answers, so that any event loop, or none, can wait for them."""

    def __init__(self, channel: int) -> None:
        self._socket = socket.socket(fileno=channel)
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._asked: dict[object, Future[object]] = {}
        self._unheard: dict[int, Future[object]] = {}
        self._listener: threading.Thread | None = None
        self._was_used = self._gave_up = False

    def tell(self, message: dict[str, object]) -> None:
        """Send a message without an answer."""
        if os.getpid() != self._owner:
            raise ConnectionError("the context works only in the process that the handler was started in")
        line = to_line(message)
        with self._writing:
            self._was_used = True
            try:
                self._socket.sendall(line)
            except OSError as problem:
                raise _gone() from problem

    def ask(self, message: dict[str, object]) -> int:
        """Send a message with an answer; returns its number."""
        from concurrent.futures import Future

        number, answer = next(self._numbers), Future[object]()
        answer.set_running_or_notify_cancel()  # a cancelled wait must not cancel the answer
        self._asked[number] = answer
        try:
            self.tell({"ask": number, **message})
        except BaseException:
            self._asked.pop(number, None)
            raise
        self._unheard[number] = answer
        self._listen()
        return number

    async def hear(self, number: int) -> object:
        """Wait for an answer; raises ConnectionError if it is an error, a question that was refused ToolError."""
        import asyncio

        try:
            return await asyncio.wrap_future(self._unheard.pop(number))
        except asyncio.CancelledError:
            self._gave_up = True
            raise

    def finish(self) -> Exception | None:
        """Wait until the host has received everything; returns the first error that was not awaited.

        If the handler cancelled a wait itself, this does not wait either.
        """
        if not self._was_used or self._gave_up or os.getpid() != self._owner:
            return None
        self._hang_up(socket.SHUT_WR)
        if self._listener is None:
            self._read()
        else:
            self._listener.join()
        refusals = (answer.exception() for answer in self._unheard.values())
        return next((refusal for refusal in refusals if isinstance(refusal, Exception)), None)

    def _listen(self) -> None:
        with self._starting:
            if self._listener is None:
                self._listener = threading.Thread(target=self._read, name="toolcrib", daemon=True)
                self._listener.start()

    def _read(self) -> None:
        """Receive answers until the host closes."""
        cutter = LineCutter()
        try:
            while data := self._socket.recv(_READ_BYTES):
                cutter.feed(data)
                while (line := cutter.next()) is not None:
                    self._note(json.loads(line))
        except (OSError, ValueError):  # the handler itself may have read some of the data
            pass
        self._hang_up(socket.SHUT_RDWR)  # first, so that later messages are refused at once
        for number in list(self._asked):
            self._asked.pop(number).set_exception(_gone())

    def _hang_up(self, how: int) -> None:
        try:
            self._socket.shutdown(how)
        except OSError:  # the host closed first
            return

    def _note(self, answer: dict[str, object]) -> None:
        asked = self._asked.pop(answer.get("ask"), None)
        if asked is None:
            return
        if answer.get("ok") is True:
            asked.set_result(answer.get("value"))
        else:
            asked.set_exception(_to_error(answer.get("error")))


def _to_error(error: object) -> Exception:
    """The refusal of a question is typed, that of a message to the session is a text."""
    if not isinstance(error, dict):
        return ConnectionError(str(error))
    return handler.ToolError(
        str(error.get("type")),
        str(error.get("message")),
        retryable=error.get("retryable") is True,
        details=error.get("details") if isinstance(error.get("details"), dict) else None,
    )


def _gone() -> ConnectionError:
    return ConnectionError("the connection to the crib was closed")


def offer_imports(folder: str) -> None:
    """Let a handler import `toolcrib.handler` without an installed Toolcrib, and the shared folders beside its own."""
    package = type(sys)("toolcrib")
    package.__path__ = []
    sys.meta_path.insert(0, _Offer(handler))
    sys.meta_path += [_Offer(package), _Shared(os.path.dirname(folder))]  # noqa: PTH120 - see system
    sys.path_hooks.insert(0, _finder_in(folder))
    sys.path_importer_cache.clear()


def offer_stand_in() -> None:
    """Let a file whose environment has no Toolcrib import what it writes tools with: `tool`, `ToolError` and `Kind`."""
    package = type(sys)("toolcrib")
    package.__path__ = []
    vars(package).update(tool=_mark, ToolError=handler.ToolError, Kind=handler.ErrorType, handler=handler)
    # Last, so that an installed Toolcrib is found first.
    sys.meta_path += [_Offer(package), _Offer(handler)]


def _mark(function: Any = None, /, **options: object) -> Any:  # noqa: ARG001 - they were read before the file ran
    """What `@tool` does to a function: nothing."""
    return function if function is not None else _mark


def _finder_in(folder: str) -> Callable[[str], FileFinder]:
    """A path hook for the handler's folder and its shared folders only."""
    beginnings = (f"{folder}/", f"{os.path.dirname(folder)}/_")  # noqa: PTH120 - see system

    def find(path: str) -> FileFinder:
        if not f"{path}/".startswith(beginnings):
            raise ImportError(path)
        return FileFinder(path, (_Source, [".py"]))

    return find


class _Source(SourceFileLoader):
    """Load modules from source only: bytecode beside it was never checked."""

    def path_stats(self, path: object) -> Mapping[str, object]:
        """Raise, so that no bytecode is used."""
        raise OSError(path)


class _Offer:
    """Provide one loaded module."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        module = self._module
        if name != module.__name__:
            return None
        return ModuleSpec(name, self, is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]  # it loads

    def create_module(self, spec: object) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """A no-op: the module is initialized."""


class _Shared:
    """Find packages with a leading underscore in a folder that cannot be listed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        place = os.path.join(self._folder, name)  # noqa: PTH118 - see system
        if path is not None or not name.startswith("_") or not os.path.isdir(place):  # noqa: PTH112 - see system
            return None
        from importlib.util import spec_from_file_location

        start = os.path.join(place, "__init__.py")  # noqa: PTH118 - see system
        if os.path.isfile(start):  # noqa: PTH113 - see system
            return spec_from_file_location(name, start, loader=_Source(name, start), submodule_search_locations=[place])
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [place]
        return spec
