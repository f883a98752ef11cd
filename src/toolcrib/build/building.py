"""From folders to a registry: check them all, and write the file if nothing is wrong, whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.build.check import check_folders
from toolcrib.build.claims import MAX_REGISTRY_BYTES, read_claims
from toolcrib.build.commit import read_commit
from toolcrib.build.surroundings import FILE_MODE, REGISTRY, keep_out_of_git, opened, supply_error_types
from toolcrib.ground.files import durable
from toolcrib.ground.files.atomic import replace_in, sweep_in
from toolcrib.ground.files.faults import explained
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.build.check import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What a build came to: the registry is as `version` says, or it is what it was and `problems` say why.

    `tools` are the names of those without a problem. `written` says whether the file is another one now; where it held
    these very bytes already it is left alone. `has_registry` says whether any is there, new or as it was.
    """

    path: Path
    version: str = ""
    tools: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    written: bool = False
    has_registry: bool = False

    @property
    def ok(self) -> bool:
        """Whether the registry is that of the folders as they are."""
        return not self.problems


def build(root: Path, *, cache: Path | None = None, project: Path | None = None, strict: bool = False) -> Built:
    """Check every folder and write the registry of them; `strict` takes a warning for a problem.

    `cache` is a file that remembers folders without problems, `project` the folder whose `.gitignore` counts too.
    """
    path = root / REGISTRY
    try:
        with explained(str(root)), _one_at_a_time(root):
            checked = check_folders(root, cache=cache)
            problems = (*checked.problems, *(checked.warnings if strict else ()))
            written = not problems and _write(root, checked, project)
    except ToolError as problem:
        return Built(path=path, problems=(problem.message,), has_registry=os.path.lexists(path))
    return Built(
        path=path,
        version=checked.version,
        tools=tuple(checked.tools),
        problems=problems,
        warnings=() if strict else checked.warnings,
        written=written,
        has_registry=os.path.lexists(path),
    )


def encode_registry(checked: Checked, commit: str) -> bytes:
    """The registry as it is written: from the same content the same bytes, wherever and whenever."""
    document = {
        "registryVersion": checked.version,
        "gitCommit": commit,
        "shared": checked.shared,
        "tools": checked.tools,
    }
    # The standard library and not orjson: it keeps integers beyond 64 bit, which a schema may hold.
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"


def _write(root: Path, checked: Checked, project: Path | None) -> bool:
    """Put the registry in place with all that belongs to it; False if it is there already."""
    path = root / REGISTRY
    data = encode_registry(checked, read_commit(root))
    if checked.tools:
        supply_error_types(root)
    keep_out_of_git(root, project)
    if _is_there(path, data):
        return False
    _check_that_it_loads(path, data)
    with explained(str(path)), opened(root) as folder:
        sweep_in(folder)
        replace_in(folder, REGISTRY, data, mode=FILE_MODE)
    return True


def _check_that_it_loads(path: Path, data: bytes) -> None:
    """Refuse to write what no start could read."""
    try:
        read_claims(data)
    except ToolError as problem:
        raise ToolError(problem.kind, f"{path}: {problem.message}") from None


def _is_there(path: Path, data: bytes) -> bool:
    with suppress(ToolError):  # what is no file that can be read is replaced
        return durable.read(path, MAX_REGISTRY_BYTES) == data
    return False


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Of several builds of a root one goes after the other, so that the last one saw the latest files."""
    with opened(root) as folder:
        with suppress(OSError):  # some file systems keep no locks; there builds may overtake each other
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
