"""A program of the operator, such as a coding agent, writes the tool: sandboxed, writing only in its workspace."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from toolcrib.infra.files import measure_unlinked
from toolcrib.infra.sandbox.child.resource_limits import measure
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import (
    CLEAN_ENVIRONMENT,
    LIBRARIES,
    PROXY_VARIABLES,
    SYSTEM,
    Program,
    SandboxPolicy,
    present,
)
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.command_arguments import check_words
from toolcrib.lib.hidden_text import drop_hidden
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.sandbox.attempt import Proxy
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, WorkspacePolicy
    from toolcrib.model.protocols import MakerTask


STDOUT_CHARACTERS = 2_000
STDERR_CHARACTERS = 1_000
MEASURE_SECONDS = 0.2
SETTING = "builder.command"
SHELL = "/bin/sh"
# The program finds its pipes open and no trace of them in its workspace, where opening them would hold it up.
START = 'exec >"$1" 2>"$2"; rm -f "$1" "$2"; shift 2; exec "$@"'
ISOLATION = "isolation"
LIMITS = {
    "mem": "more memory than it may (setting sandbox.memory_mb)",
    "pids": "more processes than it may (setting sandbox.processes)",
    "disk": "more disk than it may (setting builder.disk_mb)",
}
# A place of the system with more in it than this is not taken apart, but left out.
MAX_ENTRIES = 10_000

MAX_LINES = 200
MAX_LINE_CHARACTERS = 300
# More than is shown, so that a secret at the cut is whole when it is looked for.
KEPT_BYTES = 64 * 1024
_LONGEST_LINE_BYTES = 8 * 1024
_READ_BYTES = 64 * 1024
# As much as a pipe can be made to hold.
_LAST_READS = 16
_OPEN = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class MakerProgram(Protocol):
    """A program that was found: its command line, and what it reads to run."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line; for a script it begins with the interpreter."""

    @property
    def runtime(self) -> tuple[Path, ...]:
        """Its environment, and what is installed beside it."""


class CommandMaker:
    """Runs the operator's program in the workspace of each request, sandboxed.

    It reads the system and its own folder; of the `project`'s folders and of what else is `hidden`, such as the home, it
    sees nothing. It has exactly the `variables` that are listed, as `variable` knows them, and reaches exactly the `hosts`,
    through our proxy. It may change the request and the contract in its workspace:
    those are copies, which are never read back. `find` looks up programs of the operator.
    """

    name = "command"

    def __init__(
        self,
        sandbox: Sandbox,
        workspace_policy: WorkspacePolicy,
        *,
        command: Sequence[str],
        find: Callable[[str], MakerProgram | None],
        egress: Callable[[], Egress],
        project: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
        hosts: Sequence[str] = (),
        variables: Sequence[str] = (),
        variable: Callable[[str], str | None] = lambda _: None,
        disk_bytes: int,
    ) -> None:
        if not command:
            raise SettingsError(f"{SETTING} names no program; write the words that start the maker")
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._command = tuple(command)
        self._find = find
        self._egress = egress
        self._project = tuple(project)
        self._hidden = (*project, *hidden)
        self._hosts = tuple(hosts)
        self._variables = tuple(variables)
        self._variable = variable
        self._disk_bytes = disk_bytes

    def check(self) -> None:
        """Refuse a command that starts nothing, before anything is given to it."""
        try:
            self._found()
        except ToolError as problem:
            raise SettingsError(problem.message) from problem

    async def make(self, task: MakerTask) -> bool:
        """Run the program until it ends; True if it ended well."""
        masking, folder = Masking(), task.folder.resolve()
        stdout, stderr, lines = _Tail(), _Tail(), _Lines(task.say, masking.hide)

        def take_stdout(data: bytes) -> None:
            stdout.take(data)
            lines.take(data)

        with _Pipe(folder, take_stdout) as out, _Pipe(folder, stderr.take) as err:
            job = self._job(folder, self._environment(masking, task.say), (str(out.path), str(err.path)))
            ended = await self._run_program(job, task.deadline)
        lines.finish()
        printed = {
            "stdout": stdout.show(STDOUT_CHARACTERS, masking.hide),
            "stderr": stderr.show(STDERR_CHARACTERS, masking.hide),
        }
        self._refuse_bad_end(ended, {name: text for name, text in printed.items() if text})
        return True

    async def close(self) -> None:
        """Nothing is left of a program once it has ended."""

    @property
    def _program(self) -> str:
        return Path(self._command[0]).name

    def _job(self, folder: Path, variables: Mapping[str, str], pipes: tuple[str, str]) -> Program:
        """The program, printing to these pipes."""
        found = self._found()
        path = f"{Path(found.argv[0]).parent}:{CLEAN_ENVIRONMENT['PATH']}"
        argv = (SHELL, "-c", START, "sh", *pipes, *found.argv, *self._command[1:])
        environment = {**CLEAN_ENVIRONMENT, "PATH": path, **variables}
        check_words([*argv, *environment.values()], SETTING)
        policy = _build_policy(
            folder,
            self._runtime(found),
            self._workspace_policy,
            hidden=self._hidden,
            network=bool(self._hosts),
            disk_bytes=self._disk_bytes,
        )
        return Program(argv=argv, cwd=folder, environment=environment, policy=policy)

    def _found(self) -> MakerProgram:
        """The program, unless it or what runs it lies where tools write."""
        command = self._command[0]
        if "/" in command and not command.startswith("/"):
            raise ToolError(
                Kind.EXECUTOR_NOT_FOUND, f"{SETTING}: {command!r:.200} is a relative path; write its absolute path"
            )
        for word in filter(_is_path, self._command):
            self._refuse_from_project(Path(word))
        found = self._find(command)
        if found is None:
            message = f"{SETTING}: the program {command!r:.200} was not found; install it, or write its absolute path"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        for word in filter(_is_path, found.argv):
            self._refuse_from_project(Path(word))
        return found

    def _refuse_from_project(self, path: Path) -> None:
        if lies_in_project(path, self._project):
            message = f"{SETTING}: {path} lies in the project, where tools write; keep it elsewhere"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)

    def _runtime(self, found: MakerProgram) -> tuple[Path, ...]:
        """What it reads to run: what is installed for it, and what the command names, with what lies beside it."""
        words = [Path(word) for word in (*found.argv, *self._command[1:]) if _is_path(word)]
        beside = [word.resolve().parent for word in words if word.is_file()]
        installed = [place for place in found.runtime if not lies_in_project(place, self._project)]
        return (*installed, *words, *map(Path.resolve, words), *beside)

    def _environment(self, masking: Masking, say: Callable[[str], None]) -> dict[str, str]:
        """The listed variables, whose values are masked from now on, and the address of the proxy if hosts are allowed."""
        given: dict[str, str] = {}
        for name in self._variables:
            value = self._variable(name)
            if not value:
                say(f"builder.variables lists {name}, which is neither set nor a secret")
                continue
            masking.add(value)
            given[name] = value
        return {**given, **(PROXY_VARIABLES if self._hosts else {})}

    async def _run_program(self, job: Program, deadline: float) -> CompletedJob:
        """Run it, and measure all the while what it writes."""
        strike = kill_time(deadline)
        proxy = self._proxy(strike) if job.policy.network else None
        running = asyncio.ensure_future(self._sandbox.run(job, deadline=strike, proxy=proxy))
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=MEASURE_SECONDS)
                await self._refuse_full_disk(job.cwd)
            return running.result()
        finally:
            running.cancel()
            # Gathered, so that what it raises after all is not reported as forgotten.
            await asyncio.gather(running, return_exceptions=True)

    def _proxy(self, deadline: float) -> Proxy:
        return self._egress().proxy(parse_hosts(self._hosts, "the setting builder.hosts"), deadline=deadline)

    async def _refuse_full_disk(self, folder: Path) -> None:
        if await asyncio.to_thread(_takes_more, str(folder), self._disk_bytes):
            raise self._over_limit("disk")

    def _refuse_bad_end(self, ended: CompletedJob, printed: dict[str, str]) -> None:
        """Raise ToolError unless the program ended by itself and well."""
        if ended.cannot_start:
            raise ToolError(
                Kind.EXECUTOR_NOT_FOUND, f"{SETTING}: {self._program} cannot be started: {ended.cannot_start}"
            )
        if ended.timed_out:
            message = f"{self._program} did not finish in time (setting builder.seconds)"
            raise ToolError(Kind.TIMEOUT, _with_reason(message, printed), details=printed)
        if ended.exceeded == ISOLATION:
            message = f"a protected path changed while {self._program} ran; {self._program} was killed"
            raise ToolError(Kind.TRANSIENT, message, retryable=True, details=printed)
        if ended.exceeded:
            raise self._over_limit(ended.exceeded, printed)
        if ended.exit_code == 0:
            return
        end = f"signal {ended.signal}" if ended.exit_code is None else f"exit code {ended.exit_code}"
        raise ToolError(Kind.PERMANENT, _with_reason(f"{self._program} ended with {end}", printed), details=printed)

    def _over_limit(self, limit: str, printed: Mapping[str, str] | None = None) -> ToolError:
        message = f"{self._program} used {LIMITS.get(limit, limit)}; it was killed"
        return ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit, **(printed or {})})


class _Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def take(self, data: bytes) -> None:
        """Append data."""
        self._kept += data
        del self._kept[:-KEPT_BYTES]

    def show(self, characters: int, hide: Callable[[str], str]) -> str:
        """Its last characters for a message; secrets are masked before it is cut, so that no part of one is left."""
        return hide(drop_hidden(self._kept.decode("utf-8", "replace"))).strip()[-characters:]


class _Lines:
    """Reports the complete lines of a stream, limited in number and length."""

    def __init__(self, say: Callable[[str], None], hide: Callable[[str], str]) -> None:
        self._say = say
        self._hide = hide
        self._begun = bytearray()
        self._told = 0

    def take(self, data: bytes) -> None:
        """Append data."""
        for line in data.splitlines(keepends=True):
            if self._told > MAX_LINES:
                return
            space = _LONGEST_LINE_BYTES - len(self._begun)
            self._begun += line[:space]
            if line.endswith((b"\n", b"\r")):
                self.finish()

    def finish(self) -> None:
        """Report the line that was begun."""
        text = self._hide(drop_hidden(self._begun.decode("utf-8", "replace"))).strip()[:MAX_LINE_CHARACTERS]
        self._begun.clear()
        if not text or self._told > MAX_LINES:
            return
        self._told += 1
        self._say(text if self._told <= MAX_LINES else "further output is not shown")


class _Pipe:
    """A named pipe in a folder, for a program that opens it; the running loop reads it and passes the data on."""

    def __init__(self, folder: Path, on_data: Callable[[bytes], None]) -> None:
        self.path = folder / f".printing-{os.urandom(8).hex()}"
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        os.mkfifo(self.path, 0o600)
        # Opened for writing too: so a writer never blocks on opening it, and it has no end of file before we close it.
        self._descriptor = os.open(self.path, _OPEN)
        self._loop.add_reader(self._descriptor, self._take)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Read what is left in it, and close it."""
        self._loop.remove_reader(self._descriptor)
        for _ in range(_LAST_READS):
            if not self._take():
                break
        os.close(self._descriptor)
        with suppress(OSError):  # the program has removed it
            self.path.unlink()

    def _take(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        self._on_data(data)
        return True


def _build_policy(
    folder: Path,
    runtime: Iterable[Path],
    workspace_policy: WorkspacePolicy,
    *,
    hidden: Sequence[Path],
    network: bool,
    disk_bytes: int,
) -> SandboxPolicy:
    """The sandbox of a program that writes in the folder; `runtime` is what else it reads, and `hidden` what it never sees.

    No place is opened and then closed in part: what is hidden is not opened, so that nothing depends on mounts. Of the
    runtime nothing is opened that holds something hidden, such as the folder of a program that lies in a home.
    """
    secluded = [place.resolve() for place in hidden]
    system = [part for place in present((*LIBRARIES, *SYSTEM)) for part in _around(place, secluded)]
    own = [place for place in runtime if _is_apart(place, secluded)]
    return SandboxPolicy(
        read=tuple(dict.fromkeys((*system, *own, folder))),
        write=(folder,),
        programs=True,
        network=network,
        memory_bytes=workspace_policy.memory_bytes,
        processes=workspace_policy.processes,
        disk_bytes=disk_bytes,
    )


def lies_in_project(path: Path, project: Sequence[Path]) -> bool:
    """Whether it lies where tools write, by its name or where it leads.

    The Python that runs Toolcrib may lie there too, and no tool can write to that.
    """
    own = [prefix for prefix in (Path(sys.prefix), Path(sys.base_prefix)) if _is_below(prefix, project)]
    return _is_below(path, project) and not any(map(path.is_relative_to, own))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    spellings = (path, path.resolve())
    places = [place for folder in folders for place in (folder, folder.resolve())]
    return any(each.is_relative_to(place) for place in places for each in spellings)


def _is_apart(place: Path, hidden: Sequence[Path]) -> bool:
    """Whether none of the hidden places can be seen from here."""
    real = place.resolve()
    return not any(each.is_relative_to(real) for each in hidden)


def _around(place: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """The place, or where something hidden lies in it, everything around that; no links, which could lead there."""
    if _is_apart(place, hidden):
        yield place
        return
    if place in hidden or not place.is_dir():
        return
    entries = list(islice(place.iterdir(), MAX_ENTRIES + 1))
    if len(entries) <= MAX_ENTRIES:
        for entry in sorted(entries):
            if not entry.is_symlink():
                yield from _around(entry, hidden)


def _takes_more(folder: str, limit: int) -> bool:
    """Whether what lies in the folder, or lay there and is still open, takes more than that."""
    named = measure(folder, limit)
    return named > limit or named + measure_unlinked(folder) > limit


def _is_path(word: str) -> bool:
    return word.startswith("/") and "\0" not in word and Path(word).exists()


def _with_reason(message: str, printed: Mapping[str, str]) -> str:
    """The message, with the end of what the program said about it."""
    reason = printed.get("stderr") or printed.get("stdout")
    return f"{message}: {reason}" if reason else message
