"""Publish a tool of the project to a depot, and pull one into the project."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolcrib.features.depots import DepotsSettings
from toolcrib.features.depots.depot import FolderDepot, fetch_manifest, fetch_package, open_depot
from toolcrib.features.depots.package import (
    BUNDLES,
    FOLDERS,
    MAX_FILE_BYTES,
    SCRIPTS,
    TOOLS,
    Manifest,
    Package,
    PackedFile,
    check_signature,
    is_older,
    sign,
)
from toolcrib.infra.egress import EgressSettings
from toolcrib.infra.files import OPEN_FOLDER, durable, make_folder
from toolcrib.infra.files.durable import create_in, explained, replace_in
from toolcrib.lib.document_format import required_capabilities
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Handler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.model.protocols import Format
    from toolcrib.model.tool import Tool

    Formats = Mapping[str, Callable[[Path], Format]]


FILE_MODE = 0o644
SCHEMA_FILE = "schema.json"


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
        files.append(_packed(place, data, executable=os.access(path, os.X_OK)))
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
        files=tuple(_packed(path, handler.files[path]) for path in sorted(handler.files)),
    )
    for file in manifest.files:
        _refuse_elsewhere(file.path, manifest)
    return Package(manifest=manifest, contents=handler.files)


def _packed(path: str, data: bytes, *, executable: bool = False) -> PackedFile:
    return PackedFile(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), executable=executable)


def install(
    package: Package,
    root: Path,
    *,
    staging: Path,
    check: Callable[[Path, Manifest], None],
    announce: Callable[[], None] = lambda: None,
    replace: bool = False,
) -> list[Path]:
    """Install the files of a package into the tree at `root`; returns those that were written.

    `check` sees them first, in a folder of their own below `staging`, and raises if the tool is not what it claims to be.
    `announce` is called before the first of them is written.
    """
    with explained(str(root)):
        _inspect(package, staging, check)
        files = _in_order(package.manifest)
        wanted = [file for file in files if _is_new(package, file, root, replace=replace)]
        if wanted:
            announce()
        return _place(package, wanted, root)


def left_behind(tool: Tool, package: Package, own: Iterable[str]) -> list[str]:
    """What the tool seems to need and the package does not contain; `own` are the executors that every crib has."""
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


def whole_name(tool: Tool) -> str:
    """The name of the whole tool, even if only its actions can be called."""
    action = tool.run.action if isinstance(tool.run, Chained) else ""
    return tool.name.removesuffix(action)[:-1] if action else tool.name


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
    """Whether this is a regular file in or below the folder, without links and `..`."""
    if ".." in path.parts or path.is_symlink() or not path.is_file():
        return False
    return path.resolve().is_relative_to(folder.resolve())


# Names that Python, Node or Toolcrib treat specially in any folder.
OBEYED = frozenset(
    (
        *("node_modules", "venv", ".venv", "site-packages", "__pycache__", "__init__.py", "pyvenv.cfg"),
        *("package.json", "toolcrib.toml", "sitecustomize.py", "usercustomize.py"),
    )
)
BUILT = "built"
ARCHIVE = ".zip"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulled:
    """A pulled version: its manifest, the files that were written (none if all existed), its signer, and what is still to do.

    `bundle` is the slug of a bundle that was imported.
    """

    manifest: Manifest
    written: tuple[Path, ...]
    signed: str
    bundle: str = ""
    to_do: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A published version, and what it seems to need besides."""

    manifest: Manifest
    left_behind: tuple[str, ...]


def publish(
    tool: Tool, place: str, parts: Resources, *, files: Iterable[str] = (), key: Path | None = None
) -> Published:
    """Publish a tool of the project to the depot in a folder, signed if there is a key to sign with."""
    if tool.source_type == BUILT:
        message = (
            f"{tool.name} was built from a request, and depots keep single files; hand on the request instead: "
            f"crib request show {tool.name} --yaml"
        )
        raise ToolError(Kind.VALIDATION, message)
    root, tree = _tree_of(tool, parts)
    package = pack(tool, root, tree, files)
    own = {"python", *(entry.name for entry in system_tools())}
    missing = tuple(left_behind(tool, package, own))
    return Published(manifest=_add(package, place, key), left_behind=missing)


def _add(package: Package, place: str, key: Path | None) -> Manifest:
    """Add a package to the depot in a folder, signed if there is a key to sign with."""
    depot = open_depot(place)
    if not isinstance(depot, FolderDepot):
        message = f"{place} can be pulled from, not published to; publish to the folder that the web server serves"
        raise ToolError(Kind.VALIDATION, message)
    if key is not None:
        package = replace(package, manifest=sign(package.manifest, key))
    manifest = package.manifest
    if not depot.publish(package):
        message = f"{manifest.name}@{manifest.version} is published there already, with the same content"
        raise ToolError(Kind.CONFLICT, message, details={"hash": manifest.hash})
    return manifest


async def pull(
    name: str,
    place: str,
    parts: Resources,
    formats: Formats,
    *,
    version: str | None = None,
    replace: bool = False,
    enable: bool = False,
) -> Pulled:
    """Pull a tool, a tool folder or a bundle into the project, disabled unless `enable`; on any failure the project is as it was.

    `formats` makes, for each kind of tree, the format that reads the files below a root.
    """
    settings, trusted = parts.settings, parts.settings.table(DepotsSettings)
    if settings.root is None:
        raise ToolError(Kind.VALIDATION, "there is no project to pull a tool into; make one with: crib init")
    depot = open_depot(place, settings.table(EgressSettings).private)
    try:
        manifest = await fetch_manifest(depot, name, version)
        signed = check_signature(manifest, trusted.keys, required=trusted.signed)
        package = await fetch_package(depot, manifest)
    finally:
        if not isinstance(depot, FolderDepot):
            await depot.close()
    if manifest.tree == BUNDLES:
        return _import_bundle(package, parts, signed, enable=enable)
    root = _target(manifest.tree, parts, settings.root)
    if not root.resolve().is_relative_to(settings.root.resolve()):
        raise ToolError(Kind.BLOCKED, f"{root} leads out of the project; nothing was installed. Replace the link")
    found: list[Tool] = []
    if manifest.tree == FOLDERS:
        check, installed = partial(_check_folder, parts, package), ""
    else:
        check, installed = partial(_check_tool, formats, found), _installed_version(formats, root, manifest)
    if version is None:
        _refuse_older(manifest, installed)
    written = install(
        package,
        root,
        staging=parts.data.folder(),
        check=check,
        # A folder is not live before it is built.
        announce=partial(_disable, parts, root, found) if not enable else lambda: None,
        replace=replace,
    )
    return Pulled(
        manifest=manifest, written=tuple(written), signed=signed, to_do=_to_do(manifest, written, enable=enable)
    )


def publish_bundle(slug: str, version: str, place: str, parts: Resources, *, key: Path | None = None) -> Published:
    """Publish a stored bundle with all its tools as the archive that it exports, under a version of the publisher's choice."""
    bundles = parts.get("bundles")
    found = [bundle for bundle in bundles.list_bundles(include_disabled=True).items if bundle.slug == slug]
    if len(found) != 1:
        raise ToolError(Kind.NOT_FOUND, f"there is no bundle {slug!r:.80}; list them with: crib bundle list")
    data = bundles.export_bundle(found[0].id)
    path = f"{slug}{ARCHIVE}"
    manifest = Manifest(
        name=slug,
        version=version,
        description=found[0].description or found[0].display_name,
        requires=_required_by(bundles.read_archive(data).tools.values()),
        tree=BUNDLES,
        main=path,
        files=(_packed(path, data),),
    )
    return Published(manifest=_add(Package(manifest=manifest, contents={path: data}), place, key), left_behind=())


def _import_bundle(package: Package, parts: Resources, signed: str, *, enable: bool) -> Pulled:
    """Import the bundle of a package whose archive is what its manifest claims."""
    manifest, bundles = package.manifest, parts.get("bundles")
    data = package.contents[manifest.main]
    archive = bundles.read_archive(data)
    claimed = f"the bundle {manifest.name} requiring {', '.join(manifest.requires) or 'nothing'}"
    requires = _required_by(archive.tools.values())
    if len(manifest.files) != 1 or archive.bundle.get("slug") != manifest.name or requires != manifest.requires:
        message = f"{manifest.main} does not hold what the manifest names ({claimed}); nothing was imported"
        raise ToolError(Kind.PERMANENT, message)
    bundle = bundles.import_bundle(archive.bundle_id, data, enable=enable)
    to_do = "" if enable else f"it is disabled; look at its tools, then enable it with: crib enable '{bundle.slug}/*'"
    return Pulled(manifest=manifest, written=(), signed=signed, bundle=bundle.slug, to_do=to_do)


def _required_by(documents: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """What the tools of a bundle require."""
    return tuple(sorted({name for document in documents for name in required_capabilities(document)}))


def _disable(parts: Resources, root: Path, tools: Iterable[Tool]) -> None:
    """Disable the tools of a package before their file is there."""
    trees = {path: bundle for bundle, path in parts.get("script_trees").items()}
    parts.get("bundles").disable_ahead(trees.get(root, root.name), tools)


def _to_do(manifest: Manifest, written: list[Path], *, enable: bool) -> str:
    if not written:
        return ""
    if manifest.tree == FOLDERS:
        return "it can be called once it is built: crib build"
    return "" if enable else f"it is disabled; look at it, then enable it with: crib enable {manifest.name}"


def _check_folder(parts: Resources, package: Package, folder: Path, manifest: Manifest) -> None:
    """Refuse a package that is not the tool folder that its manifest names."""
    name = PurePosixPath(manifest.main).parts[0]
    for file in manifest.files:
        _refuse_elsewhere(file.path, manifest)
    reading = parts.make("folder_reading", root=folder, folder=name, files=dict(package.contents))
    claimed = f"{manifest.name}@{manifest.version} requiring {', '.join(manifest.requires) or 'nothing'}"
    if manifest.main != f"{name}/{SCHEMA_FILE}" or reading.tool is None or _claim(reading.tool) != claimed:
        message = f"{name} is not the tool folder that the manifest names ({claimed}); nothing was installed"
        raise ToolError(Kind.PERMANENT, message, details={"problems": list(reading.problems)})


def _installed_version(formats: Formats, root: Path, manifest: Manifest) -> str:
    """The installed version of the tool; empty if there is none that can be read."""
    try:
        tools = _tools_in(formats, root, manifest.main, manifest.tree)
    except (OSError, ToolError):
        return ""
    return next((tool.version for tool in tools if whole_name(tool) == manifest.name), "")


def _refuse_older(manifest: Manifest, installed: str) -> None:
    """Refuse a downgrade that was not asked for: the depot may be stale or malicious."""
    if not is_older(manifest.version, installed):
        return
    address = f"{manifest.name}@{manifest.version}"
    message = (
        f"the depot has {address}, and {installed} is installed; nothing was installed. "
        f"To go back name the version: crib pull {address} --replace"
    )
    raise ToolError(Kind.CONFLICT, message, details={"installed": installed, "offered": manifest.version})


def _check_tool(formats: Formats, found: list[Tool], folder: Path, manifest: Manifest) -> None:
    """Refuse a package whose file is not the tool that its manifest names; `found` gets the tools of the file."""
    tools = _tools_in(formats, folder, manifest.main, manifest.tree)
    found += tools
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
    # Plain tools are only directly in the folder.
    if not dialect.reads(file) or (tree == TOOLS and file.parent != folder):
        return []
    return list(dialect.read(file, file.read_bytes()))


def _claim(tool: Tool) -> str:
    return f"{whole_name(tool)}@{tool.version} requiring {', '.join(sorted(tool.requires)) or 'nothing'}"


def _refuse_elsewhere(path: str, manifest: Manifest) -> None:
    """Refuse a file outside the tool's folder, and one that Python, Node or Toolcrib would run."""
    folder, place = PurePosixPath(manifest.main).parent, PurePosixPath(path)
    if path == manifest.main or (place.is_relative_to(folder) and _is_harmless(place.relative_to(folder))):
        return
    message = f"the package of {manifest.name} contains {path}, which a package may not install; nothing was installed"
    raise ToolError(Kind.PERMANENT, message, details={"path": path})


def _is_harmless(place: PurePosixPath) -> bool:
    """Whether a file, relative to the tool's folder, has no special name and shadows no standard module."""
    names = {part.casefold() for part in place.parts}
    stem = place.parts[0].partition(".")[0]
    return names.isdisjoint(OBEYED) and place.suffix.casefold() != ".pth" and stem not in sys.stdlib_module_names


def _tree_of(tool: Tool, parts: Resources) -> tuple[Path, str]:
    """The root and the kind of the tree that contains the tool."""
    trees = dict.fromkeys(parts.get("script_trees").values(), SCRIPTS)
    trees |= dict.fromkeys(parts.tool_folders(), TOOLS)
    place = None if tool.origin is None else Path(tool.origin.place)
    for path, tree in trees.items():
        if place is not None and place.is_relative_to(path):
            return path, tree
    raise ToolError(Kind.VALIDATION, f"{tool.name} is not written in a file of the project; only such can be published")


def _target(tree: str, parts: Resources, root: Path) -> Path:
    """The folder of the project for tools of that kind."""
    trees = parts.tool_folders() if tree in (TOOLS, FOLDERS) else list(parts.get("script_trees").values())
    inside = [path for path in trees if path.is_relative_to(root)]
    if not inside:
        setting = "scripts.folders" if tree == SCRIPTS else "catalog.folders"
        raise ToolError(
            Kind.VALIDATION, f"the project has no folder for {tree}; name one in {setting} of toolcrib.toml"
        )
    return inside[0]


class Depots:
    """Transfers between the project of one Crib and depots."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def publish(self, tool: Tool, place: str, *, files: Iterable[str] = (), key: Path | None = None) -> Published:
        """Publish a tool of the project to the depot in a folder, signed if there is a key to sign with."""
        return publish(tool, place, self._resources, files=files, key=key)

    def publish_bundle(self, slug: str, version: str, place: str, *, key: Path | None = None) -> Published:
        """Publish a stored bundle with all its tools to the depot in a folder."""
        return publish_bundle(slug, version, place, self._resources, key=key)

    async def pull(
        self, name: str, place: str, *, version: str | None = None, replace: bool = False, enable: bool = False
    ) -> Pulled:
        """Pull a tool, a tool folder or a bundle into the project; on any failure the project is as it was."""
        formats = {
            SCRIPTS: lambda root: self._resources.make("script_format", root=root),
            TOOLS: lambda _: self._resources.make("plain_format"),
        }
        return await pull(name, place, self._resources, formats, version=version, replace=replace, enable=enable)
