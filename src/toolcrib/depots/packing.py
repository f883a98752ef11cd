"""From a tool in a tree of files to a package."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolcrib.depots.package import MAX_FILE_BYTES, Manifest, Package, PackedFile
from toolcrib.ground.files import durable
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.tool import Tool


def pack(tool: Tool, root: Path, tree: str, further: Iterable[str] = ()) -> Package:
    """The tool's file, the files beside it that its config names, and `further` ones, named from its folder."""
    main = _file_of(tool, root)
    folder = main.parent
    paths = [main, *_named_in_config(tool, folder), *(_named(name, folder, tool) for name in further)]
    contents: dict[str, bytes] = {}
    files = []
    for path in dict.fromkeys(paths):
        place = str(PurePosixPath(path.relative_to(root)))
        data = durable.read(path, MAX_FILE_BYTES)
        if data is None:
            raise ToolError(Kind.NOT_FOUND, f"{path} is not there any more; nothing was published")
        contents[place] = data
        digest = hashlib.sha256(data).hexdigest()
        files.append(PackedFile(path=place, size=len(data), sha256=digest, executable=os.access(path, os.X_OK)))
    manifest = Manifest(
        name=whole_name(tool),
        version=tool.version,
        description=tool.description,
        requires=tuple(sorted(tool.requires)),
        tree=tree,
        main=str(PurePosixPath(main.relative_to(root))),
        files=tuple(files),
    )
    return Package(manifest=manifest, contents=contents)


def left_behind(tool: Tool, package: Package, own: Iterable[str]) -> list[str]:
    """What the tool seems to need and the package does not hold; `own` are the executors that every crib has."""
    if not isinstance(tool.run, Chained):
        return []
    folder = tool.run.folder
    packed = {PurePosixPath(path).name for path in package.contents}
    names = {name.partition(".")[0] for name in tool.run.script.imports} if tool.run.script is not None else set()
    found = [f"{name}.py" for name in sorted(names) if (folder / f"{name}.py").is_file() and f"{name}.py" not in packed]
    missing = [f"it imports {name}, which was not packed; add: --with {name}" for name in found]
    executor = tool.run.executor
    if executor is not None and executor not in set(own):
        missing.append(f"it is executed by {executor}, which must be there wherever it is pulled; publish that too")
    return missing


def whole_name(tool: Tool) -> str:
    """The name of the whole tool, also where only its actions can be called."""
    action = tool.run.action if isinstance(tool.run, Chained) else ""
    return tool.name.removesuffix(action)[:-1] if action else tool.name


def _file_of(tool: Tool, root: Path) -> Path:
    path = None if tool.origin is None else Path(tool.origin.place)
    if path is None or not path.is_relative_to(root):
        raise ToolError(
            Kind.VALIDATION, f"{tool.name} is not written in a file of the project; only such can be published"
        )
    return path


def _named_in_config(tool: Tool, folder: Path) -> list[Path]:
    words = tool.run.config.get("args") if isinstance(tool.run, Chained) else None
    names = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    return [folder / name for name in names if _is_beside(folder / name, folder)]


def _named(name: str, folder: Path, tool: Tool) -> Path:
    path = folder / name
    if not _is_beside(path, folder):
        message = f"{name!r} is no file in the folder of {tool.name}, or below it; name it from {folder}"
        raise ToolError(Kind.NOT_FOUND, message)
    return path


def _is_beside(path: Path, folder: Path) -> bool:
    """Whether this is a plain file in the folder or below it, reached by no link and no way up."""
    if ".." in path.parts or path.is_symlink() or not path.is_file():
        return False
    return path.resolve().is_relative_to(folder.resolve())
