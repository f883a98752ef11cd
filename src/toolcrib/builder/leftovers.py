"""The workspaces of makers: where each lies, and taking them away."""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.builder.workspace import PACKAGE
from toolcrib.ground.files.folders import PRIVATE_FOLDER
from toolcrib.model.toolrequest import Status

if TYPE_CHECKING:
    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Claim

logger = logging.getLogger("toolcrib.builder")


def workspace_of(folder: Path, claim: Claim) -> Path:
    """Where the maker works for a claim: whoever had the request before may still be at it elsewhere."""
    return folder / claim.id / str(claim.fence)


def find_package(folder: Path, request_id: str) -> Path | None:
    """The package that was laid out last for a request."""
    if request_id in {"", ".", ".."} or "/" in request_id:
        return None
    laid_out = [path for path in (folder / request_id).glob("*") if path.name.isdecimal() and (path / PACKAGE).is_dir()]
    return max(laid_out, key=lambda path: int(path.name)) / PACKAGE if laid_out else None


def sweep(folder: Path, queue: Queue) -> None:
    """Remove the workspaces of requests that are ready, which a killed Builder or a person left behind."""
    workspaces = list(folder.iterdir()) if folder.is_dir() else []
    for workspace in workspaces:
        filed = queue.get(workspace.name)
        if filed is not None and filed.status is Status.READY:
            _remove(workspace)


def remove_workspace(workspace: Path) -> None:
    """Remove a workspace, whatever a maker left in it; none of its processes is there any more."""
    _remove(workspace)
    with suppress(OSError):  # another workspace for the same request may lie beside it
        workspace.parent.rmdir()


def _remove(folder: Path) -> None:
    # Folders that are nested too deeply for the standard library stay, and are named.
    with suppress(OSError, RecursionError):
        for place, folders, _ in os.walk(folder):
            for path in (Path(place, name) for name in folders):
                if not path.is_symlink():
                    path.chmod(PRIVATE_FOLDER)
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        logger.warning("%s could not be removed; remove it by hand", folder)
