"""The Crib of each project whose packages were imported: one, on a loop of its own, for whoever calls from wherever."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.core.plugins import Plugins
from toolcrib.infra.settings import find_project

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from toolcrib.model.result import Result

CALLER = "local"
# What a process of a tool can answer at all: whoever calls from Python has room for it, and nothing is kept aside.
RESULT_BYTES = 8 * 1024 * 1024
CLOSING_SECONDS = 10.0


def project_of(tools: Path) -> Path:
    """The project that a folder of tools belongs to; raises SettingsError where that must be said by its user."""

    def cure(trusted: Path, other: Path) -> str:
        return f"if you trust it, call the tool with Crib({str(trusted)!r}), else with Crib({str(other)!r})"

    return find_project(tools.parent, cure, Plugins().tables())


class Wish:
    """What a caller holds before its call begins, so that an interruption at any moment finds something to call off.

    Both methods run on the loop of the room, one after the other.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Result] | None = None
        self._is_off = False

    async def fulfil(self, work: Coroutine[object, object, Result]) -> Result:
        """Do the work, unless it was called off before it began."""
        self._task = asyncio.current_task()
        if self._is_off:
            work.close()
            raise asyncio.CancelledError
        return await work

    def call_off(self) -> None:
        """Nobody waits for it any more; what has ended stays as it is."""
        self._is_off = True
        if self._task is not None:
            self._task.cancel()


class PooledCrib(Protocol):
    """What the pool needs of a Crib."""

    def call(self, name: str, arguments: Mapping[str, object], /) -> Coroutine[object, object, Result]:
        """Call a tool."""

    async def close(self) -> None:
        """Close what was started."""


class Room:
    """An open Crib and the thread that its loop runs in."""

    def __init__(self, project: Path, open_crib: Callable[..., PooledCrib]) -> None:
        self._crib = open_crib(project, caller=CALLER, calls={"result_bytes": RESULT_BYTES})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"toolcrib {project.name}", daemon=True)
        self._thread.start()

    def call(self, name: str, arguments: Mapping[str, object], wish: Wish) -> Future[Result]:
        """Begin a call."""
        return asyncio.run_coroutine_threadsafe(wish.fulfil(self._crib.call(name, arguments)), self._loop)

    def call_off(self, wish: Wish) -> None:
        """End a call, or keep it from beginning."""
        self._loop.call_soon_threadsafe(wish.call_off)

    @property
    def is_here(self) -> bool:
        """Whether this code runs on its loop, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End what was started, and write down what is owed."""
        # The interpreter may be about to end, when no thread can be started any more.
        self._loop.call_soon_threadsafe(self._loop.set_default_executor, _Inline())
        asyncio.run_coroutine_threadsafe(self._crib.close(), self._loop).result(CLOSING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING_SECONDS)
        self._loop.close()


class Rooms:
    """Opens each room when it is first needed, and closes all of them when the program ends. Threads may share it.

    `open_crib` is the class Crib; the module that packages import sets it, because this one may not know it.
    """

    open_crib: Callable[..., PooledCrib]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rooms: dict[Path, Room] = {}
        self._left_behind: list[dict[Path, Room]] = []
        self._is_registered = False

    def of(self, project: Path) -> Room:
        """The room of a project."""
        room = self._rooms.get(project)
        if room is not None:
            return room
        with self._lock:
            self._register()
            if project not in self._rooms:
                self._rooms[project] = Room(project, self.open_crib)
            return self._rooms[project]

    def close(self) -> None:
        """Close every room; the next call opens another."""
        with self._lock:
            rooms, self._rooms = self._rooms, {}
        for room in rooms.values():
            room.close()

    def _register(self) -> None:
        if self._is_registered:
            return
        os.register_at_fork(after_in_child=self._leave)
        # What is registered first is called last: files that a Crib leaves to their finalizers must still be open then.
        weakref.finalize(self, int)
        atexit.register(self.close)
        self._is_registered = True

    def _leave(self) -> None:
        """In a process that was forked no thread of a room goes on: what is open stays the parent's."""
        self._lock = threading.Lock()
        self._left_behind.append(self._rooms)
        self._rooms = {}


class _Inline(ThreadPoolExecutor):
    """Does at once what is handed to it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **more))
        except BaseException as problem:  # noqa: BLE001 - whoever waits for it gets it
            done.set_exception(problem)
        return done


ROOMS = Rooms()
