"""What this machine guarantees: probed once, shared by every Sandbox of the process, cached on disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import resource
import socket
import stat
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.jobs import (
    CLEAN_ENVIRONMENT,
    LIBRARIES,
    NETWORK_PROFILE,
    PLAIN_PROFILE,
    PROFILES,
    PROGRAM_PROFILE,
    SYSTEM,
    Program,
    PythonFile,
    SandboxPolicy,
    present,
    python_runtime,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MEGABYTE
from toolcrib.values.records import record

# It takes as long to import as a launcher takes to start, so it is imported where it is used, while the launcher of a cold call starts.
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from toolcrib.infra.sandbox.jobs import CompletedJob, Job, RunJob

    Trial = tuple[frozenset[str], tuple[str, ...]]  # the guarantees that hold, and the active layers

# How often a process looks whether its privileges have changed, and how long it waits for another one that probes.
_CHECK_SECONDS = 1.0
_TURN_SECONDS = 10.0
_POLL_SECONDS = 0.02
# The facts on which guarantees depend: of the process, its limits, and the settings of the kernel.
_STATUS = ("Uid:", "Gid:", "Cap", "NoNewPrivs:", "Seccomp")
# The host has no descriptor or no memory left, which says nothing about the sandbox.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_LIMITS = (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE)
_FACTS = (
    "/proc/self/attr/current",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_net_namespaces",
    "/proc/sys/user/max_inotify_instances",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/seccomp/actions_avail",
)
# The calls that confine a job, and what none of them accepts: none of them changes anything with it.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_NAMESPACES = (0x00020000, 0x10000000, 0x40000000)  # of mounts, users and networks
_NO_SUCH_NAMESPACE, _NO_SUCH_FLAGS, _NO_SUCH_FILE = 1, 0x7FFFFFFF, -1
_MAX_FACT_BYTES = 16_384
_MAX_FINDINGS_BYTES = MEGABYTE


@functools.cache
def findings_at(cache: Path | None, shared: Path | None = None) -> Findings:
    """The findings of this process with these caches; all of them share one probe."""
    is_own = cache is None and shared is None
    return Findings(cache, shared=shared, tried=None if is_own else findings_at(None))


def shared_folder(runtime: str, workspace: Path | None = None) -> Path | None:
    """A private folder in which all processes of this user share findings until the next boot, None if there is none.

    `runtime` is the user's runtime folder (XDG_RUNTIME_DIR) if there is one. Tools must not write there. After `su` it is that of
    another user, who could replace what is in it.
    """
    temporary = Path("/tmp")  # noqa: S108 - below it, only a folder of our own is used
    is_ours = runtime.startswith("/") and _is_private(Path(runtime))
    folder = Path(runtime, "toolcrib") if is_ours else temporary / f"toolcrib-{os.geteuid()}"
    if workspace is not None and folder.resolve().is_relative_to(workspace.resolve()):
        return None
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder if _is_private(folder) else None


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of this user that no other user may enter."""
    try:
        facts = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077


def profile_of(policy: SandboxPolicy | None, *, program: bool = False) -> str:
    """The profile of a job under this policy."""
    if policy is not None and policy.network:
        return NETWORK_PROFILE
    return PROGRAM_PROFILE if program or (policy is not None and policy.programs) else PLAIN_PROFILE


class Findings:
    """The reports of the probe, one per profile. `tried` runs the probe on behalf of several Findings.

    They are cached in the file `cache`, and in the folder `shared` for all processes of this user. Findings hold as long as
    this process has the same privileges and the kernel and its filters allow it the same; after that the probe runs again.
    """

    def __init__(self, cache: Path | None, *, shared: Path | None = None, tried: Findings | None = None) -> None:
        self._cache = cache
        self._shared = shared
        self._tried = tried
        self._privileges: list[str] = []
        self._checked_at = 0.0
        self._lock = threading.RLock()  # reentrant for the reason that `Slots` gives
        self._trying: tuple[int, Future[None]] | None = None
        self._trial: asyncio.Task[None] | None = None
        self._reports: Mapping[str, Report] | None = None
        self._looked = False
        self.generation = 0  # how often the privileges have changed

    def known(self) -> Mapping[str, Report] | None:
        """The reports, None if the machine was not probed yet, or not as it is now."""
        if self._have_changed():
            self._reports, self._looked = None, False
            self.generation += 1
        if self._reports is None and not self._looked:
            self._reports = self._load()
            self._looked = True
        return self._reports

    def look_again(self) -> None:
        """Look at the privileges the next time, however lately that was done."""
        self._checked_at = 0.0

    async def learn(self, run_job: RunJob) -> Mapping[str, Report]:
        """Run the probe: the first caller runs it, the others wait, and it continues if one of them is cancelled."""
        import asyncio

        while (reports := self.known()) is None:
            own, trying = self._begin()
            if own:
                self._trial = asyncio.create_task(self._try(run_job, trying))
                # Nothing of a task runs that is cancelled before its first step.
                self._trial.add_done_callback(functools.partial(self._end, trying))
                await asyncio.shield(self._trial)
            else:
                await asyncio.shield(asyncio.wrap_future(trying))
        return reports

    async def rest(self) -> None:
        """Cancel a probe that this event loop started; other waiting callers start it again."""
        import asyncio

        trial = self._trial
        if trial is None or trial.done() or trial.get_loop() is not asyncio.get_running_loop():
            return
        if self._tried is not None:
            await self._tried.rest()
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)

    def _begin(self) -> tuple[bool, Future[None]]:
        from concurrent.futures import Future

        with self._lock:
            if self._trying is not None and self._trying[0] == os.getpid():
                return False, self._trying[1]
            trying: Future[None] = Future()
            self._trying = (os.getpid(), trying)
            return True, trying

    def _have_changed(self) -> bool:
        """Whether the privileges of this process have changed since the last look."""
        now = time.monotonic()
        if now < self._checked_at + _CHECK_SECONDS:
            return False
        try:
            before, self._privileges = self._privileges, privileges()
        except OSError:  # the host has no descriptor left, and looks again later
            return False
        self._checked_at = now
        return bool(before) and before != self._privileges

    def _places(self, circumstances: list[str]) -> list[Path]:
        shared = [] if self._shared is None else [self._shared / f"sandbox-{_digest(circumstances)}.json"]
        return [*([] if self._cache is None else [self._cache]), *shared]

    def _circumstances(self) -> list[str]:
        return [*_installation(), *(self._privileges or privileges())]

    def _load(self) -> Mapping[str, Report] | None:
        try:
            circumstances = self._circumstances()
        except OSError:
            return None
        places = self._places(circumstances)
        return next((found for place in places if (found := load(place, circumstances)) is not None), None)

    async def _try(self, run_job: RunJob, trying: Future[None]) -> None:
        try:
            async with _turn(self._shared):
                circumstances = self._circumstances()
                # Another process may have tried it while this one waited.
                reports = self._load() or await self._probe(run_job)
                for place in self._places(circumstances):
                    with contextlib.suppress(OSError):  # the next process probes again
                        store(place, reports, circumstances)
                if circumstances == self._circumstances():  # else the probe runs again
                    self._reports = reports
        except OSError as problem:
            raise _not_probed(problem) from problem
        finally:
            self._end(trying)  # here too, because garbage collection closes the trial of a closed event loop

    def _end(self, trying: Future[None], _: object = None) -> None:
        """Let the callers that wait go on."""
        with self._lock:
            if self._trying == (os.getpid(), trying):
                self._trying = None
            if not trying.done():
                trying.set_result(None)

    async def _probe(self, run_job: RunJob) -> Mapping[str, Report]:
        if self._tried is not None:
            self._tried.look_again()  # it may have looked just before the privileges changed
            return await self._tried.learn(run_job)
        return await probe(run_job)


def _not_probed(problem: OSError) -> ToolError:
    reason = f"the sandbox could not be probed: {problem.strerror or problem}"
    if problem.errno in _EXHAUSTED:
        return ToolError(Kind.OVERLOADED, f"{reason}; call again later", retryable=True)
    message = (
        f"{reason}; it needs a new folder in {_SHORT_PATH}, or in TMPDIR where that cannot be written: make room there"
    )
    return ToolError(Kind.SANDBOX_UNAVAILABLE, message, retryable=True)


@contextlib.asynccontextmanager
async def _turn(folder: Path | None) -> AsyncIterator[None]:
    """Let one process of this user probe at a time; the wait is bounded, because that process may be frozen."""
    if folder is None:
        yield
        return
    try:
        lock = os.open(folder / "sandbox.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        await _take(lock)
        yield
    finally:
        os.close(lock)


async def _take(lock: int) -> None:
    """Poll for the lock: a thread that waits in the kernel could not be cancelled."""
    import asyncio

    until = time.monotonic() + _TURN_SECONDS
    while time.monotonic() < until:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


# The probe: jobs that try what is forbidden, and a cache that is valid while the system stays the same.


@record
class Report:
    """The guarantees that held for one profile, and the layers that were active during the probe."""

    guarantees: frozenset[str]
    layers: tuple[str, ...]


async def probe(run_job: RunJob) -> dict[str, Report]:
    """Try everything that is forbidden; `run_job` is `Sandbox.run` without any requirement."""
    found = await try_everything(run_job, PROFILES)
    return {profile: Report(guarantees=kept, layers=layers) for profile, (kept, layers) in found.items()}


def load(path: Path, circumstances: list[str] | None = None) -> dict[str, Report] | None:
    """Load earlier findings; None if there are none that are valid under these circumstances, by default the present ones."""
    try:
        # Without O_NONBLOCK a fifo would block until another process writes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return None
        document = json.loads(os.read(descriptor, _MAX_FINDINGS_BYTES))
        if document["of"] != (circumstances or _circumstances()):
            return None
        return {profile: _read_report(document["reports"][profile]) for profile in PROFILES}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        os.close(descriptor)


def store(path: Path, reports: Mapping[str, Report], circumstances: list[str] | None = None) -> None:
    """Store the findings; raises OSError if they cannot be written."""
    document = {
        "of": circumstances or _circumstances(),
        "reports": {
            profile: {"guarantees": sorted(report.guarantees), "layers": list(report.layers)}
            for profile, report in reports.items()
        },
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        fresh.replace(path)
    except OSError:
        fresh.unlink()
        raise


def _read_report(document: object) -> Report:
    if not isinstance(document, dict):
        raise ValueError("a report is a mapping")
    guarantees, layers = document["guarantees"], document["layers"]
    if not all(isinstance(name, str) for name in (*guarantees, *layers)):
        raise ValueError("names are texts")
    return Report(guarantees=frozenset(guarantees), layers=tuple(layers))


def _circumstances() -> list[str]:
    """What the findings depend on: another boot, kernel, user, privilege, interpreter or sandbox invalidates them."""
    return [*_installation(), *privileges()]


def _digest(circumstances: list[str]) -> str:
    return hashlib.sha256("\n".join(circumstances).encode("utf-8", "surrogateescape")).hexdigest()[:32]


@functools.cache
def _installation() -> tuple[str, ...]:
    """The boot, the kernel, the interpreter and the code of the sandbox."""
    folder = Path(__file__).parent
    files = (*folder.glob("*.py"), *(folder / "child").glob("*.py"))
    # Some package managers give every file of every version the same time.
    code = sorted(f"{file} {facts.st_size} {facts.st_mtime_ns}" for file in files for facts in (file.stat(),))
    kernel = os.uname()
    boot = _read_fact("/proc/sys/kernel/random/boot_id")
    return (boot, kernel.release, kernel.version, os.path.realpath(sys.executable), sys.version, *code)


def privileges() -> list[str]:
    """What this process may do: its user, capabilities, limits and filters, and what the kernel lets it try."""
    status = [line for line in _read_fact("/proc/self/status").splitlines() if line.startswith(_STATUS)]
    limits = [f"{kind} {resource.getrlimit(kind)[1]}" for kind in _LIMITS]
    users = _namespace("user")
    return [f"{os.geteuid()}:{os.getegid()}", *status, *limits, users, *map(_read_fact, _FACTS), *_answers()]


def _answers() -> list[str]:
    """What the kernel, or a filter before it, answers to calls that change nothing.

    A filter may decide by the arguments, so each namespace is asked for, beside one that does not exist.
    """
    if not system.HAS_SUBREAPER:
        return []
    calls: tuple[tuple[str, tuple[int | None, ...]], ...] = (
        ("syscall", (_CREATE_RULESET, None, 0, _ASK_VERSION)),
        ("syscall", (_ADD_RULE, _NO_SUCH_FILE, 0, None, _NO_SUCH_FLAGS)),
        ("syscall", (_RESTRICT_SELF, _NO_SUCH_FILE, _NO_SUCH_FLAGS)),
        ("prctl", (system.SECCOMP, _NO_SUCH_FLAGS, 0, 0, 0)),
        *(("unshare", (namespace | _NO_SUCH_NAMESPACE,)) for namespace in _NAMESPACES),
        ("mount", (None, None, None, 0, None)),
    )
    answers = []
    for function, arguments in calls:
        try:
            answers.append(f"{function} {system.invoke(function, *arguments)}")
        except OSError as problem:
            answers.append(f"{function} {problem.errno}")
    return [*answers, f"mounts {system.can_arrange_mounts()}"]


def _read_fact(path: str) -> str:
    """The text of a file of the kernel, empty if there is none; raises OSError if the host has no descriptor left."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno in _EXHAUSTED:
            raise
        return ""
    try:
        return os.read(descriptor, _MAX_FACT_BYTES).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


# The jobs of the probe: each tries what is forbidden, against files and sockets made for it.

# Its source is run as a job.
_ATTEMPTS = Path(__file__).with_name("child") / "escape_attempts.py"
# Not below TMPDIR: the path of a socket has at most 107 bytes.
_SHORT_PATH = "/tmp"  # noqa: S108 - a private folder is created in it
_FOLDER_PREFIX = "toolcrib-probe-"
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECONDS = 20.0
_SHORT_SECONDS = 0.3
# A busy machine may end a job once before it answers, and the findings last until the next boot.
_TRIES = 2
_NO_ANSWER = (ValueError, KeyError, TypeError)
_BOUNDS = frozenset({"mem", "pids", "disk", "time", "reap"})
_SMALL_MEMORY, _SMALL_DISK, _FEW_PROCESSES = 64 * MEGABYTE, 8 * MEGABYTE, 8
_GIVEN = {*CLEAN_ENVIRONMENT, "TMPDIR", "HOME"}
# A Python that runs as a program sets these itself.
_OF_AN_INTERPRETER = {"LC_CTYPE"}

_EAT = b"""
import os, time
def main():
    for _ in range(5):
        if os.fork() == 0:
            kept = b"x" * 20_000_000
            break
    time.sleep(20)
"""
_MULTIPLY = b"""
import os, time
def main():
    for _ in range(400):
        if os.fork() == 0:
            time.sleep(20)
    time.sleep(20)
"""
_FILL = b"""
import os, time
def main():
    for number in range(8):
        with open(os.environ["TMPDIR"] + f"/{number}", "wb") as file:
            file.write(bytes(4_000_000))
    time.sleep(2)
    return "it was all written"
"""
_STAY = b"""
import os, signal, time
def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
    time.sleep(20)
"""


_NAME = b"""
import os
def main(folder):
    made = []
    for name in (".git", ".env", "conftest.py", "HEAD"):
        try:
            os.close(os.open(folder + "/" + name, os.O_CREAT | os.O_WRONLY))
        except OSError:
            continue
        made.append(name)
    return made
"""


async def try_everything(run_job: RunJob, profiles: Sequence[str]) -> dict[str, Trial]:
    """The findings for each profile; empty for a profile whose jobs do not run at all.

    Raises ToolError if the host has no resources for the probe now.
    """
    import asyncio

    with _outside() as (folder, facts):
        tried = await asyncio.gather(*(_try_acts(run_job, profile, folder, facts) for profile in profiles))
        bounded = await _try_bounds(run_job, folder)
        if bounded != _BOUNDS:  # a busy machine may be late once
            bounded = await _try_bounds(run_job, folder)
        broken = frozenset({"fs"}) if await _makes_protected_names(run_job, folder) else frozenset()
    return {
        profile: (_join(kept, bounded) - broken if layers else frozenset(), layers)
        for profile, (kept, layers) in zip(profiles, tried, strict=True)
    }


def _join(kept: frozenset[str], bounded: frozenset[str]) -> frozenset[str]:
    """All guarantees that hold; memory must hold against both the attempts and the limit."""
    everything = kept | bounded
    return everything if "mem" in kept & bounded else everything - {"mem"}


@contextlib.contextmanager
def _outside() -> Iterator[tuple[Path, dict[str, object]]]:
    """A folder and listeners that no job may reach, beside the folder that the jobs run from."""
    with contextlib.ExitStack() as opened:
        # Before the folder, and closed before it is removed: removing it takes descriptors, and there may be no others.
        tcp = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        named = {kind: opened.enter_context(socket.socket(socket.AF_UNIX)) for kind in ("stream", "abstract")}
        datagrams = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        with _own_folder() as base, opened.pop_all():
            own, outside = base / "own", base / "outside"
            own.mkdir()
            outside.mkdir()
            for name in ("secret", "spare"):
                (outside / name).write_text("not for jobs", encoding="utf-8")
            abstract = f"{_FOLDER_PREFIX}{os.urandom(8).hex()}"
            for listener, address in (
                (named["stream"], str(own / "stream")),
                (named["abstract"], f"\0{abstract}"),
                (datagrams, str(own / "datagrams")),
            ):
                listener.bind(address)
            for listener in named.values():
                listener.listen()
            yield (
                own,
                {
                    "secret": str(outside / "secret"),
                    "folder": str(outside),
                    "tcp": tcp.getsockname()[1],
                    "udp": udp.getsockname()[1],
                    "stream": str(own / "stream"),
                    "abstract": abstract,
                    "datagrams": str(own / "datagrams"),
                    "host": os.getpid(),
                    "mounts": _namespace("mnt"),
                    "network": _namespace("net"),
                },
            )


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """A new folder with a short path: it is locked while it is used, and one that a killed process left is removed."""
    import shutil
    import tempfile  # these load three libraries for archives, and most calls need no probe

    parent = _SHORT_PATH if os.access(_SHORT_PATH, os.W_OK) else tempfile.gettempdir()
    _remove_abandoned(Path(parent))
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=parent))
    try:
        lock = os.open(folder, _AS_FOLDER)
    except OSError:
        folder.rmdir()  # without a descriptor, unlike all other ways
        raise
    try:
        with contextlib.suppress(OSError):  # a file system without locks: then nothing is taken for abandoned either
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield folder.resolve()
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)  # the next probe tries again


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of probes of this user that were killed."""
    import shutil

    for folder in parent.glob(f"{_FOLDER_PREFIX}*"):
        try:
            descriptor = os.open(folder, _AS_FOLDER)
        except OSError:  # it is gone, belongs to another user or is not a folder
            continue
        try:
            # An empty one may be just made and not locked yet.
            if os.fstat(descriptor).st_uid == os.geteuid() and (folder / "own").is_dir():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use
            continue
        finally:
            os.close(descriptor)


def _namespace(kind: str) -> str:
    """The namespace of this process; empty if unknown."""
    try:
        return str(Path(f"/proc/self/ns/{kind}").readlink())
    except OSError:
        return ""


async def _try_acts(run_job: RunJob, profile: str, folder: Path, facts: dict[str, object]) -> Trial:
    """The guarantees that no attempt broke, and the active layers."""
    import asyncio

    programs = profile == PROGRAM_PROFILE
    known = {**facts, "programs": programs, "environment": sorted(_GIVEN | (_OF_AN_INTERPRETER if programs else set()))}
    code = await asyncio.to_thread(_ATTEMPTS.read_bytes)
    paths = (*LIBRARIES, *SYSTEM) if programs else LIBRARIES
    read = (*present(paths), folder, *python_runtime())
    policy = SandboxPolicy(read=read, programs=programs, network=profile == NETWORK_PROFILE)
    job: Job
    if programs:
        argv = (sys.executable, "-I", "-c", code.decode(), json.dumps(known))
        job = Program(argv=argv, cwd=folder, policy=policy)
    else:
        job = PythonFile(
            path=folder / "attempts.py", code=code, entry="main", arguments={"facts": known}, policy=policy
        )
    for _ in range(_TRIES):
        ended = await _run(run_job, job)
        if ended is None:
            break
        with contextlib.suppress(*_NO_ANSWER):
            found = json.loads(ended.stdout) if programs else json.loads(ended.result or b"")["value"]
            through: dict[str, list[str]] = found["through"]
            return frozenset(name for name, acts in through.items() if not acts), tuple(found["layers"])
    return frozenset(), ()


async def _try_bounds(run_job: RunJob, folder: Path) -> frozenset[str]:
    """The guarantees about resource limits and lifetime, which are the same for every profile."""
    import asyncio

    read = (*present(LIBRARIES), folder, *python_runtime())
    policy = SandboxPolicy(read=read, memory_bytes=_SMALL_MEMORY, disk_bytes=_SMALL_DISK, processes=_FEW_PROCESSES)

    async def run(code: bytes, policy: SandboxPolicy, seconds: float = _SECONDS) -> CompletedJob | None:
        job = PythonFile(path=folder / "bounds.py", code=code, entry="main", arguments={}, policy=policy)
        return await _run(run_job, job, seconds)

    memory, processes, disk, stay = await asyncio.gather(
        run(_EAT, policy), run(_MULTIPLY, policy), run(_FILL, policy), run(_STAY, policy, _SHORT_SECONDS)
    )
    kept = {
        "mem": memory is not None and memory.exceeded == "mem",
        "pids": processes is not None and processes.exceeded == "pids",
        "disk": disk is not None and (disk.exceeded == "disk" or b"No space left" in (disk.result or b"")),
        "time": stay is not None and stay.timed_out,
        "reap": stay is not None and stay.gone,
    }
    return frozenset(name for name, holds in kept.items() if holds)


async def _makes_protected_names(run_job: RunJob, folder: Path) -> bool:
    """Whether a job that may write can create a protected name; False where no job can write."""
    writable = folder / "writable"
    writable.mkdir(exist_ok=True)
    policy = SandboxPolicy(read=(*present(LIBRARIES), *python_runtime()), write=(writable,))
    facts = {"folder": str(writable)}
    job = PythonFile(path=folder / "names.py", code=_NAME, entry="main", arguments=facts, policy=policy)
    for _ in range(_TRIES):
        ended = await _run(run_job, job)
        if ended is None:
            return False
        with contextlib.suppress(*_NO_ANSWER):
            return bool(json.loads(ended.result or b"")["value"])
    return True


async def _run(run_job: RunJob, job: Job, seconds: float = _SECONDS) -> CompletedJob | None:
    try:
        return await run_job(job, deadline=time.monotonic() + seconds, proxy=_silence if job.policy.network else None)
    except ToolError as problem:
        if problem.retryable:  # this says nothing about the isolation
            raise
        return None


@contextlib.asynccontextmanager
async def _silence(listener: socket.socket) -> AsyncIterator[None]:
    """A proxy that never answers."""
    with listener:
        yield
