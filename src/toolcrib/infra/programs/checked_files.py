"""Refuse files of a tool that changed since they were checked, as far as a process would read them."""

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
    """Refuse files that are not what was loaded, if that is what would run; `changed` is how.

    A process with mounts of its own has its files covered with the bytes that were loaded, as long as they are there and are
    files. Where it may read the workspace, it could read, and run, whatever was put beside them.
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
    """Refuse a file that is not what was read: what runs is what was checked.

    The program opens the file by its path a moment later, because its neighbours are found from there, and Bash reads on as
    it goes. Behind mounts of its own it finds there what was read. Where there are none, only the owner of the file can
    change it in between: nothing that runs here can write to folders of tools.
    """
    now = read_beginning(script.path, len(script.code) + 1)
    if now is None:
        message = f"{script.path.name} cannot be read any more; write it again, as a regular file"
        raise ToolError(Kind.NOT_FOUND, message)
    if now != script.code:
        raise ToolError(Kind.CONFLICT, f"{script.path.name} changed while it was about to run; call again")


def package_files(script: Script) -> dict[Path, bytes]:
    """What a process finds in each file of the script's package; nothing for a file that stands alone."""
    folder = script.path.absolute().parent
    return {folder / path: content for path, content in script.files.items()}


def package_folders(script: Script) -> tuple[Path, ...]:
    """The folders of the script's package, its own first; none for a file that stands alone."""
    return tuple(sorted({path.parent for path in package_files(script)}))


async def refuse_changed_package(tool: Tool, script: Script, sandbox: Sandbox, job: Job) -> None:
    """Refuse a package that is not what was loaded, if that is what would run; what is added to it the catalogue sees."""
    folder = script.path.absolute().parent

    def changed(path: Path) -> ToolError:
        message = f"{folder.name}/{path.relative_to(folder)} changed since it was loaded; crib check says what to do"
        return ToolError(Kind.CONFLICT, message)

    await sandbox.learn()
    refuse_changed(tool, package_files(script), (), sandbox.report_on(job)["layers"], changed)
    if READ in tool.requires:
        _refuse_bytecode(folder)


def _refuse_bytecode(folder: Path) -> None:
    """Refuse what an interpreter that may read the workspace would run in place of the files: it was neither loaded nor checked."""
    for path in sorted(folder.rglob(f"{CACHE}/*{BYTECODE}")):
        # The file to import the package by is never run in a process of the tool.
        if path.parent.parent == folder and path.name.startswith(f"{IMPORTED}."):
            continue
        cure = f"remove {path.parent.relative_to(folder.parent)}"
        message = f"{path.relative_to(folder.parent)} would run in place of what was proved; {cure}"
        raise ToolError(Kind.CONFLICT, message)


def _added(folder: Path, files: Mapping[Path, bytes]) -> Path | None:
    """A file in the folder, deep, that is none of these."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_foreign(name)]
        for name in names:
            if not is_foreign(name) and Path(place, name) not in files:
                return Path(place, name)
    return None
