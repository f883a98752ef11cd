"""Virtual environments of Python files: found beside the file, or created from what it declares.

A call never installs anything. `prepare` installs, from wheels only, and never starts the Python of an environment that
holds a package, so that no code of a package runs outside the sandbox.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_small
from toolcrib.infra.sandbox.interpreters import (
    NEWEST_MINOR,
    OLDEST,
    nearest_environment,
    own_interpreter,
    read_interpreter,
)
from toolcrib.lib.documents import read_toml
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolcrib.infra.sandbox.jobs import Interpreter


# Inline script metadata: the block `# /// script` of PEP 723.

MAX_DEPENDENCIES = 200

_OPENING = re.compile(r"# /// ([a-zA-Z0-9-]+)")
_CLOSING = "# ///"
_VERSION = r"[0-9A-Za-z.!+_*-]+"
_COMPARISON = rf"(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION}"
_COMPARISONS = rf"{_COMPARISON}(?:\s*,\s*{_COMPARISON})*\s*,?"
# A name with extras, version specifiers and markers; no URL and no option.
_DEPENDENCY = re.compile(
    rf"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[A-Za-z0-9._,\s-]*\])?"
    rf"\s*(?:{_COMPARISONS}|\(\s*{_COMPARISONS}\s*\))?\s*(?:;[ -~]*)?"
)
_PYTHON_requirements = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirements:
    """The packages and the Python versions that a file requires."""

    dependencies: tuple[str, ...] = ()
    python: str = ""

    def allows(self, version: tuple[int, ...]) -> bool:
        """Whether the file runs on this Python."""
        return all(_meets(version, *match.groups()) for match in _PYTHON_requirements.finditer(self.python))


def read_requirements(path: Path, code: bytes) -> Requirements | None:
    """Parse the metadata block of the file, None without one; raises VALIDATION if it is invalid."""
    if _CLOSING.encode() not in code:
        return None
    blocks = [text for kind, text in _blocks(code.decode("utf-8", "replace")) if kind == "script"]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise _refusal(f"{path}: there are {len(blocks)} blocks '# /// script'; write one")
    table = read_toml(blocks[0], f"{path}: # /// script")
    return Requirements(
        dependencies=_dependencies(path, table.get("dependencies", [])),
        python=_python(path, table.get("requires-python", "")),
    )


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Every block of the file: its type, and its text without the comment signs."""
    lines = text.replace("\r\n", "\n").split("\n")
    place = 0
    while place < len(lines):
        opening = _OPENING.fullmatch(lines[place])
        end = _end_of_block(lines, place) if opening else 0
        if opening and end:
            yield opening[1], "\n".join(line[2:] for line in lines[place + 1 : end])
            place = end
        place += 1


def _end_of_block(lines: list[str], opening: int) -> int:
    """The index of the last closing line before the comment ends; 0 if there is none."""
    end = 0
    for place in range(opening + 1, len(lines)):
        line = lines[place]
        if line != "#" and not line.startswith("# "):
            break
        if line == _CLOSING and place > opening + 1:
            end = place
    return end


def _dependencies(path: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise _refusal(f'{path}: dependencies: must be a list of texts; write dependencies = ["name>=1.0"]')
    if len(value) > MAX_DEPENDENCIES:
        raise _refusal(f"{path}: dependencies: {len(value)} entries, the limit is {MAX_DEPENDENCIES}")
    for entry in value:
        if not _DEPENDENCY.fullmatch(entry.strip()):
            raise _refusal(f"{path}: dependencies: {entry!r} is not a name with versions; write 'name>=1.0'")
    return tuple(entry.strip() for entry in value)


def _python(path: Path, value: object) -> str:
    if isinstance(value, str) and all(
        _PYTHON_requirements.fullmatch(part.strip()) for part in value.split(",") if part.strip()
    ):
        return value
    raise _refusal(f"{path}: requires-python: {value!r} names no versions; write requires-python = '>=3.11'")


def _meets(version: tuple[int, ...], comparison: str, written: str, wildcard: str | None) -> bool:
    wanted = tuple(map(int, written.split(".")))
    if comparison == "~=":
        return _pad(version) >= _pad(wanted) and version[: len(wanted) - 1] == wanted[:-1]
    here, there = (version[: len(wanted)], wanted) if wildcard else (_pad(version), _pad(wanted))
    if comparison in {"==", "==="}:
        return here == there
    if comparison == "!=":
        return here != there
    if comparison in {">=", ">"}:
        return here > there or (comparison == ">=" and here == there)
    return here < there or (comparison == "<=" and here == there)


def _pad(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:4]


def _refusal(message: str) -> ToolError:
    return ToolError(Kind.VALIDATION, message)


INSTALL_SECONDS = 600.0

_PYTHON = Path("bin/python")
_MAX_CHOICE_BYTES = 10_000
_MAKING = ".making-"
_LEFT_BEHIND_SECONDS = 24 * 3600.0
_TAIL_LINES = 40
_TAIL_CHARACTERS = 4_000
_QUIET = ("--disable-pip-version-check", "--no-input")
# Files that do not compile, such as those for another Python, are left out.
_COMPILE = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2)"


def find_interpreter(
    path: Path,
    code: bytes,
    *,
    root: Path,
    envs: Path,
    search_path: str,
    name: str = "",
    packages: tuple[str, ...] = (),
) -> Interpreter | None:
    """The Python for the file, None for the one that runs Toolcrib; `name` is the name of the tool.

    A PEP 723 block decides if there is one; otherwise the nearest `.venv` or `venv`, from the file's folder up to
    `root`, if it was created from a Python on the operator's `search_path`. Raises EXECUTOR_NOT_FOUND, with the cure,
    for an environment that does not exist. Without either it is the one that `prepare` made of `packages`, if it did.
    """
    requirements = read_requirements(path, code)
    if requirements is None:
        return _beside(path, root, search_path) or _made_of(packages, envs, search_path)
    if not requirements.dependencies and requirements.allows(own_interpreter().version):
        return None
    place, chosen = _prepared(requirements, envs)
    if place is None or not (place / _PYTHON).exists():
        raise ToolError(
            Kind.EXECUTOR_NOT_FOUND,
            f"{path}: the packages that it declares are not installed yet",
            cure=Cure(f"run: crib prepare {name or path.stem}", "ask the operator to install them"),
        )
    return read_interpreter(place / _PYTHON, search_path=search_path, chosen=chosen)


def prepare(
    path: Path,
    code: bytes,
    *,
    envs: Path,
    search_path: str = "",
    wheels: Path | None = None,
    seconds: float = INSTALL_SECONDS,
    progress: Callable[[str], None] | None = None,
    packages: tuple[str, ...] = (),
) -> Path | None:
    """Install what the file declares, or else `packages`, and return its Python; None if there is nothing to install.

    A Python other than our own is looked up on the operator's `search_path`. `wheels` is a folder to install from
    instead of the index. The environment is created completely or not at all.
    """
    requirements = read_requirements(path, code)
    if requirements is None and packages:
        requirements = Requirements(dependencies=_dependencies(path, list(packages)))
    if requirements is None:
        return None
    interpreter = _choose(path, requirements, search_path)
    if interpreter == own_interpreter() and not requirements.dependencies:
        return None
    place = envs.absolute() / _name_of(requirements, interpreter)
    if not (place / _PYTHON).exists():
        envs.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(envs)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=envs.absolute()))
        try:
            installer = _Installer(str(path), time.monotonic() + seconds, progress)
            _install(installer, making / "new", interpreter, requirements.dependencies, wheels)
            _put_in_place(making / "new", place)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    if interpreter != own_interpreter():
        _remember(requirements, place, envs)
    return place / _PYTHON


def list_packages(python: Path) -> list[str]:
    """What is installed in the environment of a Python that `prepare` returned, each package with its version."""
    import importlib.metadata

    folders = [str(folder) for folder in python.parent.parent.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(path=folders)
    return sorted(f"{package.name} {package.version}" for package in found)


def _made_of(packages: tuple[str, ...], envs: Path, search_path: str) -> Interpreter | None:
    """The environment of packages that no block declares; None if it was not prepared."""
    if not packages:
        return None
    place, chosen = _prepared(Requirements(dependencies=packages), envs)
    if place is None or not (place / _PYTHON).exists():
        return None
    return read_interpreter(place / _PYTHON, search_path=search_path, chosen=chosen)


def _beside(path: Path, root: Path, search_path: str) -> Interpreter | None:
    folder, top = path.absolute().parent, root.absolute()
    folders = [folder, *folder.parents]
    place = nearest_environment(folders[: folders.index(top) + 1] if top in folders else [folder])
    if place is None or place.resolve() == Path(sys.prefix).resolve():
        return None
    return read_interpreter(place / _PYTHON, search_path=search_path)


def _choose(path: Path, requirements: Requirements, search_path: str) -> Interpreter:
    """A Python of this machine that the file supports: our own, else the newest."""
    own = own_interpreter()
    if requirements.allows(own.version):
        return own
    for minor in range(NEWEST_MINOR, OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}", path=search_path) if search_path else None
        if found is None:
            continue
        with contextlib.suppress(ToolError):
            interpreter = read_interpreter(Path(found), search_path=search_path)
            if requirements.allows(interpreter.version):
                return interpreter
    message = f"{path}: no Python on this machine is {requirements.python}; install one, so that python3.X is found"
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)


def _name_of(requirements: Requirements, interpreter: Interpreter) -> str:
    facts = [sorted(requirements.dependencies), str(interpreter.program.resolve()), interpreter.version]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _prepared(requirements: Requirements, envs: Path) -> tuple[Path | None, Path | None]:
    """The path of the environment, and the Python that `prepare` chose for it if it is not our own."""
    own = own_interpreter()
    if requirements.allows(own.version):
        return envs.absolute() / _name_of(requirements, own), None
    choice = read_small(_pointer(requirements, envs), _MAX_CHOICE_BYTES)
    name, _, program = os.fsdecode(choice or b"").partition("\n")
    return (envs.absolute() / name, Path(program)) if program else (None, None)


def _pointer(requirements: Requirements, envs: Path) -> Path:
    """The file that names the environment of these requirements, and its Python if it is not our own."""
    facts = [sorted(requirements.dependencies), requirements.python]
    return envs / f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]}.choice"


def _remember(requirements: Requirements, place: Path, envs: Path) -> None:
    """Store the resolved Python of the environment: the one on the search path may be a shim."""
    with tempfile.NamedTemporaryFile("wb", dir=envs, prefix=_MAKING, delete=False) as file:
        file.write(os.fsencode(f"{place.name}\n{(place / _PYTHON).resolve()}"))
    Path(file.name).replace(_pointer(requirements, envs))


def _install(
    installer: _Installer, place: Path, interpreter: Interpreter, dependencies: Sequence[str], wheels: Path | None
) -> None:
    source = () if wheels is None else ("--no-index", "--find-links", str(wheels.absolute()))
    program, target = str(interpreter.program), str(place / _PYTHON)
    installer.tell(f"making an environment with {program}")
    uv = _find_uv()
    if uv is not None:
        installer.run([uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", program, str(place)])
        command = [uv, "pip", "install", "--no-compile-bytecode", "--python", target]
    elif _has_pip():
        installer.run([program, "-I", "-m", "venv", "--symlinks", "--without-pip", str(place)])
        command = [sys.executable, "-I", "-m", "pip", "--python", target, "install", "--no-compile", *_QUIET]
    else:
        installer.run([program, "-I", "-m", "venv", "--symlinks", str(place)])
        command = [target, "-I", "-m", "pip", "install", "--no-compile", *_QUIET]
    if dependencies:
        made = Path(target).resolve()
        installer.tell(f"installing {', '.join(dependencies)}")
        installer.run([*command, "--only-binary", ":all:", *source, "--", *dependencies])
        if Path(target).resolve() != made:
            message = f"{installer.subject}: one of its packages puts a program in place of Python; leave it out"
            raise ToolError(Kind.PERMANENT, message)
        # Now, because the sandbox may not write bytecode, and not by the Python of the environment, as uv would: it runs
        # the *.pth files and the sitecustomize of the packages.
        installer.run([program, "-I", "-W", "ignore", "-c", _COMPILE, str(place)])


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _find_uv() -> str | None:
    if importlib.util.find_spec("uv") is None:
        return None
    import uv

    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError:
        return None


def _put_in_place(made: Path, place: Path) -> None:
    try:
        made.rename(place)
    except OSError:
        # Another process created the same one meanwhile.
        if not (place / _PYTHON).exists():
            raise


def _sweep(envs: Path) -> None:
    """Remove the remains of installations that were killed."""
    for left in envs.glob(f"{_MAKING}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()


class _Installer:
    """Run the steps of an installation within one deadline, and keep the last lines of their output."""

    def __init__(self, subject: str, deadline: float, progress: Callable[[str], None] | None) -> None:
        self.subject = subject
        self._deadline = deadline
        self._progress = progress
        self._said: collections.deque[str] = collections.deque(maxlen=_TAIL_LINES)

    def tell(self, line: str) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(line)

    def run(self, argv: Sequence[str]) -> None:
        """Run one step; raises ToolError with its output if it fails."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator asked for this, and every argument was checked
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd="/",  # an installer reads settings from its working directory, and a project's are not the operator's
                start_new_session=True,
            )
        except OSError as problem:
            raise ToolError(Kind.PERMANENT, f"{self.subject}: {argv[0]} cannot be started: {problem}") from problem
        late = threading.Event()
        with process, _ended_at(process, self._deadline, late):
            for line in process.stdout or ():
                self._said.append(line.rstrip()[:_TAIL_CHARACTERS])
                self.tell(line.rstrip())
            process.wait()
        if late.is_set():
            raise self._refusal(Kind.TIMEOUT, "installing took too long and was killed")
        if process.returncode != 0:
            raise self._refusal(Kind.PERMANENT, "its packages cannot be installed (only wheels are accepted)")

    def _refusal(self, kind: Kind, reason: str) -> ToolError:
        said = "\n".join(self._said)[-_TAIL_CHARACTERS:]
        return ToolError(kind, f"{self.subject}: {reason}:\n{said}", retryable=kind is Kind.TIMEOUT)


@contextlib.contextmanager
def _ended_at(process: subprocess.Popen[str], deadline: float, late: threading.Event) -> Iterator[None]:
    """Kill the process group at the deadline, or when the block raises."""

    def kill() -> None:
        if process.poll() is not None:
            return
        late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BaseException:
        kill()
        raise
    finally:
        timer.cancel()
