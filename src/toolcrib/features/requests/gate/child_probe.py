"""Inspect a process in which a candidate is imported. This text itself runs there, beside the candidate.

A candidate can deceive it; it cannot deceive the sandbox, whose observations are checked as well. Every import here is paid for
by each probe, file by file under observation, and is a module more that the candidate finds loaded.
"""

# ruff: noqa: PTH118, PTH119, PTH120 - pathlib would take longer than the rest of the probe

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import sys
import threading

TYPE_CHECKING = False  # typing would take as long as inspect
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Facts = dict[str, Any]

ORDER = json.loads("{}")  # the gate puts module, function, and the arguments of a call or null here
if ORDER.get("arguments") is None:
    import inspect  # only an import describes the function

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h: orphans become children of this process
FOLDER = os.path.dirname(__file__)
LETTERS = 500
MOST = 20


def probe() -> Facts:
    """Import the candidate, call it if arguments are given, and report what was found."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    before = _Before()
    try:
        module = _load(ORDER["module"])
    except BaseException as problem:  # noqa: BLE001 - a border to foreign code: any exception is reported
        return {"raised": _describe(problem)}
    function = getattr(module, ORDER["function"], None)
    if ORDER["arguments"] is not None:
        return _call(function)
    return {"left": before.find_left(), "function": _describe_function(function)}


def _load(name: str) -> Any:
    """Import the candidate's own file, even if a module of that name is loaded already."""
    spec: Any = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _call(function: Any) -> Facts:
    try:
        value = function(**ORDER["arguments"])
        if hasattr(value, "__await__"):
            value = _settle(value)
    except BaseException as problem:  # noqa: BLE001 - likewise
        return {"raised": _describe(problem)}
    return {"value": value, "left": ["a process"] if _has_children() else []}


def _settle(value: Any) -> object:
    import asyncio

    async def wait() -> object:
        return await value

    return asyncio.run(wait())


class _Before:
    """The state of the process before the import, to compare with."""

    def __init__(self) -> None:
        self._handlers = _handlers()
        self._builtins = dict(vars(builtins))
        self._threads = set(threading.enumerate())
        self._streams = sys.stdout, sys.stderr
        self._exits: list[str] = []
        register = atexit.register

        def note(function: Callable[..., Any], *arguments: Any, **more: Any) -> object:
            if _is_own(getattr(getattr(function, "__code__", None), "co_filename", "")):
                self._exits.append(getattr(function, "__qualname__", "?"))
            return register(function, *arguments, **more)

        atexit.register = note  # type: ignore[assignment]  # same signature

    def find_left(self) -> list[str]:
        """Describe what outlived the import."""
        threads = [thread for thread in threading.enumerate() if thread not in self._threads]
        found = [f"the thread {thread.name} running" for thread in threads]
        found += ["a process running"] if _has_children() else []
        found += [f"a handler of {signal.Signals(number).name}" for number in _changed(self._handlers, _handlers())]
        found += [f"another {name} among the builtins" for name in _changed(self._builtins, vars(builtins))]
        found += [f"{name} to be called at the exit" for name in self._exits]
        found += ["another sys.stdout or sys.stderr"] if self._streams != (sys.stdout, sys.stderr) else []
        found += ["a trace function"] if sys.gettrace() or sys.getprofile() else []
        return [text[:LETTERS] for text in found[:MOST]]


def _handlers() -> dict[int, object]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _changed(before: Mapping[Any, object], after: Mapping[Any, object]) -> list[Any]:
    return [name for name in after if before.get(name) is not after[name]]


def _has_children() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def _is_own(file: object) -> bool:
    """Whether it is a file of the package; this probe is in its folder too."""
    return isinstance(file, str) and file.startswith(f"{FOLDER}/")


def _describe_function(function: Any) -> Facts:
    if not callable(function):
        return {"kind": type(function).__name__}
    inner, parameters = function, None
    with contextlib.suppress(ValueError, TypeError):  # a cycle of wrappers, or no signature
        inner = inspect.unwrap(function)
        parameters = [_describe_parameter(known) for known in inspect.signature(function).parameters.values()]
    code = getattr(inner, "__code__", None)
    return {
        "kind": type(inner).__name__,
        "line": getattr(code, "co_firstlineno", 0),
        "file": os.path.basename(getattr(code, "co_filename", "")),
        "parameters": parameters,
    }


def _describe_parameter(known: inspect.Parameter) -> Facts:
    described: Facts = {"name": known.name, "kind": known.kind.name, "optional": known.default is not known.empty}
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        if described["optional"]:
            described["default"] = json.loads(json.dumps(known.default, allow_nan=False))
    return described


def _describe(problem: BaseException) -> Facts:
    places = [(file, line) for file, line in _places(problem) if file != __file__ and _is_own(file)]
    return {
        "type": type(problem).__name__,
        "message": str(problem)[:LETTERS],
        "place": f"{os.path.basename(places[-1][0])}:{places[-1][1]}" if places else "",
        "missing": str(problem.name) if isinstance(problem, ModuleNotFoundError) else "",
    }


def _places(problem: BaseException) -> Iterator[tuple[str, int]]:
    """The files and lines of the traceback."""
    trace = problem.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
