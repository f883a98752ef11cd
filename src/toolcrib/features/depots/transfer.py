"""Publish tools and bundles of the project to a depot, and pull them into the project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from toolcrib.features.depots import DepotsSettings
from toolcrib.features.depots.depot import FolderDepot, fetch_manifest, fetch_package, open_depot
from toolcrib.features.depots.installation import install
from toolcrib.features.depots.package import (
    BUNDLES,
    FOLDERS,
    SCRIPTS,
    TOOLS,
    Manifest,
    Package,
    check_signature,
    is_older,
    sign,
)
from toolcrib.features.depots.packed_tool import (
    SCHEMA_FILE,
    left_behind,
    pack,
    packed_file,
    refuse_elsewhere,
    shadows,
    whole_name,
)
from toolcrib.infra.egress import EgressSettings
from toolcrib.infra.files import NO_TOOL, read_small
from toolcrib.lib.document_format import required_capabilities
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, read_json
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.model.protocols import Format
    from toolcrib.model.tool import Tool

    Formats = Mapping[str, Callable[[Path], Format]]

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
    """A published version, and warnings about what it seems to need besides."""

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
    missing = [*left_behind(tool, package, own), *shadows(package.manifest)]
    return Published(manifest=_add(package, place, key), left_behind=tuple(missing))


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
    """Pull a tool, a tool folder or a bundle into the project, disabled unless `enable`; a failure leaves the project unchanged.

    `formats` returns the format for a kind of tree and its root.
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
    pulling = parts.record(
        "tool.pulled",
        f"{manifest.name}@{manifest.version}",
        facts={"depot": place, "hash": manifest.hash, "signed": signed, "enabled": enable},
    )
    if manifest.tree == BUNDLES:
        with pulling:
            return _import_bundle(package, parts, signed, enable=enable)
    root = _target(manifest.tree, parts, settings.root)
    if not root.resolve().is_relative_to(settings.root.resolve()):
        raise ToolError(Kind.BLOCKED, f"{root} leads out of the project; nothing was installed. Replace the link")
    found: list[Tool] = []
    if manifest.tree == FOLDERS:
        check, installed = partial(_check_folder, parts, package), _installed_folder_version(root / manifest.main)
    else:
        check, installed = partial(_check_tool, parts, formats, found), _installed_version(formats, root, manifest)
    if version is None:
        _refuse_older(manifest, installed)
    with pulling:
        written = install(
            package,
            root,
            staging=parts.data.folder(),
            check=check,
            # A tool folder cannot be called before it is built.
            announce=partial(_disable, parts, root, found) if not enable else lambda: None,
            replace=replace,
        )
    to_do = [_to_do(manifest, written, enable=enable), *shadows(manifest)]
    return Pulled(manifest=manifest, written=tuple(written), signed=signed, to_do="\n".join(filter(None, to_do)))


def publish_bundle(slug: str, version: str, place: str, parts: Resources, *, key: Path | None = None) -> Published:
    """Publish a stored bundle with all its tools, as its exported archive; the publisher chooses the version."""
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
        files=(packed_file(path, data),),
    )
    return Published(manifest=_add(Package(manifest=manifest, contents={path: data}), place, key), left_behind=())


def _import_bundle(package: Package, parts: Resources, signed: str, *, enable: bool) -> Pulled:
    """Import the bundle of a package; raises ToolError if its archive is not what the manifest claims."""
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
    """The capabilities that the tools of a bundle require."""
    return tuple(sorted({name for document in documents for name in required_capabilities(document)}))


def _disable(parts: Resources, root: Path, tools: Iterable[Tool]) -> None:
    """Disable the tools of a package before their file is written."""
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
        refuse_elsewhere(file.path, manifest)
    reading = parts.make("folder_reading", root=folder, folder=name, files=dict(package.contents))
    claimed = f"{manifest.name}@{manifest.version} requiring {', '.join(manifest.requires) or 'nothing'}"
    if manifest.main != f"{name}/{SCHEMA_FILE}" or reading.tool is None or _claim(reading.tool) != claimed:
        message = f"{name} is not the tool folder that the manifest names ({claimed}); nothing was installed"
        raise ToolError(Kind.PERMANENT, message, details={"problems": list(reading.problems)})


def _installed_version(formats: Formats, root: Path, manifest: Manifest) -> str:
    """The installed version of the tool; empty if there is none that can be read."""
    try:
        tools = _tools_in(formats[manifest.tree](root), root, manifest.main)
    except (OSError, ToolError):
        return ""
    return next((tool.version for tool in tools if whole_name(tool) == manifest.name), "")


def _installed_folder_version(schema: Path) -> str:
    """The version that the installed schema of a tool folder names; empty if there is none that can be read."""
    try:
        document = read_json(read_small(schema, MAX_DEFINITION_BYTES) or b"", place=str(schema))
    except ToolError:
        return ""
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, str) else ""


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


def _check_tool(parts: Resources, formats: Formats, found: list[Tool], folder: Path, manifest: Manifest) -> None:
    """Refuse a package whose file is not the tool that its manifest names; `found` gets the tools of the file."""
    own = formats[manifest.tree](folder)
    # A package must not choose the bundle of its tool: a plain one is directly in the folder.
    tools = [] if manifest.tree == TOOLS and "/" in manifest.main else _tools_in(own, folder, manifest.main)
    found += tools
    claimed = f"{manifest.name}@{manifest.version} requiring {', '.join(manifest.requires) or 'nothing'}"
    if claimed not in map(_claim, tools):
        message = f"{manifest.main} does not hold the tool that the manifest names ({claimed}); nothing was installed"
        raise ToolError(Kind.PERMANENT, message, details={"found": list(map(_claim, tools))})
    others = [tool.name for tool in tools if whole_name(tool) != manifest.name]
    for file in manifest.files:
        refuse_elsewhere(file.path, manifest)
        if file.path != manifest.main:
            for reader in parts.formats() if manifest.tree == TOOLS else [own]:
                others += [tool.name for tool in _tools_in(reader, folder, file.path)]
    if others:
        message = (
            f"the package of {manifest.name} holds other tools besides it ({', '.join(others)}); nothing was installed"
        )
        raise ToolError(Kind.PERMANENT, message, details={"found": others})


def _tools_in(reader: Format, folder: Path, path: str) -> list[Tool]:
    file = folder / path
    if not reader.reads(file) or any(part.startswith(NO_TOOL) for part in PurePosixPath(path).parts):
        return []
    return list(reader.read(file, file.read_bytes()))


def _claim(tool: Tool) -> str:
    return f"{whole_name(tool)}@{tool.version} requiring {', '.join(sorted(tool.requires)) or 'nothing'}"


def _tree_of(tool: Tool, parts: Resources) -> tuple[Path, str]:
    """The root and the kind of the tree that contains the tool."""
    trees = dict.fromkeys(parts.get("script_trees").values(), SCRIPTS)
    trees |= dict.fromkeys(parts.tool_folders(), TOOLS)
    place = None if tool.origin is None else Path(tool.origin.place)
    for path, tree in trees.items():
        if place is not None and place.is_relative_to(path):
            # A package does not say in which bundle its tool is; a plain file lies directly in the folder of its bundle.
            return (place.parent if tree == TOOLS else path), tree
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
        """Pull a tool, a tool folder or a bundle into the project; a failure leaves the project unchanged."""
        formats = {
            SCRIPTS: lambda root: self._resources.make("script_format", root=root),
            TOOLS: lambda _: self._resources.make("plain_format"),
        }
        return await pull(name, place, self._resources, formats, version=version, replace=replace, enable=enable)
