"""A handler in the worker: the context that it is given, whose words go over the channel, and what it may import besides."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from importlib.machinery import (  # not where they are used: whatever is imported there is looked for there
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from types import MappingProxyType

from toolcrib import handler
from toolcrib.infra.channel import LineCutter, to_line

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import Future
    from types import ModuleType, TracebackType
    from typing import Any

_READ_BYTES = 65536
_MAX_EVENT_LETTERS = 200


class Facts(dict[str, "Any"]):
    """Facts by name, as items and as attributes, in the spelling of the document (`clientId`) and in Python's (`client_id`)."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        first, *rest = name.split("_")
        for spelling in (name, first + "".join(map(str.capitalize, rest))):
            if spelling in self:
                return self[spelling]
        raise AttributeError(f"there is no {name}; there are {', '.join(self)}")


class Conversation:
    """What a handler and the host say to each other while it runs: `with` this, the handler gets its context.

    What was said is heard before the process ends. A message that nobody awaited and that did not arrive is an error of
    the handler's.
    """

    def __init__(self, facts: dict[str, Any], channel: int) -> None:
        self._facts = facts
        self._line = _Line(channel)

    def __enter__(self) -> Facts:
        facts, line = self._facts, self._line
        session = Facts({**facts["session"], "state": MappingProxyType(facts["session"]["state"])})
        parts = {"messaging": _Messaging(line), "voice": _Voice(facts["voice"]), "audit": _Audit(line)}
        return Facts({"clientId": facts["clientId"], "tool": Facts(facts["tool"]), "session": session, **parts})

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
        """Send a message; awaiting it raises ConnectionError if it did not arrive."""
        sending = self._line.ask({"do": "send", "message": message})

        async def send() -> None:
            await self._line.hear(sending)

        return send()


class _Voice:
    """Whether the client listens or reads."""

    def __init__(self, is_active: bool) -> None:  # noqa: FBT001 - it is all there is to say
        self._is_active = is_active

    def is_active(self) -> bool:
        """Whether the conversation is spoken."""
        return self._is_active

    isActive = is_active  # noqa: N815 - as the document spells it


class _Audit:
    """Entries in the journal."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def log(self, event: object, data: object = None) -> None:
        """Write down that something happened."""
        if not isinstance(event, str) or not 0 < len(event) <= _MAX_EVENT_LETTERS:
            raise ValueError(f"the event of an audit entry is a text of 1 to {_MAX_EVENT_LETTERS} letters")
        if data is not None and not isinstance(data, dict):
            raise TypeError(f"the data of the audit entry {event!r} is a {type(data).__name__}; write {{...}}")
        self._line.tell({"do": "audit", "event": event, "data": data or {}})


class _Line:
    """The line to the host. Answers are heard by a thread, so that any event loop, and none, can wait for them."""

    def __init__(self, channel: int) -> None:
        self._socket = socket.socket(fileno=channel)
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._asked: dict[object, Future[None]] = {}
        self._unheard: dict[int, Future[None]] = {}
        self._listener: threading.Thread | None = None
        self._was_used = self._gave_up = False

    def tell(self, message: dict[str, object]) -> None:
        """Say something that gets no answer."""
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
        """Say something that gets an answer, which is heard under the number."""
        from concurrent.futures import Future

        number, answer = next(self._numbers), Future[None]()
        answer.set_running_or_notify_cancel()  # whoever stops waiting for it does not keep it from coming
        self._asked[number] = answer
        try:
            self.tell({"ask": number, **message})
        except BaseException:
            self._asked.pop(number, None)
            raise
        self._unheard[number] = answer
        self._listen()
        return number

    async def hear(self, number: int) -> None:
        """Wait for an answer; raises ConnectionError if it is a refusal."""
        import asyncio

        try:
            await asyncio.wrap_future(self._unheard.pop(number))
        except asyncio.CancelledError:
            self._gave_up = True
            raise

    def finish(self) -> Exception | None:
        """Wait until the host has heard everything; the first refusal that nobody heard.

        Behind a message that the handler itself gave up waiting for, there is nothing to wait for.
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
        """Hear answers until the host has hung up."""
        cutter = LineCutter()
        try:
            while data := self._socket.recv(_READ_BYTES):
                cutter.feed(data)
                while (line := cutter.next()) is not None:
                    self._note(json.loads(line))
        except (OSError, ValueError):  # the handler itself may have taken some of what was meant for us
            pass
        self._hang_up(socket.SHUT_RDWR)  # first, so that whoever asks from now on is refused at once
        for number in list(self._asked):
            self._asked.pop(number).set_exception(_gone())

    def _hang_up(self, how: int) -> None:
        try:
            self._socket.shutdown(how)
        except OSError:  # the host was faster
            return

    def _note(self, answer: dict[str, object]) -> None:
        asked = self._asked.pop(answer.get("ask"), None)
        if asked is None:
            return
        if answer.get("ok") is True:
            asked.set_result(None)
        else:
            asked.set_exception(ConnectionError(str(answer.get("error"))))


def _gone() -> ConnectionError:
    return ConnectionError("the crib does not answer any more")


def offer_imports(folder: str) -> None:
    """Let a handler import `toolcrib.handler`, wherever Toolcrib is installed, and the shared folders beside its own."""
    package = type(sys)("toolcrib")
    package.__path__ = []
    sys.meta_path.insert(0, _Offer(handler))
    sys.meta_path += [_Offer(package), _Shared(os.path.dirname(folder))]  # noqa: PTH120 - see system
    sys.path_hooks.insert(0, _finder_in(folder))
    sys.path_importer_cache.clear()


def _finder_in(folder: str) -> Callable[[str], FileFinder]:
    """What finds modules in the folder of a handler and in those that it shares, and nowhere else."""
    beginnings = (f"{folder}/", f"{os.path.dirname(folder)}/_")  # noqa: PTH120 - see system

    def find(path: str) -> FileFinder:
        if not f"{path}/".startswith(beginnings):
            raise ImportError(path)
        return FileFinder(path, (_Source, [".py"]))

    return find


class _Source(SourceFileLoader):
    """Loads a file from its text: bytecode that lies beside it was never checked."""

    def path_stats(self, path: object) -> Mapping[str, object]:
        """Say nothing of the file's age, without which no bytecode counts."""
        raise OSError(path)


class _Offer:
    """Hands out one module that is there already."""

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
        """It has run."""


class _Shared:
    """Finds the packages in a folder whose names begin with an underscore; the folder itself cannot be listed."""

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
