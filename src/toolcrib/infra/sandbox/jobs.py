"""The jobs that a sandbox runs: their description, policy, encoding for the supervisor, and outcome."""

from __future__ import annotations

import errno
import functools
import json
import sys
import sysconfig
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.channel import frame
from toolcrib.infra.sandbox import DISK_MB, MEMORY_MB, PROCESSES
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MEGABYTE
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    # `Sandbox.run` of a sandbox that requires no guarantee.
    RunJob = Callable[..., Awaitable["CompletedJob"]]


# The profiles of jobs, each of which is probed separately.
PLAIN_PROFILE, NETWORK_PROFILE, PROGRAM_PROFILE = PROFILES = ("plain", "network", "program")

CLEAN_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}


# The only address that answers in the network namespace of a job: the egress proxy.
PROXY_HOST = "127.0.0.1"
PROXY_PORT = 3128
PROXY_URL = f"http://{PROXY_HOST}:{PROXY_PORT}"
# Most clients read the first four variables, Node needs the last one.
PROXY_VARIABLES: Mapping[str, str] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), PROXY_URL),
    "NODE_USE_ENV_PROXY": "1",
}
# Every job has its own mount of this; the child's own module has it too, and is not loaded here.
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a system folder


@record
class Interpreter:
    """A Python: `program` is executed, `executable` is what scripts see, `packages` are its import folders."""

    program: Path
    executable: Path
    prefix: Path
    base: Path
    version: tuple[int, ...]
    packages: tuple[str, ...]

    @property
    def runtime(self) -> tuple[Path, ...]:
        """The folders that a file needs to read."""
        return tuple(dict.fromkeys((self.base, self.prefix, *map(Path, self.packages))))


@record
class OneFile:
    """A file identified by device and inode, so that a later replacement at the same path is not accepted.

    The caller keeps it open until the job has ended, because the kernel reuses inode numbers.
    """

    path: Path
    device: int
    inode: int


@record
class SandboxPolicy:
    """What a job may access; everything else is denied. Every job has a private scratch folder.

    `read` and `write` are folders and files, including everything below them; writing does not include reading. A
    folder in `read` that is also `listed` shows only the names in it, plus what is in `read` itself. Paths under
    `closed` are neither readable nor writable, paths under `fixed` are not writable. `hidden` files and folders beside a Python
    file cannot be imported, and with a mount namespace not be read. Protected names (see
    lib.protected_names) are not writable either, except those that the operator `opened`. Where `only` names real paths, the job
    reads, creates, changes and removes these in the writable folders and no other, of any size. The sandbox fills in `masked`
    (secret files below the `guarded` folders) and `hooks` (further paths that Git runs or obeys) before each job. `files` are
    single writable files; a job whose file was replaced is not started. `programs` allows executing programs that may
    be read. `network` provides a network namespace that reaches only the egress proxy. `observe` records effects and
    attempts. `unconfined` applies no isolation at all, only env, time and reap hold: for the operator's container
    engine, which isolates by itself.
    """

    read: tuple[Path, ...] = ()
    listed: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    only: tuple[Path, ...] = ()
    files: tuple[OneFile, ...] = ()
    closed: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    opened: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    programs: bool = False
    network: bool = False
    observe: bool = False
    unconfined: bool = False
    memory_bytes: int = MEMORY_MB * MEGABYTE
    processes: int = PROCESSES
    disk_bytes: int = DISK_MB * MEGABYTE


@record
class Program:
    """Run a program with these arguments; the first is its path. `channel` connects it to the host.

    `stdin` is its standard input, None for an empty one.
    `files` maps files to their checked content. A job with a mount namespace reads this content even if the files
    change meanwhile; a file that was removed is not created again.
    """

    argv: tuple[str, ...]
    cwd: Path
    policy: SandboxPolicy
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))
    channel: bool = False
    files: Mapping[Path, bytes] = field(default_factory=dict)
    stdin: str | None = None


@record
class PythonFile:
    """Run these bytes as the Python file at `path`, in its folder, by its convention.

    `argv` are command-line arguments for a file that parses its own. `imports` are modules to preload. `interpreter`
    belongs to the file's own environment; None means the one that runs Toolcrib. `project` is the second argument of an
    entry of the convention `params`; None means the file's own folder. `binding` finds the function of the convention
    `object`. `files` and `stdin` are as in Program. What a function yields is sent over the channel at once if it `streams`,
    and is its value as one text if it `joins_text`, else as a list.
    """

    path: Path
    code: bytes
    entry: str
    arguments: Mapping[str, object]
    policy: SandboxPolicy
    convention: str = "keywords"
    argv: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    interpreter: Interpreter | None = None
    project: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))
    channel: bool = False
    files: Mapping[Path, bytes] = field(default_factory=dict)
    stdin: str | None = None
    binding: Mapping[str, object] = field(default_factory=dict)
    streams: bool = False
    joins_text: bool = False


Job = Program | PythonFile


@record(kw_only=False)
class Effect:
    """One effect or attempt of a job: `act` is read, write, connect or start, `what` a path, an address or a program."""

    act: str
    what: str
    denied: bool = False


@record
class CompletedJob:
    """How a job ended.

    Either `exit_code` or `signal` is set, neither if unknown. `result` is the answer of a Python file, None if there
    was none or it was too long. `killed` counts the processes that had to be killed; `gone` says that every process was
    seen to end. `cannot_start` is the reason why nothing ran. `exceeded` names the limit (mem, pids, disk) for which it
    was killed. `effects` is what was observed. `refused` are the first protected paths that it tried to change.
    """

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_dropped: int
    stderr_dropped: int
    result: bytes | None
    result_too_long: bool
    timed_out: bool
    killed: int
    gone: bool
    cannot_start: str
    exceeded: str = ""
    effects: tuple[Effect, ...] = ()
    refused: tuple[str, ...] = ()


def encode(job: Job, deadline: float, layers: Iterable[str] = ()) -> bytes:
    """Encode the job as two frames: its description as JSON, then the code followed by the file contents.

    A Python file may read the interpreter that runs it. The job is not started unless all `layers` are active.
    """
    description: dict[str, object] = {
        "deadline": deadline,
        "environment": dict(job.environment),
        "policy": _describe(job.policy),
        "channel": job.channel,
        "layers": list(layers),
        "files": [[str(path), len(content)] for path, content in job.files.items()],
        "stdin": job.stdin,
    }
    code = b""
    if isinstance(job, Program):
        description |= {"argv": list(job.argv), "cwd": str(job.cwd)}
    else:
        code = job.code
        description |= _describe_file(job) | _describe_python(job.policy, job.interpreter)
    try:
        return frame(json.dumps(description, allow_nan=False).encode()) + frame(b"".join((code, *job.files.values())))
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(Kind.VALIDATION, f"the arguments cannot be sent to another process: {problem}") from problem


def _describe_file(job: PythonFile) -> dict[str, object]:
    path = job.path.absolute()
    return {
        "path": str(path),
        "name": path.stem,
        "cwd": str(path.parent),
        "entry": job.entry,
        "convention": job.convention,
        "binding": dict(job.binding),
        "arguments": dict(job.arguments),
        "argv_words": list(job.argv),
        "project": str(job.project or path.parent),
        "streams": job.streams,
        "joins_text": job.joins_text,
    }


def _describe_python(policy: SandboxPolicy, interpreter: Interpreter | None) -> dict[str, object]:
    if interpreter is None:
        return {"python_path": site_paths()}
    return {
        "python_path": list(interpreter.packages),
        "python": {"executable": str(interpreter.executable), "prefix": str(interpreter.prefix)},
        "policy": _describe(replace(policy, read=(*policy.read, *interpreter.runtime))),
    }


def _describe(policy: SandboxPolicy) -> dict[str, object]:
    return {
        each.name: [_describe_place(place) for place in value] if isinstance(value, tuple) else value
        for each in fields(policy)
        for value in (getattr(policy, each.name),)
    }


def _describe_place(place: Path | OneFile | str) -> object:
    return [str(place.path), place.device, place.inode] if isinstance(place, OneFile) else str(place)


@functools.cache
def _library() -> frozenset[str]:
    return frozenset((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")))


def site_paths() -> list[str]:
    """The folders from which this interpreter imports installed packages.

    These follow the standard library in sys.path. Earlier entries (the host's own folder, PYTHONPATH) belong to the
    host and are not offered to tools.
    """
    library = _library()
    places = [place for place, entry in enumerate(sys.path) if entry in library or entry.endswith("lib-dynload")]
    return [entry for entry in sys.path[max(places, default=-1) + 1 :] if entry]


# From declared capabilities to a policy: only what is declared is allowed.

READ = "fs.read"
WRITE = "fs.write"
PROGRAMS = "shell.execute"
NETWORK = "net."

# What a process of any language needs to start: libraries, time zones, locales, certificates.
LIBRARIES = (
    *("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib"),
    *(
        "/usr/share/zoneinfo",
        "/usr/share/locale",
        "/usr/share/i18n",
        "/usr/share/ca-certificates",
        "/usr/share/terminfo",
    ),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone"),
    *("/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf"),
    *("/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/mime.types"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem"),
    *("/etc/pki/ca-trust/extracted", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/locale.alias"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/sys/kernel/osrelease"),
    *("/sys/devices/system/cpu", "/proc/version", "/proc/uptime", "/proc/loadavg"),
)
# What a job that may execute programs needs in addition.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/opt", "/nix/store", "/etc/alternatives", "/etc/profile", "/etc/profile.d"),
    *("/etc/bash.bashrc", "/etc/inputrc", "/etc/gitconfig", "/etc/fonts", "/etc/perl", "/etc/java", "/etc/magic"),
)


@record
class WorkspacePolicy:
    """What the operator allows all jobs: the workspace, its protected paths, and resource limits.

    `opened` are protected names that the operator opened. `unwritable` is the reason if no job may write to the
    workspace.
    """

    workspace: Path
    opened: tuple[str, ...] = ()
    closed: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    unwritable: str = ""
    memory_bytes: int = MEMORY_MB * MEGABYTE
    processes: int = PROCESSES
    disk_bytes: int = DISK_MB * MEGABYTE


def build_policy(
    requires: Iterable[str],
    workspace_policy: WorkspacePolicy,
    runtime: Iterable[Path] = (),
    *,
    listed: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    observe: bool = False,
) -> SandboxPolicy:
    """Build the policy of a job with these capabilities; `runtime` are further readable paths, such as its own folder.

    In `listed` folders the job sees names only, and no file that is not in `runtime`. Of `hidden` paths those in `runtime` count.
    """
    return _build(frozenset(requires), workspace_policy, tuple(runtime), tuple(listed), tuple(hidden), observe)


@functools.lru_cache(maxsize=1024)
def _build(
    capabilities: frozenset[str],
    workspace_policy: WorkspacePolicy,
    runtime: tuple[Path, ...],
    listed: tuple[Path, ...],
    hidden: tuple[Path, ...],
    observe: bool,  # noqa: FBT001 - a cache keeps apart what is named and what is not
) -> SandboxPolicy:
    programs = PROGRAMS in capabilities
    if WRITE in capabilities and workspace_policy.unwritable:
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, f"no tool may write to the workspace: {workspace_policy.unwritable}")
    system = present((*LIBRARIES, *SYSTEM) if programs else LIBRARIES)
    workspace = (workspace_policy.workspace,) if READ in capabilities else ()
    read = tuple(dict.fromkeys((*system, *listed, *runtime, *workspace)))
    write = (workspace_policy.workspace,) if WRITE in capabilities else ()
    return SandboxPolicy(
        read=read,
        # The workspace itself, or a part of the runtime, stays readable.
        listed=tuple(place for place in listed if place not in {*runtime, *workspace}),
        write=write,
        # Skip what the job cannot reach anyway: every exception costs time at each start.
        closed=_within(workspace_policy.closed, (*read, *write)),
        hidden=_within(hidden, runtime),
        fixed=_within(workspace_policy.fixed, write),
        guarded=(workspace_policy.workspace,)
        if _is_seen(workspace_policy.workspace, (*workspace, *write, *runtime))
        else (),
        opened=workspace_policy.opened,
        programs=programs,
        network=has_network(capabilities),
        observe=observe,
        memory_bytes=workspace_policy.memory_bytes,
        processes=workspace_policy.processes,
        disk_bytes=workspace_policy.disk_bytes,
    )


@functools.cache
def present(paths: tuple[str, ...]) -> tuple[Path, ...]:
    """The paths that exist here, without those below another one: each path costs time at every start."""
    found: list[Path] = []
    for path in sorted({Path(path).resolve() for path in paths if Path(path).exists()}):
        if not any(path.is_relative_to(outer) for outer in found):
            found.append(path)
    return tuple(found)


def _within(paths: tuple[Path, ...], roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths inside one of the roots, by name or after resolving links."""
    if not paths or not roots:
        return ()
    places = {place for root in roots for place in (root, root.resolve())}
    spellings = {path: {path, path.resolve()} for path in paths}
    return tuple(
        path
        for path, known in spellings.items()
        if any(place == spelling or place in spelling.parents for spelling in known for place in places)
    )


def _is_seen(workspace: Path, places: tuple[Path, ...]) -> bool:
    """Whether one of these paths includes the whole workspace; a tool's own folder in it does not."""
    return any(workspace.is_relative_to(place) for place in places)


def has_network(capabilities: Iterable[str]) -> bool:
    """Whether one of the capabilities is a network capability."""
    return any(capability.startswith(NETWORK) for capability in capabilities)


def python_runtime() -> tuple[Path, ...]:
    """The paths that a Python file needs of the interpreter that runs Toolcrib."""
    return tuple(dict.fromkeys(Path(place) for place in (sys.base_prefix, sys.prefix, *site_paths())))


def explain_start(problem: str) -> str:
    """Why a job was not started, with the cure where that is known."""
    if f"[Errno {errno.ENOENT}]" in problem and f"{SHARED_MEMORY}/" in problem:
        return f"{problem}; every job gets a {SHARED_MEMORY} of its own, so move the project elsewhere"
    return problem
