"""Find the Pythons that run files: the one that runs Toolcrib, and those of a tool's own virtual environment.

Nothing inside an environment is ever executed here, because its author is untrusted. Toolcrib executes the interpreter
that the environment was created from, if the operator has installed it, and adds the environment's packages as import
folders.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_small
from toolcrib.infra.sandbox.jobs import Interpreter, site_paths
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# Installed dependencies of a project: Python environments and Node modules.
#
# Tools without file access can read these, so a link counts only if it leads to a folder of the same kind in the same
# project.

logger = logging.getLogger("toolcrib.sandbox")

NODE_MODULES = "node_modules"
ENVIRONMENTS = (".venv", "venv")

_SETTINGS_FILE = "pyvenv.cfg"
_MAX_SETTINGS_BYTES = 16_000


@cache
def own_programs() -> frozenset[Path]:
    """The Python that runs Toolcrib, and the one that its environment was created from."""
    base = getattr(sys, "_base_executable", sys.executable)
    return frozenset(Path(program).resolve() for program in (sys.executable, base))


def nearest_modules(folders: Sequence[Path]) -> Path | None:
    """The node_modules of the first folder that has one; the last of the folders is the project."""
    for folder in folders:
        place = folder / NODE_MODULES
        if os.path.isdir(place) and _stays(place, (NODE_MODULES,), folders[-1]):  # noqa: PTH112 - unlike Path, does not raise
            return place
    return None


def nearest_environment(folders: Sequence[Path]) -> Path | None:
    """The environment of the first folder that has one; the last of the folders is the project."""
    places = (folder / name for folder in folders for name in ENVIRONMENTS)
    return next((place for place in places if is_environment(place) and _stays(place, ENVIRONMENTS, folders[-1])), None)


def is_environment(folder: Path) -> bool:
    """Whether it is a Python environment."""
    return settings_of(folder) is not None


def settings_of(folder: Path) -> bytes | None:
    """The pyvenv.cfg of an environment; None if the folder is not one."""
    return read_small(folder / _SETTINGS_FILE, _MAX_SETTINGS_BYTES)


def _stays(place: Path, names: tuple[str, ...], project: Path) -> bool:
    """Whether it resolves to a folder of this kind inside the project."""
    real, top = place.resolve(), project.resolve()
    if real.name in names and real != top and real.is_relative_to(top):
        return True
    logger.warning("%s leads to %s and is ignored; install it in the project itself", place, real)
    return False


OLDEST = (3, 11)
NEWEST_MINOR = 20

_NAMES = ("python3", "python", *(f"python3.{minor}" for minor in range(NEWEST_MINOR, -1, -1)))
_ASK_SECONDS = 20.0
_MAX_PATH_FILES = 200
_MAX_PATH_FILE_BYTES = 64_000
_MAX_PATH_LINES = 1_000

_QUESTION = """\
import json, site, sys, sysconfig
prefix = sys.argv[1]
scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
places = {"base": prefix, "platbase": prefix}
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "base": sys.base_prefix,
    "own": site.getsitepackages([sys.base_prefix]),
    "packages": [sysconfig.get_path(name, scheme, places) for name in ("purelib", "platlib")],
}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """What an interpreter reports about itself; `packages` are those of the environment in question."""

    version: tuple[int, ...]
    base: str
    own: list[str]
    packages: list[str]


@functools.cache
def own_interpreter() -> Interpreter:
    """The interpreter that runs Toolcrib."""
    return Interpreter(
        program=Path(sys.executable),
        executable=Path(sys.executable),
        prefix=Path(sys.prefix),
        base=Path(sys.base_prefix),
        version=sys.version_info[:3],
        packages=tuple(site_paths()),
    )


def read_interpreter(path: Path, *, search_path: str = "", chosen: Path | None = None) -> Interpreter:
    """The interpreter at `path`, which may be in a virtual environment.

    It must resolve to the Python that runs Toolcrib, one on the operator's `search_path`, or the one that was `chosen`
    when the operator had the environment created. Anything else, and a version that is too old, is refused with
    EXECUTOR_NOT_FOUND and never executed.
    """
    program = _find_program(path, search_path, chosen)
    prefix = path.absolute().parent.parent
    settings = settings_of(prefix)
    answer = _ask(program, prefix, program.stat().st_mtime_ns)
    if answer.version < OLDEST:
        found, needed = _spell(answer.version), _spell(OLDEST)
        raise _refusal(
            f"{path} is Python {found}, and scripts need {needed} or newer; make it again with a newer Python"
        )
    folders = answer.own if settings is None else answer.packages
    if settings is not None and _sees_system(settings):
        folders = [*folders, *answer.own]
    base = Path(answer.base)
    prefix = base if settings is None else prefix
    return Interpreter(
        program=program,
        executable=path.absolute(),
        prefix=prefix,
        base=base,
        version=answer.version,
        packages=tuple(dict.fromkeys(_places(folders, (prefix, base, *map(Path, answer.own))))),
    )


def _find_program(path: Path, search_path: str, chosen: Path | None) -> Path:
    try:
        program = path.resolve(strict=True)
    except (OSError, RuntimeError) as problem:  # RuntimeError: a loop of links
        raise _refusal(f"there is no interpreter at {path}; make its environment again") from problem
    if program in own_programs() or program == chosen or program in _installed(search_path):
        return program
    raise _refusal(
        f"{path} leads to {program}, which the operator has not installed, so it is not started; "
        "make the environment again from a Python that is on the operator's PATH, "
        "or declare what the file needs in it and run crib prepare"
    )


def _installed(search_path: str) -> Iterator[Path]:
    """The Pythons on the operator's search path; relative entries depend on the working directory and are skipped."""
    for folder in search_path.split(os.pathsep):
        for name in _NAMES if folder.startswith("/") else ():
            program = Path(folder, name)
            if os.path.isfile(program):  # noqa: PTH113 - unlike Path, does not raise for unreadable folders
                yield program.resolve()


@functools.lru_cache(maxsize=64)
def _ask(program: Path, prefix: Path, changed: int) -> _Answer:  # noqa: ARG001 - part of the cache key
    """Ask a program, last modified at that time, for its version and paths."""
    try:
        asked = subprocess.run(  # noqa: S603 - an interpreter that the operator has installed, running our own code
            [str(program), "-I", "-S", "-X", "utf8", "-c", _QUESTION, str(prefix)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            cwd="/",
            timeout=_ASK_SECONDS,
            check=True,
        )
        facts = json.loads(asked.stdout)
        return _Answer(**{**facts, "version": tuple(facts["version"])})
    except (OSError, subprocess.SubprocessError, LookupError, TypeError, ValueError) as problem:
        reason = f"{program} does not say which Python it is; make its environment again with Python {_spell(OLDEST)} or newer"
        raise _refusal(reason) from problem


def _sees_system(settings: bytes) -> bool:
    lines = settings.decode("utf-8", "replace").lower().splitlines()
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    return {name.strip(): value.strip() for name, value in facts.items()}.get("include-system-site-packages") == "true"


def _places(folders: Sequence[str], roots: Iterable[Path]) -> Iterator[str]:
    """The folders, and those that *.pth files in them add, if they resolve to a path below the roots.

    A tool without file access can read all of these.
    """
    real_roots = [root.resolve() for root in roots]
    for folder in folders:
        if not _is_below(Path(folder), real_roots):
            continue
        yield folder
        for place in itertools.islice(_named_in_path_files(Path(folder)), _MAX_PATH_LINES):
            if os.path.isdir(place) and _is_below(place, real_roots):  # noqa: PTH112 - unlike Path, does not raise for an invalid name
                yield str(place)


def _named_in_path_files(folder: Path) -> Iterator[Path]:
    """The paths in *.pth files; lines with code are ignored."""
    for file in sorted(folder.glob("*.pth"))[:_MAX_PATH_FILES]:
        text = (read_small(file, _MAX_PATH_FILE_BYTES) or b"").decode("utf-8", "replace")
        for line in text.splitlines():
            if line.strip() and "\0" not in line and not line.startswith(("#", "import ", "import\t")):
                yield folder / line.strip()


def _is_below(place: Path, roots: Iterable[Path]) -> bool:
    try:
        return any(map(place.resolve().is_relative_to, roots))
    except (OSError, RuntimeError):  # a loop of links
        return False


def _spell(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _refusal(message: str) -> ToolError:
    return ToolError(Kind.EXECUTOR_NOT_FOUND, message)
