"""Call built packages from Python: their functions, and one background Crib per project, shared across threads."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from toolcrib.core.plugins import Plugins
from toolcrib.features.requests.built_package import DESCRIPTION_FILE
from toolcrib.features.requests.format import load_package, read_file
from toolcrib.infra.settings import find_project
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping

    from toolcrib.features.requests.built_package import BuiltPackage
    from toolcrib.model.result import Result


HINTS = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}

CALLER = "local"
# As much as the process of a tool can answer: a caller in Python gets all of it, and nothing is stored for later.
RESULT_BYTES = 8 * 1024 * 1024
CLOSING_SECONDS = 10.0


def open_package(file: str) -> Callable[..., Any]:
    """The function of the package whose `__init__.py` this is. It takes keywords; `function.call_async` does the same async.

    Raises ImportError if the package is not what was proved, or if the settings around it are not to be trusted; a call that
    fails raises ToolError, with what was achieved in its `value`.
    """
    folder = Path(file).absolute().parent
    try:
        package = load_package(folder, read_file(folder / DESCRIPTION_FILE))
        project = project_of(folder.parent)
    except ToolError as problem:
        raise ImportError(problem.message, name=folder.name, path=file) from None
    return _function(package, folder.parent, project)


class Record(dict[str, Any]):
    """A dict whose keys are attributes too; one that is called like a method of dict is only found by its key.

    It belongs to the caller: it can be changed by its keys, and is equal to the plain dict that it holds.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # Names with two underscores are looked up by Python itself.
        if name in self and not name.startswith("__"):
            return self[name]
        known = ", ".join(map(str, self.keys())) or "nothing"
        raise AttributeError(f"there is no {name!r} in the answer; it holds {known}", name=name, obj=self)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(key for key in self.keys() if key.isidentifier())]


class Answer(Record):
    """The whole answer. If exactly one output of the tool is a list, to iterate over the answer is to iterate over that."""

    # A name that no output has.
    __slots__ = ("_toolcrib_listed",)

    def __init__(self, values: Mapping[str, object] | None = None, listed: str = "") -> None:
        super().__init__(values or {})
        self._toolcrib_listed = listed

    def __iter__(self) -> Iterator[Any]:
        listed = self._toolcrib_listed
        return iter(self[listed]) if listed in self.keys() else super().__iter__()


def to_answer(value: object, output_schema: Mapping[str, object] | None) -> Any:
    """The value of a call as its caller reads it."""
    if not isinstance(value, dict):
        return _with_attributes(value)
    return Answer({key: _with_attributes(item) for key, item in value.items()}, _only_list(output_schema or {}))


def _function(package: BuiltPackage, tools: Path, project: Path) -> Callable[..., Any]:
    address = package.address(tools.name)
    signature = _signature_of(package)

    def refuse_positional(given: tuple[object, ...]) -> None:
        if given:
            raise TypeError(f"{package.function}() takes its arguments by name: {package.function}{signature}")

    def function(*positional: object, **arguments: object) -> Any:
        refuse_positional(positional)
        background = POOL.of(project)
        if background.is_here:
            raise RuntimeError(
                f"this code runs where the call would run; write: await {package.function}.call_async(…)"
            )
        pending = CancellableCall()
        try:
            result = background.call(address, arguments, pending).result()
        except BaseException:
            # The caller was interrupted, so the call is cancelled.
            background.cancel(pending)
            raise
        return _value(result, package)

    async def call_async(*positional: object, **arguments: object) -> Any:
        """Wait for the call without holding up the loop."""
        refuse_positional(positional)
        future = POOL.of(project).call(address, arguments, CancellableCall())
        return _value(await asyncio.wrap_future(future), package)

    _introduce(function, package, signature, f"{tools.name}.{package.name}")
    vars(function)["call_async"] = call_async
    return function


def _signature_of(package: BuiltPackage) -> inspect.Signature:
    """The keywords that the function takes; `...` stands for one that may be left out and has no default."""
    properties = package.parameters.get("properties")
    required = package.parameters.get("required")
    named: Mapping[str, object] = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else ()
    return inspect.Signature([_parameter(name, schema, is_needed=name in needed) for name, schema in named.items()])


def _parameter(name: str, schema: object, *, is_needed: bool) -> inspect.Parameter:
    facts = schema if isinstance(schema, dict) else {}
    absent = inspect.Parameter.empty if is_needed else ...
    hint = HINTS.get(facts.get("type", ""), Any) if isinstance(facts.get("type", ""), str) else Any
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=facts.get("default", absent), annotation=hint
    )


def _introduce(function: Callable[..., Any], package: BuiltPackage, signature: inspect.Signature, module: str) -> None:
    """Give the function the name, docstring and signature of the one that it calls."""
    facts = {"__name__": package.function, "__qualname__": package.function, "__module__": module}
    for name, fact in {**facts, "__doc__": package.description, "__signature__": signature}.items():
        setattr(function, name, fact)


def _value(result: Result, package: BuiltPackage) -> Any:
    if result.error is not None:
        _raise(result.error, to_answer(result.value, package.output_schema))
    return to_answer(result.value, package.output_schema)


def _raise(error: ToolError, value: object) -> NoReturn:
    """Raise the error with the partial value, as the caller reads it."""
    raise error.replace(value=value)


def _with_attributes(value: object) -> object:
    if isinstance(value, dict):
        return Record((key, _with_attributes(item)) for key, item in value.items())
    return [_with_attributes(item) for item in value] if isinstance(value, list) else value


def _only_list(schema: Mapping[str, object]) -> str:
    """The one output that is declared to be a list; empty if none is, or several are."""
    properties = schema.get("properties")
    named = properties.items() if isinstance(properties, dict) else ()
    lists = [name for name, output in named if isinstance(output, dict) and _is_list(output.get("type"))]
    return lists[0] if len(lists) == 1 else ""


def _is_list(declared: object) -> bool:
    return "array" in declared if isinstance(declared, list) else declared == "array"


def project_of(tools: Path) -> Path:
    """The project that a folder of tools belongs to; raises SettingsError where that must be said by its user."""

    def cure(trusted: Path, other: Path) -> str:
        return f"if you trust it, call the tool with Crib({str(trusted)!r}), else with Crib({str(other)!r})"

    return find_project(tools.parent, cure, Plugins().tables())


class CancellableCall:
    """Cancels a call at any moment, also before it begins.

    Both methods run on the loop of the background Crib, one after the other.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Result] | None = None
        self._is_off = False

    async def run(self, work: Coroutine[object, object, Result]) -> Result:
        """Run the call, unless it was cancelled before it began."""
        self._task = asyncio.current_task()
        if self._is_off:
            work.close()
            raise asyncio.CancelledError
        return await work

    def cancel(self) -> None:
        """Cancel the call; one that has ended stays as it is."""
        self._is_off = True
        if self._task is not None:
            self._task.cancel()


class PooledCrib(Protocol):
    """What the pool needs of a Crib."""

    def call(self, name: str, arguments: Mapping[str, object], /) -> Coroutine[object, object, Result]:
        """Call a tool."""

    async def close(self) -> None:
        """Close what was started."""


class BackgroundCrib:
    """An open Crib and the thread that its loop runs in."""

    def __init__(self, project: Path, open_crib: Callable[..., PooledCrib]) -> None:
        self._crib = open_crib(project, caller=CALLER, calls={"result_bytes": RESULT_BYTES})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"toolcrib {project.name}", daemon=True)
        self._thread.start()

    def call(self, name: str, arguments: Mapping[str, object], pending: CancellableCall) -> Future[Result]:
        """Begin a call."""
        return asyncio.run_coroutine_threadsafe(pending.run(self._crib.call(name, arguments)), self._loop)

    def cancel(self, pending: CancellableCall) -> None:
        """End a call, or keep it from beginning."""
        self._loop.call_soon_threadsafe(pending.cancel)

    @property
    def is_here(self) -> bool:
        """Whether this code runs on its loop, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Close the Crib, and end the thread."""
        # The interpreter may be about to end, when no thread can be started any more.
        self._loop.call_soon_threadsafe(self._loop.set_default_executor, _Inline())
        asyncio.run_coroutine_threadsafe(self._crib.close(), self._loop).result(CLOSING_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING_SECONDS)
        self._loop.close()


class CribPool:
    """Opens the Crib of each project on first use, and closes all of them when the program ends. Threads may share it.

    `open_crib` is the class Crib; the module that packages import sets it, because this one may not know it.
    """

    open_crib: Callable[..., PooledCrib]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cribs: dict[Path, BackgroundCrib] = {}
        self._left_behind: list[dict[Path, BackgroundCrib]] = []
        self._is_registered = False

    def of(self, project: Path) -> BackgroundCrib:
        """The Crib of a project."""
        background = self._cribs.get(project)
        if background is not None:
            return background
        with self._lock:
            self._register()
            if project not in self._cribs:
                self._cribs[project] = BackgroundCrib(project, self.open_crib)
            return self._cribs[project]

    def close(self) -> None:
        """Close every Crib; the next call opens another."""
        with self._lock:
            cribs, self._cribs = self._cribs, {}
        for background in cribs.values():
            background.close()

    def _register(self) -> None:
        if self._is_registered:
            return
        os.register_at_fork(after_in_child=self._leave)
        # What is registered first is called last: files that a Crib leaves to their finalizers must still be open then.
        weakref.finalize(self, int)
        atexit.register(self.close)
        self._is_registered = True

    def _leave(self) -> None:
        """A forked process has none of the threads: what is open belongs to the parent."""
        self._lock = threading.Lock()
        self._left_behind.append(self._cribs)
        self._cribs = {}


class _Inline(ThreadPoolExecutor):
    """Runs each call at once, in the thread that submits it."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **more))
        except BaseException as problem:  # noqa: BLE001 - the waiter gets it
            done.set_exception(problem)
        return done


POOL = CribPool()
