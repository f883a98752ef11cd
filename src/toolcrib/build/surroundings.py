"""What a build sees to beside the registry: the module that handlers import, and that git leaves the registry alone."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import create_in, replace_in
from toolcrib.ground.files.faults import explained
from toolcrib.ground.files.folders import OPEN_FOLDER
from toolcrib.ground.files.regular import read_small

if TYPE_CHECKING:
    from collections.abc import Iterator

REGISTRY = "tool_registry.json"
ERROR_TYPES = "_core/error-types.js"
IGNORED = ".gitignore"
FILE_MODE = 0o644
MAX_IGNORED_BYTES = 1_000_000

_EVERYWHERE = frozenset({REGISTRY, f"**/{REGISTRY}", "*.json", "*"})


def error_types() -> bytes:
    """The module of error types that is supplied where a root has none of its own."""
    return Path(__file__).with_name("error-types.js").read_bytes()


def supply_error_types(root: Path) -> None:
    """Put the module of error types where handlers import it from; one that is there stays as it is."""
    path = root / ERROR_TYPES
    with explained(str(path)):
        if os.path.lexists(path):
            return
        path.parent.mkdir(exist_ok=True)
        with opened(path.parent) as folder:
            create_in(folder, path.name, error_types(), mode=FILE_MODE)


def keep_out_of_git(root: Path, project: Path | None) -> None:
    """Have git leave the registry alone, unless a line for it, either way, is written there or in the project already."""
    path = root / IGNORED
    if path.is_symlink() or _covers(path, f"/{REGISTRY}"):
        return
    if project is not None and _covers(project / IGNORED, *_from(project, root)):
        return
    with explained(str(path)), opened(root) as folder:
        lines = read_small(path, MAX_IGNORED_BYTES)
        if lines is None:
            create_in(folder, IGNORED, f"{REGISTRY}\n".encode(), mode=FILE_MODE)
            return
        end = b"" if lines.endswith(b"\n") or not lines else b"\n"
        replace_in(folder, IGNORED, lines + end + f"{REGISTRY}\n".encode(), mode=FILE_MODE, old=path.stat())


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """A descriptor of the folder."""
    descriptor = os.open(folder, OPEN_FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _covers(path: Path, *here: str) -> bool:
    """Whether a line of the file speaks of the registry; one that asks for it to be kept is its author's wish as well."""
    lines = (read_small(path, MAX_IGNORED_BYTES) or b"").decode("utf-8", "replace").splitlines()
    return any(line.strip().removeprefix("!") in {*_EVERYWHERE, *here} for line in lines)


def _from(project: Path, root: Path) -> tuple[str, ...]:
    """How lines of the project spell the registry, or a folder that holds it."""
    try:
        folder = root.resolve().relative_to(project.resolve())
    except ValueError:
        return ()
    parts = [f"{folder.as_posix()}/{REGISTRY}", folder.as_posix(), f"{folder.as_posix()}/", f"{folder.as_posix()}/*"]
    return tuple(spelling for part in parts for spelling in (part, f"/{part}"))
