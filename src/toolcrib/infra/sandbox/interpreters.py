"""The Pythons that run files: the one that runs Toolcrib, and those of environments that a tool has to itself.

Nothing that lies in an environment is ever started here, since its author may be anybody: what is started is the
interpreter that the environment was made from, if it is one that the operator has installed, and the environment's
packages are given to it as folders.
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

from toolcrib.infra.files.disk import read_small
from toolcrib.infra.sandbox.jobs import Interpreter, site_paths
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# What was installed for the tools of a project, environments of Python and modules of Node, and never outside of it.
#
# Tools that may read nothing else read these, so a link counts only if it leads to a folder of the same kind in the same
# project.

logger = logging.getLogger("toolcrib.sandbox")

NODE_MODULES = "node_modules"
ENVIRONMENTS = (".venv", "venv")

_SETTINGS_FILE = "pyvenv.cfg"
_MAX_SETTINGS_BYTES = 16_000


@cache
def own_programs() -> frozenset[Path]:
    """The Python that runs Toolcrib, and the one that its environment was made from."""
    base = getattr(sys, "_base_executable", sys.executable)
    return frozenset(Path(program).resolve() for program in (sys.executable, base))


def nearest_modules(folders: Sequence[Path]) -> Path | None:
    """The modules of the first folder that has some; the last of the folders holds the whole project."""
    for folder in folders:
        place = folder / NODE_MODULES
        if os.path.isdir(place) and _stays(place, (NODE_MODULES,), folders[-1]):  # noqa: PTH112 - quiet, unlike Path
            return place
    return None


def nearest_environment(folders: Sequence[Path]) -> Path | None:
    """The environment of the first folder that has one; the last of the folders holds the whole project."""
    places = (folder / name for folder in folders for name in ENVIRONMENTS)
    return next((place for place in places if is_environment(place) and _stays(place, ENVIRONMENTS, folders[-1])), None)


def is_environment(folder: Path) -> bool:
    """Whether it is an environment of Python."""
    return settings_of(folder) is not None


def settings_of(folder: Path) -> bytes | None:
    """What an environment of Python says of itself; None if the folder is none."""
    return read_small(folder / _SETTINGS_FILE, _MAX_SETTINGS_BYTES)


def _stays(place: Path, names: tuple[str, ...], project: Path) -> bool:
    """Whether it is in the project and what its name says, wherever it leads."""
    real, top = place.resolve(), project.resolve()
    if real.name in names and real != top and real.is_relative_to(top):
        return True
    logger.warning("%s leads to %s and is passed over; install it in the project itself", place, real)
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
    """What an interpreter says of itself; `packages` are those of the environment that it was asked about."""

    version: tuple[int, ...]
    base: str
    own: list[str]
    packages: list[str]


@functools.cache
def own_interpreter() -> Interpreter:
    """The one that runs Toolcrib."""
    return Interpreter(
        program=Path(sys.executable),
        executable=Path(sys.executable),
        prefix=Path(sys.prefix),
        base=Path(sys.base_prefix),
        version=sys.version_info[:3],
        packages=tuple(site_paths()),
    )


def read_interpreter(path: Path, *, search_path: str = "", chosen: Path | None = None) -> Interpreter:
    """The interpreter at `path`, which may stand in a virtual environment.

    What it leads to must be the Python that runs Toolcrib, one along the operator's `search_path`, or the one that was
    `chosen` when the operator had the environment made. Everything else is refused with EXECUTOR_NOT_FOUND and never
    started, and so is what is too old.
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
        f"{path} leads to {program}, which nobody has installed for the operator, and so it is not started; "
        "make the environment again from a Python that is on the operator's PATH, "
        "or declare what the file needs in it and run crib prepare"
    )


def _installed(search_path: str) -> Iterator[Path]:
    """The Pythons along the operator's search path; relative entries would mean whatever folder the host stands in."""
    for folder in search_path.split(os.pathsep):
        for name in _NAMES if folder.startswith("/") else ():
            program = Path(folder, name)
            if os.path.isfile(program):  # noqa: PTH113 - unlike Path, quiet about folders that may not be read
                yield program.resolve()


@functools.lru_cache(maxsize=64)
def _ask(program: Path, prefix: Path, changed: int) -> _Answer:  # noqa: ARG001 - another time is another question
    """What a program that was last changed then says of itself."""
    try:
        asked = subprocess.run(  # noqa: S603 - one that the operator has installed, with our own question
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
    """The folders, and those that files named *.pth in them add, as far as they lead to somewhere below the roots.

    What is named here can be read by a tool that may read nothing else.
    """
    real_roots = [root.resolve() for root in roots]
    for folder in folders:
        if not _is_below(Path(folder), real_roots):
            continue
        yield folder
        for place in itertools.islice(_named_in_path_files(Path(folder)), _MAX_PATH_LINES):
            if os.path.isdir(place) and _is_below(place, real_roots):  # noqa: PTH112 - unlike Path, quiet about any name
                yield str(place)


def _named_in_path_files(folder: Path) -> Iterator[Path]:
    """What the lines of such files name; those that are code stay unread."""
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
