"""Which Node it is that was found, and whether it uses the proxy, without starting it: a project may have brought it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Where its own source is found is written in every release.
RELEASE = b"/download/release/v"
MAX_BYTES = 256 * 1024 * 1024
CHUNK_BYTES = 4 * 1024 * 1024
NEEDED = "Node 22.21, or 24 or newer"

_VERSION = re.compile(re.escape(RELEASE) + rb"(\d{1,4})\.(\d{1,4})\.(\d{1,4})/")
_LONGEST = len(RELEASE) + 16


def refuse_without_proxy(tool_name: str, codes: Iterable[bytes], program: str, *, has_packages: bool) -> None:
    """Refuse code that can have no network: Node would not use the proxy, and nothing of its own does."""
    found = _without_proxy(program)
    if not found or has_packages or any(b"proxy" in code.lower() for code in codes):
        return
    message = f"{tool_name} needs {NEEDED} to use the proxy, its only way to the network; {program} is {found}"
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)


def explain(error: ToolError, program: str) -> ToolError:
    """The failure of a script that has a network, with what may be the reason."""
    found = _without_proxy(program)
    if not found:
        return error
    return ToolError(
        error.kind,
        f"{error.message} (Node {found} does not use the proxy by itself; {NEEDED} does)",
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        details=error.details,
        value=error.value,
    )


def _without_proxy(program: str) -> str:
    """The version of a Node that does not use the proxy; empty for one that does, and for one that is not known."""
    version = version_of(program)
    if version is None or version[0] >= 24 or (version[0] == 22 and version[1] >= 21):  # noqa: PLR2004 - see NEEDED
        return ""
    return ".".join(map(str, version))


def version_of(program: str) -> tuple[int, int, int] | None:
    """The version of a Node; None if it cannot be learned."""
    try:
        path = Path(program).resolve()
        facts = path.stat()
    except (OSError, RuntimeError):
        return None
    return _version_of(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=16)
def _version_of(path: Path, _changed: int, size: int) -> tuple[int, int, int] | None:
    """The version that is written in the program; read and not mapped, so that it may be cut short meanwhile."""
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
