"""Determine the version of Node without running it, and its options: memory, module loading, the proxy.

It is not executed, because it may come from a project.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_small
from toolcrib.infra.sandbox import child
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.infra.programs.executables import Executable, Executables
    from toolcrib.model.tool import Script

COMMONJS = Path(__file__).parent / "commonjs.cjs"
RYE = Path(child.__file__).parent / "rye.cjs"
FUNCTION = RYE.with_name("call.cjs")
FILES = (COMMONJS, RYE, FUNCTION, RYE.with_name("modules.cjs"))
TYPESCRIPT = frozenset({".ts", ".mts", ".cts"})
STRIPS_TYPES = (22, 6)
# From these versions on Node strips types without an option.
STRIPS_BY_ITSELF = {22: 18, 23: 6}
TRANSFORMS = (22, 7)
NAMES = frozenset({"node", "nodejs"})
# Node reads the system's OpenSSL configuration, and exits if it may not.
ENVIRONMENT: Mapping[str, str] = {"OPENSSL_CONF": "/dev/null"}
# The heap is most of Node's memory; the rest is for code and buffers.
HEAP_SHARE = 0.75
MAX_PACKAGE_BYTES = 1_000_000
# Every release contains the URL of its own source.
RELEASE = b"/download/release/v"
MAX_BYTES = 256 * 1024 * 1024
CHUNK_BYTES = 4 * 1024 * 1024
NEEDED = "Node 22.21, or 24 or newer"

_MODULE_SYNTAX = re.compile(rb"^[ \t]*(?:import[ \t]*[\w{*\"']|export[ \t]*[\w{*])", re.MULTILINE)
_COMMONJS_SYNTAX = re.compile(rb"\brequire[ \t]*\(|\bmodule\.exports\b|\bexports\.")
# TypeScript syntax that is not only a type: it has to be compiled.
_TRANSFORMED = re.compile(
    rb"^[ \t]*(?:export[ \t]+)?(?:declare[ \t]+)?(?:const[ \t]+)?(?:enum|namespace)[ \t]+\w"
    rb"|constructor\s*\([^)]*\b(?:public|private|protected|readonly)\b",
    re.MULTILINE,
)
_VERSION = re.compile(re.escape(RELEASE) + rb"(\d{1,4})\.(\d{1,4})\.(\d{1,4})/")
_LONGEST = len(RELEASE) + 16


def is_node(found: Executable) -> bool:
    """Whether the program is Node."""
    return found.program in NAMES


def options(memory_bytes: int, *, rye: bool) -> list[str]:
    """The options before the file; `rye` gives a script the global of that name."""
    heap = f"--max-old-space-size={max(16, int(memory_bytes * HEAP_SHARE) // MEGABYTE)}"
    return [heap, "--require", str(RYE)] if rye else [heap]


def has_packages(near: Iterable[Path]) -> bool:
    """Whether node_modules is installed near a tool."""
    return any(place.name == "node_modules" for place in near)


def needs_commonjs(script: Script, commands: Executables) -> bool:
    """Whether the file uses `require` in a package of ES modules."""
    if script.path.suffix != ".js" or not _COMMONJS_SYNTAX.search(script.code) or _MODULE_SYNTAX.search(script.code):
        return False
    return _package_type(script.path.parent, commands) == "module"


def is_too_old_for(script: Script, program: str) -> bool:
    """Whether the file is TypeScript and this Node cannot run it."""
    version = version_of(program) if script.path.suffix in TYPESCRIPT else None
    return version is not None and version[:2] < STRIPS_TYPES


def type_options(script: Script, program: str) -> list[str]:
    """The options that let this Node run TypeScript; none for JavaScript. Raises ToolError for one that cannot."""
    if script.path.suffix not in TYPESCRIPT:
        return []
    version = version_of(program)
    if version is not None and is_too_old_for(script, program):
        found = ".".join(map(str, version))
        message = (
            f"{script.path.name} is TypeScript, which Node runs from 22.6 on, and {program} is {found}; "
            "install a newer Node, or pip install 'toolcrib[node]'"
        )
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
    quiet = ["--disable-warning=ExperimentalWarning"]
    if _TRANSFORMED.search(script.code) and (version is None or version[:2] >= TRANSFORMS):
        return [*quiet, "--experimental-transform-types"]
    needs_option = version is not None and version[1] < STRIPS_BY_ITSELF.get(version[0], 0)
    return [*quiet, *(["--experimental-strip-types"] if needs_option else [])]


def refuse_without_proxy(tool_name: str, codes: Iterable[bytes], program: str, *, has_packages: bool) -> None:
    """Refuse code that has no network: this Node ignores the proxy, and the code does not use it either."""
    found = _without_proxy(program)
    if not found or has_packages or any(b"proxy" in code.lower() for code in codes):
        return
    message = f"{tool_name} needs {NEEDED} to use the proxy, its only way to the network; {program} is {found}"
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)


def explain(error: ToolError, program: str) -> ToolError:
    """Add the likely reason to the failure of a script with network access."""
    found = _without_proxy(program)
    if not found:
        return error
    return error.replace(reason=f"{error.reason} (Node {found} does not use the proxy by itself; {NEEDED} does)")


def version_of(program: str) -> tuple[int, int, int] | None:
    """The version of a Node; None if unknown."""
    try:
        path = Path(program).resolve()
        facts = path.stat()
    except (OSError, RuntimeError):
        return None
    return _version_of(path, facts.st_mtime_ns, facts.st_size)


def _package_type(folder: Path, commands: Executables) -> object:
    """The type in the nearest package.json."""
    for place in commands.folders(folder):
        text = read_small(place / "package.json", MAX_PACKAGE_BYTES)
        if text is None:
            continue
        try:
            package = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return package.get("type") if isinstance(package, dict) else None
    return None


def _without_proxy(program: str) -> str:
    """The version of a Node that ignores the proxy; empty for one that uses it, or is unknown."""
    version = version_of(program)
    if version is None or version[0] >= 24 or (version[0] == 22 and version[1] >= 21):  # noqa: PLR2004 - see NEEDED
        return ""
    return ".".join(map(str, version))


@lru_cache(maxsize=16)
def _version_of(path: Path, _changed: int, size: int) -> tuple[int, int, int] | None:
    """The version string in the executable; read and not mapped, because the file may be truncated meanwhile."""
    if size > MAX_BYTES or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            data = b""
            while chunk := file.read(CHUNK_BYTES):
                data = data[-_LONGEST:] + chunk
                if RELEASE in data and (found := _VERSION.search(data)):
                    return int(found[1]), int(found[2]), int(found[3])
    except OSError:
        return None
    return None
