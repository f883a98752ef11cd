"""Check the files of a package, and write them into the project, all of them or none."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.infra.files import OPEN_FOLDER, make_folder
from toolcrib.infra.files.durable import create_in, explained, replace_in
from toolcrib.infra.programs.origins import PULLED, read_pulled
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.depots.package import Manifest, Package, PackedFile

FILE_MODE = 0o644


def install(
    package: Package,
    root: Path,
    *,
    staging: Path,
    check: Callable[[Path, Manifest], None],
    announce: Callable[[], None] = lambda: None,
    replace: bool = False,
) -> list[Path]:
    """Install the files of a package below `root`; returns those that were written.

    `check` gets them first, in a temporary folder below `staging`, and raises if the tool is not what the manifest claims.
    `announce` is called before the first file is written.
    """
    with explained(str(root)):
        _inspect(package, staging, check)
        files = _in_order(package.manifest)
        wanted = [file for file in files if _is_new(package, file, root, replace=replace)]
        if wanted:
            announce()
            _record(package.manifest, {file.path for file in wanted}, root)
        return _place(package, wanted, root)


def _record(manifest: Manifest, written: set[str], root: Path) -> None:
    """Record what is pulled, so that tools of another origin cannot import it; a file that was there is the project's own."""
    known = {name: [file for file in files if (root / file).exists()] for name, files in read_pulled(root).items()}
    pulled = written.union(*known.values())
    # A file of an earlier version stays, too, even if this one has it no more.
    known[manifest.name] = sorted(
        {*known.get(manifest.name, ()), *pulled.intersection(file.path for file in manifest.files)}
    )
    make_folder(root)
    _write_file(
        root / PULLED, json.dumps({name: files for name, files in known.items() if files}, indent=2).encode(), FILE_MODE
    )


def _inspect(package: Package, staging: Path, check: Callable[[Path, Manifest], None]) -> None:
    folder = staging / f"pull-{os.urandom(8).hex()}"
    try:
        for path, data in package.contents.items():
            (folder / path).parent.mkdir(0o700, parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        check(folder, package.manifest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_order(manifest: Manifest) -> list[PackedFile]:
    """The tool's own file last: the tool appears only when its other files exist."""
    return sorted(manifest.files, key=lambda file: (file.path == manifest.main, file.path))


def _is_new(package: Package, file: PackedFile, root: Path, *, replace: bool) -> bool:
    path = root / file.path
    _refuse_links(path, root)
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        return True
    if present == package.contents[file.path]:
        return False
    if replace:
        return True
    message = (
        f"{path} is there already and is another file; nothing was installed. Add --replace to put the new one there"
    )
    raise ToolError(Kind.CONFLICT, message)


def _refuse_links(path: Path, root: Path) -> None:
    """Refuse symbolic links in the path of a file."""
    for part in (path, *path.parents):
        if part == root:
            return
        if part.is_symlink():
            raise ToolError(Kind.BLOCKED, f"{part} is a link; nothing was installed. Remove it first")


def _place(package: Package, files: list[PackedFile], root: Path) -> list[Path]:
    """Write the files; if one fails, restore those before it."""
    before: list[tuple[Path, bytes | None, int]] = []
    try:
        for file in files:
            path = root / file.path
            make_folder(path.parent)
            before.append((path, *_present(path)))
            _write_file(path, package.contents[file.path], FILE_MODE | (0o111 if file.executable else 0))
    except BaseException:
        for path, data, mode in reversed(before):
            with suppress(OSError):
                path.unlink(missing_ok=True) if data is None else _write_file(path, data, mode)
        raise
    return [path for path, _, _ in before]


def _present(path: Path) -> tuple[bytes | None, int]:
    try:
        return path.read_bytes(), path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None, 0


def _write_file(path: Path, data: bytes, mode: int) -> None:
    folder = os.open(path.parent, OPEN_FOLDER)
    try:
        if not create_in(folder, path.name, data, mode=mode):
            replace_in(folder, path.name, data, mode=mode)
    finally:
        os.close(folder)
