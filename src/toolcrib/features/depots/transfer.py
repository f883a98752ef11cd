"""Publish a tool of the project to a depot, and pull one into the project."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolcrib.features.depots.depot import FolderDepot, fetch_manifest, fetch_package, open_depot
from toolcrib.features.depots.package import check_signature, sign
from toolcrib.features.depots.tool_files import install, left_behind, pack, whole_name
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.features.depots.package import Manifest
    from toolcrib.model.protocols import Format
    from toolcrib.model.tool import Tool

    Formats = Mapping[str, Callable[[Path], Format]]

# What Python, Node or we ourselves obey, wherever it lies.
OBEYED = frozenset(
    (
        *("node_modules", "venv", ".venv", "site-packages", "__pycache__", "__init__.py", "pyvenv.cfg"),
        *("package.json", "toolcrib.toml", "sitecustomize.py", "usercustomize.py"),
    )
)
SCRIPTS = "scripts"
TOOLS = "tools"
BUILT = "built"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulled:
    """What was pulled: the version, the files that were written (none if they were there already), and who signed it."""

    manifest: Manifest
    written: tuple[Path, ...]
    signed: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What was published, and what it seems to need besides."""

    manifest: Manifest
    left_behind: tuple[str, ...]


def publish(
    tool: Tool, place: str, parts: Resources, *, files: Iterable[str] = (), key: Path | None = None
) -> Published:
    """Publish a tool of the project to the depot in a folder, signed if there is a key to sign with."""
    depot = open_depot(place)
    if not isinstance(depot, FolderDepot):
        message = f"{place} can be pulled from, not published to; publish to the folder that the web server serves"
        raise ToolError(Kind.VALIDATION, message)
    if tool.source_type == BUILT:
        message = (
            f"{tool.name} was built from a request, and depots keep single files; hand on the request instead: "
            f"crib request show {tool.name} --yaml"
        )
        raise ToolError(Kind.VALIDATION, message)
    root, tree = _tree_of(tool, parts)
    package = pack(tool, root, tree, files)
    if key is not None:
        package = replace(package, manifest=sign(package.manifest, key))
    if not depot.publish(package):
        message = f"{tool.name}@{tool.version} is published there already, with the same content"
        raise ToolError(Kind.CONFLICT, message, details={"hash": package.manifest.hash})
    own = {"python", *(entry.name for entry in system_tools())}
    return Published(manifest=package.manifest, left_behind=tuple(left_behind(tool, package, own)))


async def pull(
    name: str,
    place: str,
    parts: Resources,
    formats: Formats,
    *,
    version: str | None = None,
    replace: bool = False,
) -> Pulled:
    """Pull a tool into the project; on any failure the project is as it was.

    `formats` makes, for each kind of tree, the format that reads the files below a root.
    """
    settings = parts.settings
    if settings.root is None:
        raise ToolError(Kind.VALIDATION, "there is no project to pull a tool into; make one with: crib init")
    depot = open_depot(place, settings.egress_private)
    try:
        manifest = await fetch_manifest(depot, name, version)
        signed = check_signature(manifest, settings.depot_keys, required=settings.depot_signed)
        package = await fetch_package(depot, manifest)
    finally:
        if not isinstance(depot, FolderDepot):
            await depot.close()
    root = _target(manifest.tree, parts, settings.root)
    if not root.resolve().is_relative_to(settings.root.resolve()):
        raise ToolError(Kind.BLOCKED, f"{root} leads out of the project; nothing was installed. Replace the link")
    written = install(package, root, staging=parts.data.folder(), check=partial(_check_tool, formats), replace=replace)
    return Pulled(manifest=manifest, written=tuple(written), signed=signed)


def _check_tool(formats: Formats, folder: Path, manifest: Manifest) -> None:
    """Refuse a package whose file is not the tool that its manifest names."""
    tools = _tools_in(formats, folder, manifest.main, manifest.tree)
    claimed = f"{manifest.name}@{manifest.version} requiring {', '.join(manifest.requires) or 'nothing'}"
    if claimed not in map(_claim, tools):
        message = f"{manifest.main} does not hold the tool that the manifest names ({claimed}); nothing was installed"
        raise ToolError(Kind.PERMANENT, message, details={"found": list(map(_claim, tools))})
    strangers = [tool.name for tool in tools if whole_name(tool) != manifest.name]
    for file in manifest.files:
        _refuse_elsewhere(file.path, manifest)
        if file.path != manifest.main:
            strangers += [tool.name for tool in _tools_in(formats, folder, file.path, manifest.tree)]
    if strangers:
        message = f"the package of {manifest.name} holds other tools besides it ({', '.join(strangers)}); nothing was installed"
        raise ToolError(Kind.PERMANENT, message, details={"found": strangers})


def _tools_in(formats: Formats, folder: Path, path: str, tree: str) -> list[Tool]:
    dialect = formats[tree](folder)
    file = folder / path
    # A plain tool lies in the folder itself; further down is nothing that would be one.
    if not dialect.reads(file) or (tree == TOOLS and file.parent != folder):
        return []
    return list(dialect.read(file, file.read_bytes()))


def _claim(tool: Tool) -> str:
    return f"{whole_name(tool)}@{tool.version} requiring {', '.join(sorted(tool.requires)) or 'nothing'}"


def _refuse_elsewhere(path: str, manifest: Manifest) -> None:
    """A package brings files into the folder of its tool and below, and none that others would run."""
    folder, place = PurePosixPath(manifest.main).parent, PurePosixPath(path)
    if path == manifest.main or (place.is_relative_to(folder) and _is_harmless(place.relative_to(folder))):
        return
    message = f"the package of {manifest.name} holds {path}, which is not for it to bring; nothing was installed"
    raise ToolError(Kind.PERMANENT, message, details={"path": path})


def _is_harmless(place: PurePosixPath) -> bool:
    """Whether a file, as seen from the tool's folder, means nothing to Python, Node or us, and hides no standard module."""
    names = {part.casefold() for part in place.parts}
    stem = place.parts[0].partition(".")[0]
    return names.isdisjoint(OBEYED) and place.suffix.casefold() != ".pth" and stem not in sys.stdlib_module_names


def _tree_of(tool: Tool, parts: Resources) -> tuple[Path, str]:
    """The root of the tree that the tool lies in, and its kind."""
    trees = dict.fromkeys(parts.get("script_trees").values(), SCRIPTS)
    trees |= dict.fromkeys(parts.tool_folders(), TOOLS)
    place = None if tool.origin is None else Path(tool.origin.place)
    for path, tree in trees.items():
        if place is not None and place.is_relative_to(path):
            return path, tree
    raise ToolError(Kind.VALIDATION, f"{tool.name} is not written in a file of the project; only such can be published")


def _target(tree: str, parts: Resources, root: Path) -> Path:
    """Where tools of that kind lie in the project."""
    trees = parts.tool_folders() if tree == TOOLS else list(parts.get("script_trees").values())
    inside = [path for path in trees if path.is_relative_to(root)]
    if not inside:
        raise ToolError(Kind.VALIDATION, f"the project has no folder for {tree}; name one in {tree} of toolcrib.toml")
    return inside[0]
