"""Refuse files of a tool that changed after they were checked, if a process would read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files.disk import read_beginning
from toolcrib.infra.sandbox.jobs import READ
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import Job
    from toolcrib.model.tool import Script, Tool

MOUNTS = "mounts"
CACHE, BYTECODE, IMPORTED = "__pycache__", ".pyc", "__init__"


def refuse_changed(
    tool: Tool,
    files: Mapping[Path, bytes],
    folders: Iterable[Path],
    layers: Iterable[str],
    changed: Callable[[Path], ToolError],
) -> None:
    """Refuse files that differ from what was loaded, if the process would use them; `changed` builds the error.

    In its own mount namespace a process reads the loaded bytes, as long as the files exist and are regular. If it may
    read the workspace, it could also read, and run, files that were added.
    """
    covered = MOUNTS in layers
    for path, content in files.items():
        now = None if path.is_symlink() else read_beginning(path, len(content) + 1)
        if now != content and (now is None or not covered):
            raise changed(path)
    if READ in tool.requires:
        for folder in folders:
            if added := _added(folder, files):
                raise changed(added)


def refuse_changed_script(script: Script) -> None:
    """Refuse a file that differs from what was read: the checked bytes are what runs.

    The program opens the file by its path later, because it finds its neighbours from there, and Bash reads while it
    runs. In its own mount namespace it reads the checked bytes. Otherwise only the owner of the file can change it in
    between: no job can write to tool folders.
    """
    now = read_beginning(script.path, len(script.code) + 1)
    if now is None:
        message = f"{script.path.name} cannot be read any more; write it again, as a regular file"
        raise ToolError(Kind.NOT_FOUND, message)
    if now != script.code:
        raise ToolError(Kind.CONFLICT, f"{script.path.name} changed while it was about to run; call again")


def package_files(script: Script) -> dict[Path, bytes]:
    """The content of each file of the script's package; empty for a single file."""
    folder = script.path.absolute().parent
    return {folder / path: content for path, content in script.files.items()}


def package_folders(script: Script) -> tuple[Path, ...]:
    """The folders of the script's package, its own first; empty for a single file."""
    return tuple(sorted({path.parent for path in package_files(script)}))


async def refuse_changed_package(tool: Tool, script: Script, sandbox: Sandbox, job: Job) -> None:
    """Refuse a package that differs from what was loaded, if the process would use it; the catalog detects added files."""
    folder = script.path.absolute().parent

    def changed(path: Path) -> ToolError:
        message = f"{folder.name}/{path.relative_to(folder)} changed since it was loaded; crib check says what to do"
        return ToolError(Kind.CONFLICT, message)

    await sandbox.learn()
    refuse_changed(tool, package_files(script), (), sandbox.report_on(job)["layers"], changed)
    if READ in tool.requires:
        _refuse_bytecode(folder)


def _refuse_bytecode(folder: Path) -> None:
    """Refuse bytecode that an interpreter with access to the workspace would run instead of the checked files."""
    for path in sorted(folder.rglob(f"{CACHE}/*{BYTECODE}")):
        # The file that imports the package is never run in a process of the tool.
        if path.parent.parent == folder and path.name.startswith(f"{IMPORTED}."):
            continue
        cure = f"remove {path.parent.relative_to(folder.parent)}"
        message = f"{path.relative_to(folder.parent)} would run in place of what was proved; {cure}"
        raise ToolError(Kind.CONFLICT, message)


def _added(folder: Path, files: Mapping[Path, bytes]) -> Path | None:
    """A file in the folder, recursively, that is not among these."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_foreign(name)]
        for name in names:
            if not is_foreign(name) and Path(place, name) not in files:
                return Path(place, name)
    return None
