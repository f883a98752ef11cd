"""The Pythons that run files: the one that runs Toolcrib, and those of environments that a tool has to itself.

Nothing that lies in an environment is ever started here, since its author may be anybody: what is started is the
interpreter that the environment was made from, and the environment's packages are given to it as folders.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from toolcrib.ground.sandbox.jobs import site_paths
from toolcrib.model.errors import Kind, ToolError

OLDEST = (3, 11)

_ASK_SECONDS = 20.0
_PROGRAM = re.compile(r"python(3(\.\d+t?)?)?")
_SETTINGS_FILE = "pyvenv.cfg"
_MAX_SETTINGS_BYTES = 16_000
_MAX_PATH_FILES = 200

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


def read_interpreter(path: Path, *, untrusted: Path | None = None) -> Interpreter:
    """The interpreter at `path`, which may stand in a virtual environment.

    Refused with EXECUTOR_NOT_FOUND: what is not there, what is too old, and a program that lies under `untrusted`.
    """
    program = _find_program(path, untrusted)
    prefix = path.absolute().parent.parent
    settings = prefix / _SETTINGS_FILE
    is_environment = settings.is_file()
    answer = _ask(program, prefix, program.stat().st_mtime_ns)
    if answer.version < OLDEST:
        found, needed = _spell(answer.version), _spell(OLDEST)
        raise _refusal(
            f"{path} is Python {found}, and scripts need {needed} or newer; make it again with a newer Python"
        )
    folders = list(answer.packages if is_environment else answer.own)
    if is_environment and _sees_system(settings):
        folders += answer.own
    return Interpreter(
        program=program,
        executable=path.absolute(),
        prefix=prefix if is_environment else Path(answer.base),
        base=Path(answer.base),
        version=answer.version,
        packages=tuple(dict.fromkeys(_with_path_files(folders))),
    )


def _find_program(path: Path, untrusted: Path | None) -> Path:
    try:
        program = path.resolve(strict=True)
    except OSError as problem:
        raise _refusal(f"there is no interpreter at {path}; make its environment again") from problem
    if not _PROGRAM.fullmatch(program.name):
        raise _refusal(f"{path} leads to {program}, which is no Python; make its environment again with python -m venv")
    if untrusted is not None and program.is_relative_to(untrusted.resolve()):
        raise _refusal(
            f"{path} leads to a program in the workspace, and nothing of it runs outside of the sandbox; "
            "make its environment with python -m venv --symlinks, from a Python that is installed elsewhere"
        )
    return program


@functools.lru_cache(maxsize=64)
def _ask(program: Path, prefix: Path, changed: int) -> _Answer:  # noqa: ARG001 - another time is another question
    """What a program that was last changed then says of itself."""
    try:
        asked = subprocess.run(  # noqa: S603 - an interpreter that lies outside of every workspace, with our own question
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


def _sees_system(settings: Path) -> bool:
    with settings.open("rb") as file:
        lines = file.read(_MAX_SETTINGS_BYTES).decode("utf-8", "replace").lower().splitlines()
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    return {name.strip(): value.strip() for name, value in facts.items()}.get("include-system-site-packages") == "true"


def _with_path_files(folders: list[str]) -> list[str]:
    """The folders and those that files named *.pth in them add; lines of such files that are code stay unread."""
    found = []
    for folder in folders:
        found.append(folder)
        for file in sorted(Path(folder).glob("*.pth"))[:_MAX_PATH_FILES]:
            found += [str(place) for place in _places_in(file)]
    return found


def _places_in(file: Path) -> list[Path]:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    named = [line.strip() for line in lines if line.strip() and not line.startswith(("#", "import ", "import\t"))]
    return [place for name in named if "\0" not in name and os.path.isdir(place := file.parent / name)]  # noqa: PTH112 - unlike Path, quiet about any name


def _spell(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _refusal(message: str) -> ToolError:
    return ToolError(Kind.EXECUTOR_NOT_FOUND, message)
