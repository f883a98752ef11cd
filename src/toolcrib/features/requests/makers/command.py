"""A program of the operator's writes the tool, such as a coding agent: behind walls, with its workspace to write in."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.requests.makers.foreign_text import Lines, Pipe, Tail
from toolcrib.infra.sandbox.child.resource_limits import measure
from toolcrib.infra.sandbox.host import strike_time
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, LIBRARIES, PROXY_VARIABLES, SYSTEM, Program, Walls, present
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.command_arguments import check_words
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.sandbox.attempt import Proxy
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import Ended, Premises
    from toolcrib.model.protocols import Commission


# MERGED toolcrib.makers.seclusion

# The walls around a maker's program: the system and the program itself are read, the workspace is written, all else is closed.

# A place of the system with more in it than this is not taken apart, but left out.
MAX_ENTRIES = 10_000


def build_maker_walls(
    folder: Path, runtime: Iterable[Path], premises: Premises, *, hidden: Sequence[Path], network: bool, disk_bytes: int
) -> Walls:
    """The walls of a program that writes in the folder; `runtime` is what it reads besides, and `hidden` what it never sees.

    No place is opened and then closed in part: what is hidden is not opened, so that nothing depends on mounts. Of the
    runtime nothing is opened that holds something hidden, such as the folder of a program that lies in a home.
    """
    secluded = [place.resolve() for place in hidden]
    system = [part for place in present((*LIBRARIES, *SYSTEM)) for part in _around(place, secluded)]
    own = [place for place in runtime if _is_apart(place, secluded)]
    return Walls(
        read=tuple(dict.fromkeys((*system, *own, folder))),
        write=(folder,),
        programs=True,
        network=network,
        memory_bytes=premises.memory_bytes,
        processes=premises.processes,
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


# MERGED toolcrib.makers.unnamed

# Files that a program keeps open after it took away their names: they fill the disk, and no folder shows them.

PROCESSES = "/proc"


def measure_unnamed(folder: str) -> int:
    """The bytes on disk of the files that once lay in the folder and that some process still holds open.

    Processes that may not be looked at count nothing; those of a maker are ours. A file that is only mapped is not found.
    """
    found: dict[tuple[int, int], int] = {}
    for descriptor in _open_files(f"{folder.rstrip('/')}/"):
        with suppress(OSError):  # closed meanwhile
            facts = descriptor.stat()
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


def _open_files(beginning: str) -> Iterator[os.DirEntry[str]]:
    """The descriptors of all processes for what has, or had, a name that begins so."""
    for process in _entries(PROCESSES):
        if process.name.isdecimal():
            yield from (one for one in _entries(f"{process.path}/fd") if _target(one.path).startswith(beginning))


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - there are thousands of them, and a Path for each takes longer
    except OSError:
        return ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing if it is somebody else's or gone."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


STDOUT_LETTERS = 2_000
STDERR_LETTERS = 1_000
MEASURE_SECONDS = 0.2
SETTING = "builder_command"
SHELL = "/bin/sh"
# The program finds its pipes open and no trace of them in its workspace, where opening them would hold it up.
START = 'exec >"$1" 2>"$2"; rm -f "$1" "$2"; shift 2; exec "$@"'
WALLS = "walls"
LIMITS = {
    "mem": "more memory than it may (setting sandbox_memory_mb)",
    "pids": "more processes than it may (setting sandbox_processes)",
    "disk": "more disk than it may (setting builder_disk_mb)",
}


class Found(Protocol):
    """Where a program lies: the words that start it, and what it reads to run."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The words, behind the interpreter that its first line names."""

    @property
    def runtime(self) -> tuple[Path, ...]:
        """Its environment, and what is installed beside it."""


class CommandMaker:
    """Runs the operator's program in the workspace of each commission, and in nothing else.

    It reads the system and its own folder; of the `project`'s folders and of what else is `hidden`, such as the home, it
    sees nothing. It has exactly the `variables` that are listed, as `variable` knows them, and reaches exactly the `hosts`,
    through our proxy. It may change the request and the contract in its workspace:
    those are copies, and nobody reads them back. `find` knows where programs of the operator lie.
    """

    name = "command"

    def __init__(
        self,
        sandbox: Sandbox,
        premises: Premises,
        *,
        command: Sequence[str],
        find: Callable[[str], Found | None],
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
        self._premises = premises
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

    async def make(self, commission: Commission) -> bool:
        """Run the program until it ends; True if it ended well."""
        masking, folder = Masking(), commission.folder.resolve()
        stdout, stderr, lines = Tail(), Tail(), Lines(commission.say, masking.hide)

        def hear(data: bytes) -> None:
            stdout.hear(data)
            lines.hear(data)

        with Pipe(folder, hear) as out, Pipe(folder, stderr.hear) as err:
            job = self._job(folder, self._environment(masking, commission.say), (str(out.path), str(err.path)))
            ended = await self._until_its_end(job, commission.deadline)
        lines.finish()
        printed = {
            "stdout": stdout.show(STDOUT_LETTERS, masking.hide),
            "stderr": stderr.show(STDERR_LETTERS, masking.hide),
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
        walls = build_maker_walls(
            folder,
            self._runtime(found),
            self._premises,
            hidden=self._hidden,
            network=bool(self._hosts),
            disk_bytes=self._disk_bytes,
        )
        return Program(argv=argv, cwd=folder, environment=environment, walls=walls)

    def _found(self) -> Found:
        """The program, unless it or what runs it lies where tools write."""
        command = self._command[0]
        if "/" in command and not command.startswith("/"):
            raise ToolError(
                Kind.EXECUTOR_NOT_FOUND, f"{SETTING}: {command!r:.200} starts nowhere; write its absolute path"
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

    def _runtime(self, found: Found) -> tuple[Path, ...]:
        """What it reads to run: what is installed for it, and what the command names, with what lies beside it."""
        words = [Path(word) for word in (*found.argv, *self._command[1:]) if _is_path(word)]
        beside = [word.resolve().parent for word in words if word.is_file()]
        installed = [place for place in found.runtime if not lies_in_project(place, self._project)]
        return (*installed, *words, *map(Path.resolve, words), *beside)

    def _environment(self, masking: Masking, say: Callable[[str], None]) -> dict[str, str]:
        """The variables that are listed, hidden from now on, and where the only way out is."""
        given: dict[str, str] = {}
        for name in self._variables:
            value = self._variable(name)
            if not value:
                say(f"builder_variables lists {name}, which is neither set nor a secret")
                continue
            masking.add(value)
            given[name] = value
        return {**given, **(PROXY_VARIABLES if self._hosts else {})}

    async def _until_its_end(self, job: Program, deadline: float) -> Ended:
        """Run it, and measure all the while what it writes."""
        strike = strike_time(deadline)
        proxy = self._proxy(strike) if job.walls.network else None
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
        from toolcrib.lib.hosts import parse_hosts

        return self._egress().proxy(parse_hosts(self._hosts, "the setting builder_hosts"), deadline=deadline)

    async def _refuse_full_disk(self, folder: Path) -> None:
        if await asyncio.to_thread(_takes_more, str(folder), self._disk_bytes):
            raise self._over_limit("disk")

    def _refuse_bad_end(self, ended: Ended, printed: dict[str, str]) -> None:
        """Raise ToolError unless the program ended by itself and well."""
        if ended.cannot_start:
            raise ToolError(
                Kind.EXECUTOR_NOT_FOUND, f"{SETTING}: {self._program} cannot be started: {ended.cannot_start}"
            )
        if ended.timed_out:
            message = f"{self._program} was not done when the time for it was over (setting builder_seconds)"
            raise ToolError(Kind.TIMEOUT, _with_reason(message, printed), details=printed)
        if ended.exceeded == WALLS:
            message = f"something that {self._program} is kept from was replaced while it ran; it was ended"
            raise ToolError(Kind.TRANSIENT, message, retryable=True, details=printed)
        if ended.exceeded:
            raise self._over_limit(ended.exceeded, printed)
        if ended.exit_code == 0:
            return
        end = f"signal {ended.signal}" if ended.exit_code is None else f"exit code {ended.exit_code}"
        raise ToolError(Kind.PERMANENT, _with_reason(f"{self._program} ended with {end}", printed), details=printed)

    def _over_limit(self, limit: str, printed: Mapping[str, str] | None = None) -> ToolError:
        message = f"{self._program} used {LIMITS.get(limit, limit)}; it was ended"
        return ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit, **(printed or {})})


def _takes_more(folder: str, limit: int) -> bool:
    """Whether what lies in the folder, or lay there and is still open, takes more than that."""
    named = measure(folder, limit)
    return named > limit or named + measure_unnamed(folder) > limit


def _is_path(word: str) -> bool:
    return word.startswith("/") and "\0" not in word and Path(word).exists()


def _with_reason(message: str, printed: Mapping[str, str]) -> str:
    """The message, with the end of what the program said about it."""
    reason = printed.get("stderr") or printed.get("stdout")
    return f"{message}: {reason}" if reason else message
