"""Run a Python file in the worker: execute the checked bytes by their convention, and report the result as JSON.

keywords    entry(…) with the arguments by their names; its value is the result
params      entry(arguments), or entry(arguments, project) if it takes two; its value is the result
argv        the file itself as __main__ with its arguments; only its output and exit code count
sink        the class `entry`, created with the arguments; events are written to it over the channel
object      the function or object that `binding` finds, as a framework would call it; its value is the result
handler     entry(args, context), which uses the channel while it runs; its value is the result
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import site
import sys
import threading
import time
import types

from toolcrib.infra.channel import MAX_NAMES, is_harmless
from toolcrib.infra.sandbox.child import framework_object, handler_context, neighbours, script_channel
from toolcrib.infra.sandbox.child.call_arguments import (
    ArgumentsError,
    LoadedModule,
    Signature,
    call_by_name,
    call_with_params,
)
from toolcrib.values import MAX_ITEMS, ConversionError, to_json

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, NoReturn

MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACEBACK_CHARACTERS = 20_000

_FAILED = 1
_MAX_CHAIN = 20
# Conventions that use the channel for something other than calls.
_TALKERS = ("sink", "handler")
# Exceptions that are raised to tell a model something, by the names of their classes: ours, LangChain's, pydantic-ai's.
_TOLD = frozenset({"ToolError", "ToolException", "ModelRetry"})
_FACTS = ("kind", "retryable", "partial_side_effects", "details", "value")


def run(job: dict[str, Any], code: bytes, answer: Callable[[bytes], None]) -> NoReturn:
    """Run the file, report once, and exit as an interpreter would."""
    worker = os.getpid()
    _prepare(job)
    if job["convention"] == "argv":
        _end(_run_as_main(job, code))
    text, exit_code = _answer(job, code)
    if os.getpid() == worker:  # a process forked by the script returns here too
        answer(text.encode())
    _end(exit_code)


def _answer(job: dict[str, Any], code: bytes) -> tuple[str, int]:
    """The value or the error as JSON, and the exit code."""
    try:
        value = to_json(_call(job, code))
    except BaseException as problem:  # noqa: BLE001 - a border to foreign code: any exception is reported
        known = {ConversionError: {"in_result": True}, ArgumentsError: {"in_arguments": True}}
        if job.get("loading"):
            known[type(problem)] = {"in_loading": True}
        return json.dumps({"error": {**_describe(problem, job["path"], code), **known.get(type(problem), {})}}), _FAILED
    try:
        return _to_text({"value": value}), 0
    except BaseException as problem:  # noqa: BLE001 - likewise: what was returned may be anything
        return json.dumps({"error": {**_describe(problem, job["path"], code), "in_result": True}}), _FAILED


def rehearse() -> None:
    """Do in advance what every file will do: a page shared with the launcher is copied when it is first written."""
    space: dict[str, Any] = {}
    code = b"import os, sys\n\ndef main(**arguments):\n    return arguments\n"
    exec(compile(code, "rehearsal", "exec", dont_inherit=True), space)  # noqa: S102 - our own code
    json.loads(_to_text({"value": to_json(space["main"](text="rehearsal", number=1.5, items=[None, True]))}))
    script_channel.make_module(script_channel.open_caller(None))


def _end(exit_code: int) -> NoReturn:
    """Wait for threads, run the exit hooks, flush the streams, and exit.

    The full finalization of the interpreter would take longer than the rest of a call.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter calls at exit
        atexit._run_exitfuncs()  # noqa: SLF001 - likewise
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(exit_code)


def _prepare(job: dict[str, Any]) -> None:
    """Make this process look like a fresh interpreter started on the file."""
    # The script may import the real Toolcrib; the launcher has loaded only a part of it under that name.
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolcrib"]:
        del sys.modules[name]
    os.environ.clear()
    os.environ.update(job["environment"])
    if "TZ" in os.environ:
        time.tzset()
    caller = script_channel.open_caller(_channel(job) if job["convention"] not in _TALKERS else None)
    sys.modules["rye"] = script_channel.make_module(caller)
    if job["streams"] and job["convention"] not in _TALKERS:
        job["chunk"], job["end_chunks"] = caller.chunk, caller.end_chunks
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a file, which the worker opened
    if job["convention"] == "handler":
        handler_context.offer_imports(job["cwd"])
    elif "python" in job:  # an environment of its own, which has no Toolcrib
        handler_context.offer_stand_in()
    sys.path += job["python_path"]
    neighbours.Neighbours(job["cwd"], job["policy"]["hidden"]).install()
    sys.argv[:] = [job["path"], *job["argv_words"]]
    if "python" in job:
        sys.executable = job["python"]["executable"]
        sys.prefix = sys.exec_prefix = job["python"]["prefix"]
    site.setquit()
    site.sethelper()


def _channel(job: dict[str, Any]) -> int | None:
    return int(os.environ[script_channel.CHANNEL_VARIABLE]) if job["channel"] else None


def _load(
    job: dict[str, Any], code: bytes, name: str, framework: framework_object.FrameworkObject | None = None
) -> Any:
    """Load the file as a module of this name."""
    module = type(sys)(name)
    module.__file__ = job["path"]
    # Not over another module: a tool may be called json.
    if name == "__main__" or not (name in sys.modules or neighbours.is_installed(name)):
        sys.modules[name] = module
    source: Any = code
    if framework is not None:
        source = framework.parse(code, job["path"])
        module.__dict__.update(framework.names)
    exec(compile(source, job["path"], "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - running the file is the job
    return module


def _call(job: dict[str, Any], code: bytes) -> object:
    if job["convention"] == "object":
        return _call_object(job, code)
    entry, arguments = job["entry"], job["arguments"]
    module = _load(job, code, job["name"])
    function = getattr(module, entry, None)
    if job["convention"] == "sink":
        _fill(function, job)
        return None
    if not callable(function):
        raise LookupError(f"there is no function named {entry}; write def {entry}(...)")
    if job["convention"] == "handler":
        return _converse(function, LoadedModule(module, code), job)
    if job["convention"] == "params":
        return _settle(call_with_params(function, arguments, LoadedModule(module, code), job), job)
    return _settle(call_by_name(function, arguments, LoadedModule(module, code), job), job)


def _call_object(job: dict[str, Any], code: bytes) -> object:
    """Call the function of another framework."""
    framework, arguments = framework_object.FrameworkObject(job["binding"]), job["arguments"]
    job["loading"] = True
    module = _load(job, code, job["name"], framework)
    function = framework.function(module)
    job["loading"] = False
    if "tool" in job["binding"]:
        # One function of a server answers the calls of all its tools.
        return framework.result(_settle(function(job["binding"]["tool"], arguments), job))
    source, given = LoadedModule(module, code), framework.given()
    if job["binding"].get("whole"):
        return framework.result(_settle(call_with_params(function, arguments, source, job), job))
    try:
        fields = framework.fields(module, arguments)
    except ValueError as problem:
        raise ArgumentsError(str(problem)) from None
    if fields is not None:
        signature = Signature(function, job["entry"], job["path"])
        taken = {*signature.positional, *signature.keyword_only, *arguments}
        given |= {name: value for name, value in fields.items() if signature.keywords or name in taken}
        arguments = {}
    return framework.result(_settle(call_by_name(function, arguments, source, job, given), job))


def _converse(function: Callable[..., object], source: LoadedModule, job: dict[str, Any]) -> object:
    channel = _channel(job)
    if channel is None:
        raise LookupError(f"{job['entry']} needs a channel, and this call has none")
    session = handler_context.HandlerSession(job["arguments"]["context"], channel)
    if job["streams"]:
        job["chunk"] = session.chunk
    with session as context:
        answer = call_with_params(function, job["arguments"]["args"], source, job, context)
        settled = to_json(_settle(answer, job))
        # The response of a handler that yields is what it yields.
        return {"ok": True, "data": settled} if _yields(answer) else settled


def _fill(kind: Any, job: dict[str, Any]) -> None:
    channel = _channel(job)
    if not isinstance(kind, type) or not callable(getattr(kind, "write", None)):
        raise LookupError(
            f"there is no class named {job['entry']} with a method write; write class {job['entry']}: ..."
        )
    if channel is None:
        raise LookupError(f"{job['entry']} needs a channel, and this call has none")
    script_channel.serve(kind(**job["arguments"]), channel)


def _run_as_main(job: dict[str, Any], code: bytes) -> int:
    """Run the file as an interpreter would; returns its exit code."""
    try:
        _load(job, code, "__main__")
    except SystemExit as ending:
        return _exit_code(ending)
    except BaseException as problem:  # noqa: BLE001 - a border to foreign code: any exception is printed
        _show(problem, job["path"], code)
        return _FAILED
    return 0


def _exit_code(ending: SystemExit) -> int:
    """The exit code of an interpreter; a message is printed to stderr."""
    if ending.code is None or isinstance(ending.code, int):
        return (ending.code or 0) & 0xFF
    print(_text_of(ending), file=sys.stderr)  # noqa: T201 - as an interpreter does
    return _FAILED


def _show(problem: BaseException, path: str, code: bytes) -> None:
    if sys.excepthook is sys.__excepthook__:  # the default hook would read the lines from the file
        print(_trace(problem, path, code), end="", file=sys.stderr)  # noqa: T201 - as an interpreter does
        return
    own = _own_part(problem, path)
    sys.excepthook(type(problem), problem.with_traceback(own), own)


def _settle(value: Any, job: dict[str, Any]) -> object:
    """The value, awaited if necessary; the items of a generator are collected, and sent to a client that reads along."""
    if not hasattr(value, "__await__") and not _yields(value):
        return value
    items = _Items(job)
    if isinstance(value, types.GeneratorType):
        for item in value:
            items.add(item)
        return items.finish()
    import asyncio

    async def wait() -> object:
        if hasattr(value, "__await__"):
            return await value
        async for item in value:
            items.add(item)
        return items.finish()

    return asyncio.run(wait())


def _yields(value: object) -> bool:
    return isinstance(value, types.GeneratorType) or hasattr(type(value), "__anext__")


class _Items:
    """What a generator has yielded so far, as JSON."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._made: list[object] = []
        self._joins = job["joins_text"]
        self._send = job.get("chunk")
        self._end = job.get("end_chunks")

    def add(self, item: object) -> None:
        """Keep an item, and send it."""
        if len(self._made) == MAX_ITEMS:
            raise ConversionError(f"a generator of more than {MAX_ITEMS:,} items; return fewer")
        try:
            self._made.append(to_json(item))
        except ConversionError as problem:
            raise problem.at(len(self._made)) from None
        if self._send is not None:
            self._send(self._made[-1])

    def finish(self) -> object:
        """The list of the items; their text joined, where the tool promises a text and yielded nothing else."""
        if self._end is not None:
            self._end()
        if self._joins and all(isinstance(item, str) for item in self._made):
            return "".join(map(str, self._made))
        return self._made


def _to_text(document: object) -> str:
    """The document as strict JSON: no NaN, no lone surrogates."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    text.encode()
    return text


def _describe(problem: BaseException, path: str, code: bytes) -> dict[str, object]:
    """Describe an exception in values that can be sent to the host."""
    described: dict[str, object] = {
        "type": type(problem).__qualname__,
        "message": _text_of(problem),
        "traceback": _trace(problem, path, code)[-MAX_TRACEBACK_CHARACTERS:],
    }
    if isinstance(problem, SystemExit):
        described["exit"] = _exit_code(problem)
        described["said"] = described["message"] if isinstance(problem.code, str) else ""
    elif _is_raised_by(problem, os.path.dirname(path)):  # noqa: PTH120 - see system
        described["said"] = described["message"]
    if isinstance(problem, MemoryError):
        described["exceeded"] = "mem"
    if isinstance(problem, ModuleNotFoundError):
        described["missing"] = _readable(str(problem.name))
    if isinstance(problem, KeyError) and _is_of_environment(problem):
        described["variable"] = _readable(str(problem.args[0]))
    if any(ancestor.__name__ in _TOLD for ancestor in type(problem).__mro__):
        described["tool_error"] = _facts_of(problem)
    return {**described, **_refusal(problem)}


def _is_of_environment(problem: KeyError) -> bool:
    """Whether `os.environ[name]` raised it."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code is type(os.environ).__getitem__.__code__


def _is_raised_by(problem: BaseException, folder: str) -> bool:
    """Whether code in this folder made the exception: its text is what the author says to the caller.

    That is a `raise` statement, or a wrong value that a function of Python itself refuses there. The text of any other
    exception is the library's or the system's and may hold anything.
    """
    import opcode

    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or (isinstance(problem, OSError) and problem.errno is not None):
        return False
    code = trace.tb_frame.f_code
    is_ours = code.co_filename.startswith(f"{folder}/") and "site-packages" not in code.co_filename
    is_refused = isinstance(problem, (ValueError, TypeError, ArithmeticError))
    return is_ours and (is_refused or code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"])


def _refusal(problem: BaseException) -> dict[str, object]:
    """The system error behind the exception, if any: errno, path, and the module that raised it."""
    try:
        origin = _origin(problem)
        if origin is None:
            return {}
        path = origin.filename if isinstance(origin.filename, str) else ""
        return {"errno": origin.errno, "path": _readable(path), "module": _module_of(origin.__traceback__)}
    except Exception:  # noqa: BLE001 - foreign code: an exception may fail to say where it comes from
        return {}


def _origin(problem: BaseException | None) -> OSError | None:
    """The OSError that started the exception chain."""
    for _ in range(_MAX_CHAIN):
        if problem is None or (isinstance(problem, OSError) and isinstance(problem.errno, int)):
            return problem
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
    return None


def _module_of(trace: TracebackType | None) -> str:
    """The module in which an exception was raised."""
    name = ""
    while trace is not None:
        name, trace = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_next
    return _readable(name)


def _text_of(problem: BaseException) -> str:
    try:
        return _readable(str(problem))
    except Exception:  # noqa: BLE001 - foreign code: an exception may fail to say what it is
        return "(it has no readable message)"


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:MAX_MESSAGE_CHARACTERS]


def _facts_of(problem: BaseException) -> dict[str, object]:
    """The attributes of a ToolError, or of a similar class; those without a JSON form are left out."""
    facts: dict[str, object] = {}
    for name in _FACTS:
        try:
            text = _to_text(to_json(getattr(problem, name)))
        except Exception:  # noqa: BLE001, S112 - foreign code: an attribute may be missing, computed or anything
            continue
        facts[name] = json.loads(text)
    return facts


def _trace(problem: BaseException, path: str, code: bytes) -> str:
    import traceback

    _know_lines(path, code)
    try:
        text = "".join(traceback.format_exception(type(problem), problem, _own_part(problem, path)))
    except Exception:  # noqa: BLE001 - foreign code: an exception may fail to be printed
        return ""
    return text.encode("utf-8", "replace").decode()


def _know_lines(path: str, code: bytes) -> None:
    """Show the lines that ran, even if the file has changed since."""
    import linecache

    lines = code.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[path] = (len(code), None, lines, path)


def _own_part(problem: BaseException, path: str) -> TracebackType | None:
    """The traceback starting at the script's first line."""
    own = problem.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename != path:
        own = own.tb_next
    return own


# Preloading: the launcher imports modules of the standard library before it forks, so that later calls find them loaded.

MAX_TRIED = 4_000  # more than the standard library has: beyond it, files only invent names

_tried: set[str] = set()


def preload(order: bytes) -> bool:
    """Import the modules of the order that were not requested before; returns whether there were any."""
    names = [name for name in order[1:].decode("ascii", "replace").split() if name not in _tried]
    if not names or len(_tried) >= MAX_TRIED:
        return False
    for name in names[:MAX_NAMES]:
        _tried.add(name)
        if is_harmless(name):
            _import(name)
    gc.freeze()
    return True


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a module may be missing on this system; the script's own import reports it
        return
