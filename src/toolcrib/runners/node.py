"""What Node needs to be told: how much memory there is, and how a file is loaded that its package takes for another kind."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground import sandbox
from toolcrib.ground.files.regular import read_small
from toolcrib.ground.sandbox.jobs import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.model.tool import Script
    from toolcrib.runners.commands import Commands, Found

COMMONJS = Path(__file__).parent / "commonjs.cjs"
CALLS = Path(sandbox.__file__).parent / "rye.cjs"
FILES = (COMMONJS, CALLS)
NAMES = frozenset({"node", "nodejs"})
# Node reads its OpenSSL settings where the system keeps them, and gives up if it may not.
ENVIRONMENT: Mapping[str, str] = {"OPENSSL_CONF": "/dev/null"}
# The heap is most of what Node uses; the rest is for code and buffers.
HEAP_SHARE = 0.75
MAX_PACKAGE_BYTES = 1_000_000

_MODULE_SYNTAX = re.compile(rb"^[ \t]*(?:import[ \t]*[\w{*\"']|export[ \t]*[\w{*])", re.MULTILINE)
_COMMONJS_SYNTAX = re.compile(rb"\brequire[ \t]*\(|\bmodule\.exports\b|\bexports\.")


def is_node(found: Found) -> bool:
    """Whether it is Node that is started."""
    return found.program in NAMES


def options(memory_bytes: int, *, calls: bool) -> list[str]:
    """What stands between Node and the file; `calls` gives the script the means to call other tools."""
    heap = f"--max-old-space-size={max(16, int(memory_bytes * HEAP_SHARE) // MEGABYTE)}"
    return [heap, "--require", str(CALLS)] if calls else [heap]


def has_packages(near: Iterable[Path]) -> bool:
    """Whether packages are among what is installed near a tool."""
    return any(place.name == "node_modules" for place in near)


def needs_commonjs(script: Script, commands: Commands) -> bool:
    """Whether the file is written for `require` in a package that says its files are modules."""
    if script.path.suffix != ".js" or not _COMMONJS_SYNTAX.search(script.code) or _MODULE_SYNTAX.search(script.code):
        return False
    return _package_type(script.path.parent, commands) == "module"


def _package_type(folder: Path, commands: Commands) -> object:
    """What the nearest package says its files are."""
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
