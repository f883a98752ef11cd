"""What a worker can be asked to do, how it is told, and what came of it."""

from __future__ import annotations

import functools
import json
import sys
import sysconfig
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.channel import frame
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    # As Sandbox.run, of a sandbox that requires nothing.
    RunJob = Callable[..., Awaitable["Ended"]]


# The kinds of jobs that the sandbox is tried for, each by itself.
PLAIN_PROFILE, NETWORK_PROFILE, PROGRAM_PROFILE = PROFILES = ("plain", "network", "program")

CLEAN_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}


# Where a job with a network finds its one way out: the job has a network of its own, in which only this address answers.
PROXY_HOST = "127.0.0.1"
PROXY_PORT = 3128
PROXY_URL = f"http://{PROXY_HOST}:{PROXY_PORT}"
# By these it is found: most clients read the former, Node the latter.
PROXY_VARIABLES: Mapping[str, str] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), PROXY_URL),
    "NODE_USE_ENV_PROXY": "1",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """A Python: `program` is what is started, `executable` what a script sees as its own, `packages` where it imports from."""

    program: Path
    executable: Path
    prefix: Path
    base: Path
    version: tuple[int, ...]
    packages: tuple[str, ...]

    @property
    def runtime(self) -> tuple[Path, ...]:
        """What a file sees of it."""
        return tuple(dict.fromkeys((self.base, self.prefix, *map(Path, self.packages))))


@dataclass(frozen=True, kw_only=True, slots=True)
class OneFile:
    """A file that is meant itself, and not what somebody puts in its place later.

    Whoever names it keeps it open until the job has ended: the number of a file that has gone is soon another's.
    """

    path: Path
    device: int
    inode: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Walls:
    """What a job may touch; what is not named here is closed to it. It always has a scratch folder of its own.

    `read` and `write` are folders and files, with everything below them; writing does not include reading. Of the folders in
    `read` that are `listed` only names are seen, and what stands in `read` itself. What lies in all of these under `closed`
    is neither seen nor changed, under `fixed` it is not changed. Protected names (see pure.protected) are not changed either,
    but for those that the operator `opened`; of the secrets below `guarded` folders those that are there are `masked`, which
    the sandbox finds out before each job, as it does further folders of `hooks`. `files` may be written besides, each of them itself: a job
    whose file was replaced is not started. `programs` lets it start programs out of what it may read. `network` gives it a
    network that leads to our proxy and nowhere else. `observe` takes note of what it does and tries. `open` raises no walls
    at all, only environment, time and reaping hold: for the operator's own container engine, which raises walls itself.
    """

    read: tuple[Path, ...] = ()
    listed: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    files: tuple[OneFile, ...] = ()
    closed: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    opened: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    programs: bool = False
    network: bool = False
    observe: bool = False
    open: bool = False
    memory_bytes: int = 1024 * MEGABYTE
    processes: int = 64
    disk_bytes: int = 256 * MEGABYTE


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """Run a program with these arguments; the first is its path. `channel` gives it a line to the host.

    `files` are some that it reads, with what stood in them when they were checked. A job with mounts of its own finds that
    there, whatever becomes of the files meanwhile; one that has gone is not made again.
    """

    argv: tuple[str, ...]
    cwd: Path
    walls: Walls
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))
    channel: bool = False
    files: Mapping[Path, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonFile:
    """Run these bytes as the Python file at `path`, in its folder, as its convention says.

    `argv` are the words behind the file's name, for a file that reads its own. `imports` are modules to have ready.
    `interpreter` is the one of an environment that the file has to itself; None means the one that runs Toolcrib.
    `project` is what an entry of the convention `params` gets as its second argument; None means the file's own folder.
    `files` are some that it reads besides, as for a Program.
    """

    path: Path
    code: bytes
    entry: str
    arguments: Mapping[str, object]
    walls: Walls
    convention: str = "keywords"
    argv: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    interpreter: Interpreter | None = None
    project: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))
    channel: bool = False
    files: Mapping[Path, bytes] = field(default_factory=dict)


Job = Program | PythonFile


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a job did or tried: `act` is read, write, connect or start, `what` a path, an address or a program."""

    act: str
    what: str
    denied: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a job ended.

    Either `exit_code` or `signal` is set, neither if it could not be learned. `result` is what a Python file answered,
    None if it answered nothing or more than was allowed. `killed` counts the processes that did not end by themselves;
    `gone` says that every one was seen to end. `cannot_start` is the reason why nothing ran. `exceeded` names the limit
    (mem, pids, disk) for which it was ended. `effects` is what was observed.
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


def encode(job: Job, deadline: float, layers: Iterable[str] = ()) -> bytes:
    """The job as the supervisor reads it: a description in JSON, and beside it the code with the files behind it.

    A Python file sees the interpreter that runs it. `layers` are the walls without which it is not started.
    """
    description: dict[str, object] = {
        "deadline": deadline,
        "environment": dict(job.environment),
        "walls": _describe(job.walls),
        "channel": job.channel,
        "layers": list(layers),
        "files": [[str(path), len(content)] for path, content in job.files.items()],
    }
    code = b""
    if isinstance(job, Program):
        description |= {"argv": list(job.argv), "cwd": str(job.cwd)}
    else:
        code = job.code
        description |= _describe_file(job) | _describe_python(job.walls, job.interpreter)
    try:
        return frame(json.dumps(description, allow_nan=False).encode()) + frame(b"".join((code, *job.files.values())))
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(Kind.VALIDATION, f"the arguments cannot be handed to another process: {problem}") from problem


def _describe_file(job: PythonFile) -> dict[str, object]:
    path = job.path.absolute()
    return {
        "path": str(path),
        "name": path.stem,
        "cwd": str(path.parent),
        "entry": job.entry,
        "convention": job.convention,
        "arguments": dict(job.arguments),
        "argv_words": list(job.argv),
        "project": str(job.project or path.parent),
    }


def _describe_python(walls: Walls, interpreter: Interpreter | None) -> dict[str, object]:
    if interpreter is None:
        return {"python_path": site_paths()}
    return {
        "python_path": list(interpreter.packages),
        "python": {"executable": str(interpreter.executable), "prefix": str(interpreter.prefix)},
        "walls": _describe(replace(walls, read=(*walls.read, *interpreter.runtime))),
    }


def _describe(walls: Walls) -> dict[str, object]:
    return {
        name: [_describe_place(place) for place in value] if isinstance(value, tuple) else value
        for name in Walls.__slots__
        for value in (getattr(walls, name),)
    }


def _describe_place(place: Path | OneFile | str) -> object:
    return [str(place.path), place.device, place.inode] if isinstance(place, OneFile) else str(place)


@functools.cache
def _library() -> frozenset[str]:
    return frozenset((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")))


def site_paths() -> list[str]:
    """Where this interpreter finds installed packages.

    They stand behind the standard library; what stands before it (the host's own folder, PYTHONPATH) is the host's
    affair and no tool's.
    """
    library = _library()
    places = [place for place, entry in enumerate(sys.path) if entry in library or entry.endswith("lib-dynload")]
    return [entry for entry in sys.path[max(places, default=-1) + 1 :] if entry]


# From what a tool declares to the walls around it: the declared capabilities are the only holes.

READ = "fs.read"
WRITE = "fs.write"
PROGRAMS = "shell.execute"
NETWORK = "net."

# What a process of any language needs of the system to start at all: libraries, time zones, names, certificates.
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
# What one that may start programs finds besides.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/opt", "/nix/store", "/etc/alternatives", "/etc/profile", "/etc/profile.d"),
    *("/etc/bash.bashrc", "/etc/inputrc", "/etc/gitconfig", "/etc/fonts", "/etc/perl", "/etc/java", "/etc/magic"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Premises:
    """What the operator lets jobs work in: the workspace, what in it is not theirs, and how much each may use.

    `opened` are protected names in it that the operator opened. `unwritable` says why no job can be let write to the
    workspace, if that is so.
    """

    workspace: Path
    opened: tuple[str, ...] = ()
    closed: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    unwritable: str = ""
    memory_bytes: int = 1024 * MEGABYTE
    processes: int = 64
    disk_bytes: int = 256 * MEGABYTE


def build_walls(
    requires: Iterable[str],
    premises: Premises,
    runtime: Iterable[Path] = (),
    *,
    listed: Iterable[Path] = (),
    observe: bool = False,
) -> Walls:
    """The walls of a job with these capabilities; `runtime` is what it sees besides, its own folder among it.

    Of folders that are `listed` it sees the names of what lies in them, and no file that is not in `runtime`.
    """
    return _build(frozenset(requires), premises, tuple(runtime), tuple(listed), observe)


@functools.lru_cache(maxsize=1024)
def _build(
    capabilities: frozenset[str],
    premises: Premises,
    runtime: tuple[Path, ...],
    listed: tuple[Path, ...],
    observe: bool,  # noqa: FBT001 - a cache keeps apart what is named and what is not
) -> Walls:
    programs = PROGRAMS in capabilities
    if WRITE in capabilities and premises.unwritable:
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, f"no tool may write to the workspace: {premises.unwritable}")
    system = present((*LIBRARIES, *SYSTEM) if programs else LIBRARIES)
    workspace = (premises.workspace,) if READ in capabilities else ()
    read = tuple(dict.fromkeys((*system, *listed, *runtime, *workspace)))
    write = (premises.workspace,) if WRITE in capabilities else ()
    return Walls(
        read=read,
        # A folder that is the workspace itself, or that is part of what it runs on, is read as that.
        listed=tuple(place for place in listed if place not in {*runtime, *workspace}),
        write=write,
        # What the job could not reach anyway needs no exception, and each costs a moment at every start.
        closed=_within(premises.closed, (*read, *write)),
        fixed=_within(premises.fixed, write),
        guarded=(premises.workspace,) if _is_seen(premises.workspace, (*workspace, *write, *runtime)) else (),
        opened=premises.opened,
        programs=programs,
        network=has_network(capabilities),
        observe=observe,
        memory_bytes=premises.memory_bytes,
        processes=premises.processes,
        disk_bytes=premises.disk_bytes,
    )


@functools.cache
def present(paths: tuple[str, ...]) -> tuple[Path, ...]:
    """Those that this system has, without what lies below another: each costs a moment at every start."""
    found: list[Path] = []
    for path in sorted({Path(path).resolve() for path in paths if Path(path).exists()}):
        if not any(path.is_relative_to(outer) for outer in found):
            found.append(path)
    return tuple(found)


def _within(paths: tuple[Path, ...], roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Those that lie in one of the roots, by their name or where they lead."""
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
    """Whether one of these places opens the whole workspace; a tool's own folder in it does not."""
    return any(workspace.is_relative_to(place) for place in places)


def has_network(capabilities: Iterable[str]) -> bool:
    """Whether one of the capabilities is for the network."""
    return any(capability.startswith(NETWORK) for capability in capabilities)


def python_runtime() -> tuple[Path, ...]:
    """What a Python file sees of the interpreter that runs Toolcrib."""
    return tuple(dict.fromkeys(Path(place) for place in (sys.base_prefix, sys.prefix, *site_paths())))
