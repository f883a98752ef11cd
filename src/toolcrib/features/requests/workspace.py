"""The folder that a maker works in: the brief, the schemas and the contract, and a package to fill.

From the second attempt on it holds what a program left there, which may be anything: links, pipes, folders without
permissions. None of that program's processes is left by then, so what is looked at stays as it was; nothing is written
or read through a link.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.features.requests.brief import to_json, write_brief, write_complaints, write_starter
from toolcrib.infra.files import PRIVATE_FOLDER, enter, way_to
from toolcrib.infra.files.durable import PRIVATE_FILE, discard_in, explained, replace_in
from toolcrib.model.toolrequest import Allowance, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Claim, ToolRequest

logger = logging.getLogger("toolcrib.builder")

PACKAGE = "package"
BRIEF = "BRIEF.md"
COMPLAINTS = "COMPLAINTS.md"
# Without an output schema every answer is valid.
ANY_RESULT: dict[str, object] = {}


def write_workspace(
    folder: Path,
    request: ToolRequest,
    *,
    contract_tests: str,
    complaints: Sequence[str] = (),
    attempt: int = 1,
    allowance: Allowance = Allowance(),  # noqa: B008 - a frozen fact
) -> str:
    """Write everything for an attempt, and return the brief. What is in the package already stays there."""
    brief = write_brief(request, complaints=complaints, attempt=attempt, allowance=allowance)
    files = {
        "request.yaml": request.text,
        BRIEF: brief,
        "schemas/arguments.json": f"{to_json(request.parameters)}\n",
        "schemas/result.json": f"{to_json(request.output_schema or ANY_RESULT)}\n",
        "contract/test_contract.py": contract_tests,
        **({COMPLAINTS: write_complaints(complaints)} if complaints else {}),
    }
    with explained(str(folder)), way_to(folder, (), make=True) as (top,):
        os.fchmod(top, PRIVATE_FOLDER)
        _discard(top, COMPLAINTS)
        for path, text in files.items():
            _write(top, path, text)
        _start_package(top, request)
    return brief


def workspace_of(folder: Path, claim: Claim) -> Path:
    """The workspace of a claim; one for each, because the maker of an earlier claim may still run."""
    return folder / claim.id / str(claim.fence)


def find_package(folder: Path, request_id: str) -> Path | None:
    """The package in the latest workspace of a request."""
    if request_id in {"", ".", ".."} or "/" in request_id:
        return None
    laid_out = [path for path in (folder / request_id).glob("*") if path.name.isdecimal() and (path / PACKAGE).is_dir()]
    return max(laid_out, key=lambda path: int(path.name)) / PACKAGE if laid_out else None


def sweep(folder: Path, queue: Queue) -> None:
    """Remove the workspaces of ready requests, which a killed Builder or a person left."""
    workspaces = list(folder.iterdir()) if folder.is_dir() else []
    for workspace in workspaces:
        filed = queue.get(workspace.name)
        if filed is not None and filed.status is Status.READY:
            _remove(workspace)


def remove_workspace(workspace: Path) -> None:
    """Remove a workspace; none of its processes runs any more."""
    _remove(workspace)
    with suppress(OSError):  # another workspace for the same request may lie beside it
        workspace.parent.rmdir()


def _write(top: int, path: str, text: str) -> None:
    """Write a file of ours, replacing anything of that name."""
    *folders, name = path.split("/")
    with ExitStack() as opened:
        folder = top
        for each in folders:
            folder = _enter(folder, each, opened)
        _discard_unless(folder, name, stat.S_ISREG)
        replace_in(folder, name, text.encode("utf-8", "surrogatepass"), mode=PRIVATE_FILE)


def _start_package(top: int, request: ToolRequest) -> None:
    """Write the starter file, unless the maker has written one."""
    with ExitStack() as opened:
        package = _enter(top, PACKAGE, opened)
        _discard_unless(package, request.entry_file, stat.S_ISREG)
        if _mode_of(package, request.entry_file) is None:
            replace_in(package, request.entry_file, write_starter(request).encode(), mode=PRIVATE_FILE)


def _enter(parent: int, name: str, opened: ExitStack) -> int:
    """Open a subfolder; anything else of that name is replaced."""
    _discard_unless(parent, name, stat.S_ISDIR)
    with suppress(FileExistsError):
        os.mkdir(name, PRIVATE_FOLDER, dir_fd=parent)
    # It is not a link, and the maker may have removed our permissions.
    os.chmod(name, PRIVATE_FOLDER, dir_fd=parent)
    folder = enter(parent, name)
    opened.callback(os.close, folder)
    return folder


def _discard_unless(folder: int, name: str, fits: Callable[[int], bool]) -> None:
    mode = _mode_of(folder, name)
    if mode is not None and not fits(mode):
        _discard(folder, name)


def _discard(folder: int, name: str) -> None:
    """Remove what has the name; a link itself and not its target."""
    mode = _mode_of(folder, name)
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        discard_in(folder, name)
    else:
        os.unlink(name, dir_fd=folder)


def _mode_of(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _remove(folder: Path) -> None:
    # Folders that are nested too deeply for the standard library stay, and are logged.
    with suppress(OSError, RecursionError):
        for place, folders, _ in os.walk(folder):
            for path in (Path(place, name) for name in folders):
                if not path.is_symlink():
                    path.chmod(PRIVATE_FOLDER)
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        logger.warning("%s could not be removed; remove it by hand", folder)
