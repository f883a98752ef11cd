"""Pack the files of a tool, and check which files a package may contain."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolcrib.features.depots.package import FOLDERS, MAX_FILE_BYTES, Manifest, Package, PackedFile
from toolcrib.infra.files import durable
from toolcrib.infra.programs.code_parts import shadow_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Handler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.tool import Tool

SCHEMA_FILE = "schema.json"
# Names that Python, Node or Toolcrib obey in any folder.
OBEYED = frozenset(
    (
        *("node_modules", "venv", ".venv", "site-packages", "__pycache__", "__init__.py", "pyvenv.cfg"),
        *("package.json", "toolcrib.toml", "sitecustomize.py", "usercustomize.py", "tool.json", SCHEMA_FILE),
    )
)


def pack(tool: Tool, root: Path, tree: str, further: Iterable[str] = ()) -> Package:
    """Pack the tool's file, the files that its config names, and `further` ones, relative to its folder."""
    if isinstance(tool.run, Handler):
        return _pack_folder(tool, tool.run)
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
        files.append(packed_file(place, data, executable=os.access(path, os.X_OK)))
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


def _pack_folder(tool: Tool, handler: Handler) -> Package:
    """Pack a tool folder: the bytes that were built, even if its files changed since."""
    folder = handler.folder
    manifest = Manifest(
        name=tool.name,
        version=tool.version,
        description=tool.description,
        requires=tuple(sorted(tool.requires)),
        tree=FOLDERS,
        main=f"{folder}/{SCHEMA_FILE}",
        files=tuple(packed_file(path, handler.files[path]) for path in sorted(handler.files)),
    )
    for file in manifest.files:
        refuse_elsewhere(file.path, manifest)
    return Package(manifest=manifest, contents=handler.files)


def packed_file(path: str, data: bytes, *, executable: bool = False) -> PackedFile:
    """The entry of a file in a manifest."""
    return PackedFile(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), executable=executable)


def left_behind(tool: Tool, package: Package, own: Iterable[str]) -> list[str]:
    """What the tool seems to need and the package lacks; `own` are the built-in executors, which every crib has."""
    if isinstance(tool.run, Handler):
        shared = sorted({path.partition("/")[0] for path in tool.run.shared})
        return [f"the folder {name} beside it was not packed; it must be there if the tool uses it" for name in shared]
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


def shadows(manifest: Manifest) -> list[str]:
    """Warnings about files of a package that no other file can import by their names."""
    files = () if manifest.tree == FOLDERS else manifest.files
    return [shadow for file in files if (shadow := shadow_of(PurePosixPath(file.path)))]


def whole_name(tool: Tool) -> str:
    """The name of the tool; for an action of a tool, the name of the tool that it belongs to."""
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
        message = f"{name!r} is not a file in the folder of {tool.name}, or below it; name it from {folder}"
        raise ToolError(Kind.NOT_FOUND, message)
    return path


def _is_beside(path: Path, folder: Path) -> bool:
    """Whether this is a regular file in or below the folder, without links and `..`."""
    if ".." in path.parts or path.is_symlink() or not path.is_file():
        return False
    return path.resolve().is_relative_to(folder.resolve())


def refuse_elsewhere(path: str, manifest: Manifest) -> None:
    """Refuse a file outside the tool's folder, and one that Python, Node or Toolcrib would run."""
    folder, place = PurePosixPath(manifest.main).parent, PurePosixPath(path)
    if path == manifest.main or (place.is_relative_to(folder) and _is_harmless(place.relative_to(folder))):
        return
    message = f"the package of {manifest.name} contains {path}, which a package may not install; nothing was installed"
    raise ToolError(Kind.PERMANENT, message, details={"path": path})


def _is_harmless(place: PurePosixPath) -> bool:
    """Whether a file, relative to the tool's folder, has no special name and is called like no standard module."""
    names = {part.casefold() for part in place.parts}
    stem = place.parts[0].partition(".")[0]
    return names.isdisjoint(OBEYED) and place.suffix.casefold() != ".pth" and stem not in sys.stdlib_module_names
