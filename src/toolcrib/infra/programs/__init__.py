"""Run a job of a tool in its slot, and turn its outcome into a value or an error with our own message.

The message of an exception may contain anything, even secrets: it is logged, and the caller gets a message written
here, or the text that the file itself raised. Files that changed after they were checked are refused before a process would read them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import signal
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_beginning
from toolcrib.infra.sandbox.jobs import PROGRAMS, READ, WRITE, explain_start, has_network
from toolcrib.infra.settings import DATA_FOLDER, WORKSPACE
from toolcrib.lib.documents import read_json
from toolcrib.lib.names import is_foreign
from toolcrib.lib.protected_names import judge
from toolcrib.model.errors import NO_CURE, READ_THE_LOG, Cure, Kind, ToolError, cure_of
from toolcrib.model.result import Outcome
from toolcrib.model.tool import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from typing import Any

    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, Job, PythonFile
    from toolcrib.infra.secrets.secret import Masking
    from toolcrib.model.tool import Script, Tool

    Described = Mapping[str, object]


logger = logging.getLogger("toolcrib.runners")

MAX_RESULT_BYTES = 8 * 1024 * 1024
PRINTED_TAIL = 2_000
# A protected path was replaced while the job ran, for example by an editor that saved the settings.
ISOLATION = "isolation"
LIMITS = {
    "mem": "more memory than it may (setting sandbox.memory_mb)",
    "pids": "more processes than it may (setting sandbox.processes)",
    "disk": "more disk than it may (setting sandbox.disk_mb)",
}
# Modules that a later version of their package dropped, with the versions that have them.
PINS = {"mcp.server.fastmcp": "mcp<2"}
ENVELOPE = frozenset({"result", "success", "error"})
MAX_MESSAGE_LETTERS = 2_000
MAX_SAID_LETTERS = 500
FULL = frozenset({errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
DENIED = frozenset({errno.EPERM, errno.EACCES, errno.EROFS})
NAME_LETTERS = 200

_MODULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
# Kinds that only the platform may report: confirmation, grants, switches, overload.
PLATFORM_KINDS = frozenset(
    (
        *(Kind.BLOCKED, Kind.CAPABILITY_MISSING, Kind.CONFIRMATION_REQUIRED, Kind.DISABLED, Kind.MODE_RESTRICTED),
        *(Kind.BUDGET_EXCEEDED, Kind.SANDBOX_UNAVAILABLE, Kind.OVERLOADED, Kind.CANCELLED, Kind.LOOP_DETECTED),
        *(Kind.EXECUTOR_NOT_FOUND, Kind.CIRCULAR_DEPENDENCY, Kind.CHAIN_TOO_DEEP, Kind.OUTPUT_INVALID),
    )
)
_parent_slot: ContextVar[ParentSlot | None] = ContextVar("the slot of the script that makes this call", default=None)


class ParentSlot:
    """The sandbox slot of a running script, which its nested jobs use one at a time.

    A nested job that waits for its own slot while its script holds one could deadlock. One at a time, because a script
    that calls itself several times, ten deep, would otherwise overload the machine.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()

    def lend_in_this_task(self) -> None:
        """Let the jobs that this task starts use the slot."""
        _parent_slot.set(self)


@asynccontextmanager
async def lent_slot() -> AsyncIterator[bool]:
    """Use the slot of the calling script, one nested call at a time; False if no script is calling."""
    slot = _parent_slot.get()
    if slot is None or slot.loop is not asyncio.get_running_loop():
        yield False
        return
    async with slot.lock:
        yield True


async def run_in_slot(sandbox: Sandbox, job: Job, **how: Any) -> CompletedJob:
    """Run a job; a nested one runs in the slot of its script."""
    async with lent_slot() as nested:
        return await sandbox.run(job, nested=nested, **how)


def to_outcome(ended: CompletedJob, meta: dict[str, object], read: Callable[[], object]) -> Outcome:
    """The value that `read` returns, or the error that it raises, with output and observed effects."""
    for stream, printed in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        if printed:
            meta[stream] = tail_of(printed)
    meta |= describe_effects(ended)
    try:
        value = read()
    except ToolError as error:
        return Outcome(value=error.value, error=error, meta=meta)
    said = str(meta.get("stdout", "")).rstrip("\n")
    if said and isinstance(value, str) and value.endswith(said):
        del meta["stdout"]  # it is the value
    return Outcome(value=value, meta=meta)


def describe_effects(ended: CompletedJob) -> dict[str, object]:
    """The observed effects of a job for `meta`; empty if it was not observed."""
    effects = [{"act": effect.act, "what": effect.what, "denied": effect.denied} for effect in ended.effects]
    return {"effects": effects} if effects else {}


def returned_value(
    tool: Tool, job: PythonFile, ended: CompletedJob, seconds: float, masking: Masking | None = None
) -> object:
    """The return value of the entry function; raises ToolError if it has none."""
    answer = read_answer(tool, job, ended, seconds)
    if "value" in answer:
        return answer["value"]
    raise described_error(tool, job, answer, masking)


def read_answer(tool: Tool, job: PythonFile, ended: CompletedJob, seconds: float) -> Mapping[str, object]:
    """The answer of the script, a `value` or an `error`; raises ToolError if there is none."""
    refuse_early_end(tool.name, ended, seconds)
    if ended.result_too_long:
        message = f"{tool.name} returned more than {MAX_RESULT_BYTES} bytes; return less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    if ended.result is not None:
        return _read(tool.name, ended.result)
    cure = report_crash(tool, ended) if has_crashed(ended) else cure_of(f"return a value from {job.entry}")
    message = f"{tool.name} {describe_end(ended)} before it returned a result"
    raise failure(tool, message, cure=cure, details=exit_details(ended))


def described_error(
    tool: Tool, job: PythonFile, answer: Mapping[str, object], masking: Masking | None = None
) -> ToolError:
    """The error of an answer without a value; what is masked is not in the log either."""
    described = answer.get("error") if masking is None else masking.hide_in(answer.get("error"))
    if not isinstance(described, dict):
        return _unreadable(tool.name, "it holds neither a value nor an error")
    return to_error(tool, job, described)


def open_envelope(tool: Tool, script: Script, value: object) -> object:
    """The result inside `{"result": …, "success": …, "error": …}`; any other value is returned unchanged.

    Raises ToolError, with the partial result, if the envelope reports a failure.
    """
    if (
        not script.enveloped
        or not isinstance(value, dict)
        or value.keys() != ENVELOPE
        or not isinstance(value["success"], bool)
    ):
        return value
    if value["success"]:
        return value["result"]
    said = value["error"] if isinstance(value["error"], str) else ""
    message = said[:MAX_MESSAGE_LETTERS] or f"{tool.name} failed and does not say why; have it say so in error"
    raise ToolError(Kind.PERMANENT, message, partial_side_effects=True, value=value["result"])


def to_error(tool: Tool, job: PythonFile, described: Described) -> ToolError:
    """The error of a script's answer, its own ToolError or one of ours, with the traceback for the journal."""
    error = _error_of(tool, job, described)
    error.trace = str(described.get("traceback") or "")
    return error


def _error_of(tool: Tool, job: PythonFile, described: Described) -> ToolError:
    facts = described.get("tool_error")
    if isinstance(facts, dict):
        return _own_error(str(described.get("message")), facts)
    if "in_arguments" in described:
        return ToolError(Kind.VALIDATION, f"{tool.name}: {described.get('message')}")
    logger.error("%s failed unexpectedly\n%s", tool.name, described.get("traceback"))
    known = (
        _too_much(tool, job, described)
        or _no_module(tool, described, job.policy.hidden)
        or _denied(tool, job, described)
    )
    known = (
        known or _no_variable(tool, job, described) or _no_file(tool, described) or _unloadable(tool, job, described)
    )
    if known is not None:
        return known
    if "in_result" in described:
        message = f"{tool.name} returned what has no JSON form: {described.get('message')}"
        return ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)
    cure = NO_CURE if "exit" in described or described.get("said") else READ_THE_LOG
    return failure(tool, f"{tool.name} {_describe_failure(job, described)}", cure=cure)


def _describe_failure(job: PythonFile, described: Described) -> str:
    """How the file failed, as the rest of a sentence, with what its author says about it."""
    said = str(described.get("said") or "").strip()[:MAX_SAID_LETTERS]
    if "exit" in described:
        return f"ended itself with exit code {described['exit']}" + (
            f": {said}" if said else f"; return a value from {job.entry}"
        )
    if said:
        return f"failed ({described.get('type')}): {said}"
    return f"failed unexpectedly ({described.get('type')})"


def failure(
    tool: Tool,
    reason: str,
    kind: Kind = Kind.INTERNAL,
    *,
    cure: Cure = NO_CURE,
    details: Mapping[str, object] | None = None,
) -> ToolError:
    """A failure of the tool; it is retryable only if its author declares that."""
    again = tool.limits.retry is not None
    return ToolError(
        Kind.TRANSIENT if again else kind,
        reason,
        cure=cure,
        retryable=again,
        partial_side_effects=True,
        details=details,
    )


# A fault of the program's own code; any other signal came from outside of it.
CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
)


def refuse_early_end(name: str, ended: CompletedJob, seconds: float) -> None:
    """Raise ToolError for a job that never started, or was killed for time or resources."""
    if ended.cannot_start:
        raise ToolError(Kind.INTERNAL, f"{name} could not be started: {explain_start(ended.cannot_start)}")
    if ended.timed_out:
        message = f"{name} ran longer than {show_seconds(seconds)}; its processes were killed"
        raise ToolError(Kind.TIMEOUT, message, partial_side_effects=True)
    if ended.exceeded == ISOLATION:
        message = f"a protected path changed while {name} ran; its processes were killed; check what is there now, and call again"
        raise ToolError(
            Kind.TRANSIENT, message, retryable=True, partial_side_effects=True, details={"limit": ISOLATION}
        )
    if ended.exceeded:
        message = f"{name} used {LIMITS.get(ended.exceeded, ended.exceeded)}; its processes were killed"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True, details={"limit": ended.exceeded})


def tail_of(printed: bytes) -> str:
    """The end of the output, as text."""
    return printed.decode("utf-8", "replace")[-PRINTED_TAIL:]


def show_seconds(seconds: float) -> str:
    """A time limit in words, rounded."""
    return f"{round(seconds, 1 if seconds >= 1 else 2):g} s"


def describe_end(ended: CompletedJob) -> str:
    """How the process ended, as the rest of a sentence."""
    if has_crashed(ended) and ended.signal is not None:
        return f"crashed ({_name_signal(ended.signal)})"
    if ended.signal is not None:
        return f"was ended by {_name_signal(ended.signal)}"
    return "was killed" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"


def has_crashed(ended: CompletedJob) -> bool:
    """Whether the program failed by a fault of its own code, and not because it was killed."""
    return ended.signal in CRASHES


def report_crash(tool: Tool, ended: CompletedJob) -> Cure:
    """Log the crash of a program, whose details the caller does not get; returns where to read its output."""
    logger.warning("%s %s", tool.name, describe_end(ended))
    return Cure(f"see what it wrote to stderr with: crib call {tool.name} --verbose")


def cure_of_refusal(ended: CompletedJob) -> Cure:
    """How to open the protected paths that a program was not allowed to change; NO_CURE if there was none, or it did not mind.

    `git status` tries to write its index and goes on without: opening it would not help where another command failed.
    """
    if not ended.refused or b"not permitted" not in (ended.stderr + ended.stdout).lower():
        return NO_CURE
    what = f"no tool may change {', '.join(repr(path[:NAME_LETTERS]) for path in ended.refused)}"
    if any(map(_is_own_data, ended.refused)):
        return cure_of(what)
    return Cure(f"{what}, unless workspace.open in toolcrib.toml opens it", f"{what}; ask the operator to open it")


def _is_own_data(path: str) -> bool:
    """Whether the path from the workspace is our own data, which no setting opens."""
    return path.split("/", 1)[0] == DATA_FOLDER


def exit_details(ended: CompletedJob) -> dict[str, object]:
    """The exit code, if there is one."""
    return {} if ended.exit_code is None else {"exitCode": ended.exit_code}


def _read(name: str, result: bytes) -> Mapping[str, object]:
    """The answer of the child, which is untrusted: the script can write to its result pipe."""
    try:
        answer = read_json(result, place="the answer", max_bytes=MAX_RESULT_BYTES)
    except ToolError as problem:
        raise _unreadable(name, problem.message) from problem
    if not isinstance(answer, dict) or len(answer) != 1:
        raise _unreadable(name, "it is not one value")
    return answer


def _unreadable(name: str, reason: str) -> ToolError:
    message = f"{name} gave an answer that cannot be read: {reason}"
    return ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _own_error(message: str, facts: dict[str, object]) -> ToolError:
    """An error that the script raised on purpose, except kinds reserved to the platform."""
    kind, details = facts.get("kind"), facts.get("details")
    known = Kind(kind) if isinstance(kind, str) and kind in set(Kind) else Kind.INTERNAL
    return ToolError(
        Kind.PERMANENT if known in PLATFORM_KINDS else known,
        message,
        retryable=facts.get("retryable") is True,
        partial_side_effects=facts.get("partial_side_effects") is True,
        details=details if isinstance(details, dict) else {},
        value=facts.get("value"),
    )


def _too_much(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    if described.get("exceeded") == "mem":
        limit, what, size, setting = "mem", "memory", job.policy.memory_bytes, "sandbox.memory_mb"
    elif _number(described) in FULL:
        limit, what, size, setting = "disk", "disk", job.policy.disk_bytes, "sandbox.disk_mb"
    else:
        return None
    message = f"{tool.name} ran out of {what}: it may use {size // MEGABYTE} MB (setting {setting})"
    return ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True, details={"limit": limit})


def _no_module(tool: Tool, described: Described, hidden: Iterable[Path] = ()) -> ToolError | None:
    module = described.get("missing")
    if not isinstance(module, str) or _MODULE_NAME.fullmatch(module) is None:
        return None
    package, _, inner = module.partition(".")
    names = module.split(".")
    if (
        file := next((path for path in hidden if [*path.with_suffix("").parts[-len(names) :]] == names), None)
    ) is not None:
        reason = (
            f"{tool.name} may not import {file.name}: its tool is disabled, or was pulled or built and keeps its files"
        )
        enable = Cure(
            "enable that tool, or put what is needed into a file of your own", "ask the operator to enable it"
        )
        return ToolError(Kind.BLOCKED, reason, cure=enable, partial_side_effects=True)
    if inner:
        pin = PINS.get(module, f"{package}==…")
        reason = f"{tool.name} needs {module}, which the installed version of {package} does not have"
        cure = f"pin {pin} in a block '# /// script' of the file, then run: crib prepare {tool.name}"
        return _not_installed(reason, cure, module)
    reason = f"{tool.name} needs the Python module {module}, which is not installed for it"
    script = tool.script
    if script is not None and script.packages:
        cure = (
            f"run: crib prepare {tool.name} (it installs {', '.join(script.packages)}; "
            "everything else that the file imports has to be declared in a block '# /// script')"
        )
        return _not_installed(reason, cure, module)
    cure = f"declare its package in a block '# /// script' of the file, then run: crib prepare {tool.name}"
    return _not_installed(reason, cure, module)


def _not_installed(reason: str, cure: str, module: str) -> ToolError:
    return ToolError(
        Kind.EXECUTOR_NOT_FOUND,
        reason,
        cure=Cure(cure, "ask the operator to install it"),
        partial_side_effects=True,
        details={"module": module},
    )


def _no_variable(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    """The error of a file that reads an environment variable which it was not given."""
    name = described.get("variable")
    # Only a name that stands in the file can be granted to it.
    if not isinstance(name, str) or re.search(rf"\b{re.escape(name)}\b".encode(), job.code) is None:
        return None
    return no_variable(tool, name)


def no_variable(tool: Tool, name: str) -> ToolError:
    """The error of a tool that cannot do without an environment variable which it was not given."""
    if name == WORKSPACE:
        return failure(tool, f"{tool.name} reads the variable {name}", cure=Cure(SEES_NO_FILE))
    return ToolError(
        Kind.CAPABILITY_MISSING,
        f"{tool.name} reads the variable {name}, which is not set or not granted to it",
        cure=Cure(
            f"set it and add '{tool.name}:{name}' to access.variables in toolcrib.toml", "ask the operator to grant it"
        ),
        partial_side_effects=True,
        details={"missing": [name]},
    )


def _no_file(tool: Tool, described: Described) -> ToolError | None:
    """The error of a file that looks for another one where it is not, or cannot be seen."""
    path = described.get("path")
    if _number(described) != errno.ENOENT or not isinstance(path, str) or not path:
        return None
    return failure(tool, f"{tool.name} did not find {path[:NAME_LETTERS]!r}", cure=_cure_of_missing_file(tool, path))


def _cure_of_missing_file(tool: Tool, path: str) -> Cure:
    words = []
    if not path.startswith("/"):
        words.append(
            "a relative path starts at the folder of the tool; files of the project are below $TOOLCRIB_WORKSPACE"
        )
    if READ not in tool.requires:
        words.append(SEES_NO_FILE)
    return Cure("; ".join(words) or "see whether it is there")


SEES_NO_FILE = f"list {READ} in its requires, without which it sees no file of the project"
_NO_FILE = re.compile(r"No such file or directory|\bENOENT\b")
_MISSING_IN_TRACEBACK = re.compile(
    r"^(?:ModuleNotFoundError: No module named '(?P<module>[\w.]{1,200})'"
    r"|FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^'\n]{1,4000})')$"
)


def cure_of_output(tool: Tool, printed: str) -> Cure:
    """What helps a program that says that a file or a module of Python was missing."""
    found = _MISSING_IN_TRACEBACK.match(printed.rstrip().rpartition("\n")[2])
    if found is None:
        return Cure(SEES_NO_FILE) if READ not in tool.requires and _NO_FILE.search(printed) else NO_CURE
    if found["path"]:
        return _cure_of_missing_file(tool, found["path"])
    known = _no_module(tool, {"missing": found["module"]})
    return NO_CURE if known is None else known.cure


def _unloadable(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    """The error of a file that fails while it is loaded: nothing of the call is known by then, so its author's words are shown."""
    if "in_loading" not in described:
        return None
    said = f"{described.get('type')}: {described.get('message')}"
    return failure(tool, f"{job.path.name} cannot be loaded: {said[:MAX_MESSAGE_LETTERS]}")


def _denied(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    """The error for a denied access, with the capability that would allow it, if known."""
    number, module = _number(described), described.get("module")
    # A failed name lookup has a negative errno.
    asks_network = module == "socket" and (number in DENIED or number < 0) and not has_network(tool.requires)
    if not asks_network and number not in DENIED:
        return None
    reason = f"{described.get('type')}: {os.strerror(number)}" if number > 0 else described.get("type")
    look = f"see: crib check --observe {tool.name}"
    if asks_network:
        what, cure = "access to the network", f"list net.http in its requires, and {look}"
    elif module == "subprocess" and PROGRAMS not in tool.requires:
        what, cure = "starting a program", f"list {PROGRAMS} in its requires, and {look}"
    elif (place := _in_workspace(job, described)) is not None:
        what, capability = f"access to {_place_name(place)}", _capability(tool, job, place, number)
        cure = f"list {capability} in its requires, and {look}" if capability else "no capability opens it"
        if judge(str(place), opened=job.policy.opened) and not _is_own_data(str(place)):
            cure = "no capability opens it; the operator may do so with workspace.open in toolcrib.toml"
    else:
        cure = f"a tool reaches what its requires opens and nothing else, {look}"
        return failure(tool, f"{tool.name} was denied what it tried ({reason})", cure=Cure(cure))
    message = f"{tool.name} was denied {what} ({reason})"
    return ToolError(Kind.INTERNAL, message, cure=Cure(cure), partial_side_effects=True)


def _number(described: Described) -> int:
    number = described.get("errno")
    return number if isinstance(number, int) else 0


def _in_workspace(job: PythonFile, described: Described) -> Path | None:
    """The requested path relative to the workspace; None if it is elsewhere. The file itself is not read."""
    path = described.get("path")
    if not isinstance(path, str) or not path or job.project is None:
        return None
    place = Path(os.path.normpath(job.path.absolute().parent / path))
    return place.relative_to(job.project) if place.is_relative_to(job.project) else None


def _place_name(place: Path) -> str:
    return f"{str(place)[:NAME_LETTERS]!r} in the workspace" if place.parts else "the workspace"


def _capability(tool: Tool, job: PythonFile, place: Path, number: int) -> str:
    """The capability that allows access to a path of the workspace; empty if none does."""
    path = Path(job.project or "", place)
    is_write = number == errno.EROFS
    kept = (*job.policy.closed, *(job.policy.fixed if is_write else ()))
    if any(path.is_relative_to(outer) for outer in kept):
        return ""
    wanted = (WRITE,) if is_write else (READ, WRITE)
    return next((capability for capability in wanted if capability not in tool.requires), "")


# Files of a tool, checked again before a process reads them.

MOUNTS = "mounts"
CACHE, BYTECODE, IMPORTED = "__pycache__", ".pyc", "__init__"


def refuse_changed_files(
    tool: Tool,
    files: Mapping[Path, bytes],
    folders: Iterable[Path],
    layers: Iterable[str],
    changed: Callable[[Path], ToolError],
) -> None:
    """Refuse files that differ from what was loaded, if the process would use them; `changed` builds the error.

    In its own mount namespace a process reads the loaded bytes, as long as the files exist and are regular. If it may
    read the workspace, it could also read, and run, files that were added.
    """
    covered = MOUNTS in layers
    for path, content in files.items():
        now = None if path.is_symlink() else read_beginning(path, len(content) + 1)
        if now != content and (now is None or not covered):
            raise changed(path)
    if READ in tool.requires:
        for folder in folders:
            if added := _added(folder, files):
                raise changed(added)


def refuse_changed_script(script: Script) -> None:
    """Refuse a file that differs from what was read: the checked bytes are what runs.

    The program opens the file by its path later, because it finds the files beside it from there, and Bash reads while it
    runs. In its own mount namespace it reads the checked bytes. Otherwise only the owner of the file can change it in
    between: no job can write to tool folders.
    """
    now = read_beginning(script.path, len(script.code) + 1)
    if now is None:
        message = f"{script.path.name} cannot be read any more; write it again, as a regular file"
        raise ToolError(Kind.NOT_FOUND, message)
    if now != script.code:
        raise ToolError(Kind.CONFLICT, f"{script.path.name} changed while it was about to run; call again")


def package_files(script: Script) -> dict[Path, bytes]:
    """The content of each file of the script's package; empty for a single file."""
    folder = script.path.absolute().parent
    return {folder / path: content for path, content in script.files.items()}


def package_folders(script: Script) -> tuple[Path, ...]:
    """The folders of the script's package, its own first; empty for a single file."""
    return tuple(sorted({path.parent for path in package_files(script)}))


async def refuse_changed_package(tool: Tool, script: Script, sandbox: Sandbox, job: Job) -> None:
    """Refuse a package that differs from what was loaded, if the process would use it; the catalog detects added files."""
    folder = script.path.absolute().parent

    def changed(path: Path) -> ToolError:
        message = f"{folder.name}/{path.relative_to(folder)} changed since it was loaded"
        return ToolError(Kind.CONFLICT, message, cure=Cure("crib check says what to do"))

    await sandbox.learn()
    refuse_changed_files(tool, package_files(script), (), sandbox.report_on(job)["layers"], changed)
    if READ in tool.requires:
        _refuse_bytecode(folder)


def _refuse_bytecode(folder: Path) -> None:
    """Refuse bytecode that an interpreter with access to the workspace would run instead of the checked files."""
    for path in sorted(folder.rglob(f"{CACHE}/*{BYTECODE}")):
        # The file that imports the package is never run in a process of the tool.
        if path.parent.parent == folder and path.name.startswith(f"{IMPORTED}."):
            continue
        cure = Cure(f"remove {path.parent.relative_to(folder.parent)}")
        message = f"{path.relative_to(folder.parent)} would run in place of what was proved"
        raise ToolError(Kind.CONFLICT, message, cure=cure)


def _added(folder: Path, files: Mapping[Path, bytes]) -> Path | None:
    """A file in the folder, recursively, that is not among these."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_foreign(name)]
        for name in names:
            if not is_foreign(name) and Path(place, name) not in files:
                return Path(place, name)
    return None
