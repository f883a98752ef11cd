"""Read and publish tools in a depot: a folder, or the same folder behind a web server."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from toolcrib.features.depots.package import (
    BUNDLES,
    FORMAT,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    Package,
    check_name,
    check_version,
    decode_manifest,
)
from toolcrib.infra.egress import Request
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.files import durable
from toolcrib.infra.files.durable import create_in, explained, replace_in
from toolcrib.lib.documents import read_json
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.features.depots.package import Manifest

INDEX = "index.json"
MANIFEST = "manifest.json"
MAX_INDEX_BYTES = 16_000_000
SECONDS = 60.0

# Readable by all, because a web server may run as another user.
_FOLDER_MODE = 0o755
_FILE_MODE = 0o644


class Depot(Protocol):
    """A place to pull tools from."""

    async def read(self, path: str, limit: int) -> bytes | None:
        """A file of the depot; None if there is none."""


async def list_tools(depot: Depot) -> dict[str, list[str]]:
    """The tools of a depot, each with its versions, oldest first."""
    data = await depot.read(INDEX, MAX_INDEX_BYTES)
    if data is None:
        raise ToolError(Kind.NOT_FOUND, f"{depot} is not a depot: it has no {INDEX}; publish a tool to it first")
    return _read_index(data, f"{depot}/{INDEX}")


async def fetch_manifest(depot: Depot, name: str, version: str | None = None) -> Manifest:
    """The manifest of a version; by default of the one published last."""
    slug = name.replace("_", "-")
    tools = await list_tools(depot)
    versions = tools.get(slug)
    if versions is None:
        raise ToolError(Kind.NOT_FOUND, f"{depot} holds no tool {name!r}; see: crib depot list {depot}")
    if version is not None and version not in versions:
        message = f"{depot} holds no version {version} of {name}; it has {', '.join(versions[-10:])}"
        raise ToolError(Kind.NOT_FOUND, message)
    wanted = version or versions[-1]
    place = _folder(slug, wanted)
    data = await depot.read(f"{place}/{MANIFEST}", MAX_MANIFEST_BYTES)
    if data is None:
        raise ToolError(Kind.NOT_FOUND, f"{depot}: {place}/{MANIFEST} is missing; the depot is damaged")
    manifest = decode_manifest(data, f"{depot}/{place}/{MANIFEST}")
    if (manifest.name.replace("_", "-"), manifest.version) != (slug, wanted):
        message = (
            f"{depot}: {place} holds {manifest.name}@{manifest.version}; the depot is damaged, nothing was installed"
        )
        raise ToolError(Kind.PERMANENT, message)
    return manifest


async def fetch_package(depot: Depot, manifest: Manifest) -> Package:
    """The files of a version, each checked against its hash."""
    place = _folder(manifest.name.replace("_", "-"), manifest.version)
    contents: dict[str, bytes] = {}
    for file in manifest.files:
        data = await depot.read(f"{place}/files/{file.path}", MAX_FILE_BYTES)
        if data is None:
            message = f"{depot}: {place}/files/{file.path} is missing; the depot is damaged, nothing was installed"
            raise ToolError(Kind.NOT_FOUND, message)
        contents[file.path] = data
    return Package(manifest=manifest, contents=contents)


class FolderDepot:
    """A folder; the only kind that can be published to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    async def read(self, path: str, limit: int) -> bytes | None:
        """A file below the folder."""
        return durable.read(self.root / path, limit)

    def publish(self, package: Package) -> bool:
        """Add a version atomically; False if the same version exists already."""
        manifest = package.manifest
        with explained(str(self.root)), self._locked():
            place = self.root / _folder(manifest.name.replace("_", "-"), manifest.version)
            is_new = not place.exists()
            if is_new:
                self._refuse_other_kind(manifest, place.parent)
                self._add(package, place)
            elif self._hash_of(place) != manifest.hash:
                message = (
                    f"{manifest.name}@{manifest.version} is published already, with other content; raise the version"
                )
                raise ToolError(Kind.CONFLICT, message)
            # Also if the version existed: its publisher may have been killed before this step.
            self._write_index()
        return is_new

    def _add(self, package: Package, place: Path) -> None:
        staging = place.parent / f".{os.urandom(8).hex()}.part"
        try:
            _make(staging / "files")
            for file in package.manifest.files:
                mode = _FILE_MODE | (0o111 if file.executable else 0)
                _write(staging / "files" / file.path, package.contents[file.path], mode)
            _write(staging / MANIFEST, package.manifest.encode(), _FILE_MODE)
            _sync(staging)
            staging.rename(place)
            _sync(place.parent)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    def _refuse_other_kind(self, manifest: Manifest, folder: Path) -> None:
        """Refuse a bundle under the name of a tool, and the other way round."""
        for place in folder.glob(f"[!.]*/{MANIFEST}"):
            other = decode_manifest(place.read_bytes(), str(place))
            if (other.tree == BUNDLES) is not (manifest.tree == BUNDLES):
                kind = "bundle" if other.tree == BUNDLES else "tool"
                message = (
                    f"{self} holds a {kind} {other.name}; publish this one to another depot, or under another name"
                )
                raise ToolError(Kind.CONFLICT, message)

    def _hash_of(self, place: Path) -> str:
        with suppress(OSError):
            return decode_manifest((place / MANIFEST).read_bytes(), str(place / MANIFEST)).hash
        return ""

    def _write_index(self) -> None:
        """Write the index of all folders, for clients that cannot list them."""
        tools: dict[str, list[str]] = {}
        for place in (self.root / "tools").iterdir():
            versions = [version for version in place.iterdir() if not version.name.startswith(".")]
            versions.sort(key=lambda version: ((version / MANIFEST).stat().st_mtime_ns, version.name))
            if versions:
                tools[place.name] = [version.name for version in versions]
        document = {"depot": FORMAT, "tools": dict(sorted(tools.items()))}
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            replace_in(folder, INDEX, json.dumps(document, indent=2).encode() + b"\n", mode=_FILE_MODE)
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock out other publishers, also of other processes; the lock file is never removed."""
        _make(self.root / "tools")
        descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for leftover in (self.root / "tools").glob("*/.*.part"):
                shutil.rmtree(leftover, ignore_errors=True)
            yield
        finally:
            os.close(descriptor)


class WebDepot:
    """A depot on a web server; egress is restricted to exactly the address that the operator typed."""

    def __init__(self, url: str, egress: Egress) -> None:
        self.url = url.rstrip("/")
        self._egress = egress

    def __str__(self) -> str:
        return self.url

    async def read(self, path: str, limit: int) -> bytes | None:
        """GET a file of the depot."""
        url = parse_url(f"{self.url}/{quote(path)}")
        hosts = parse_hosts([url.authority])
        response = await self._egress.fetch(Request(url=url), hosts=hosts, max_bytes=limit, timeout=SECONDS)
        if response.status in {404, 410}:
            return None
        if response.status != 200:  # noqa: PLR2004 - the one status that carries the file
            raise ToolError(Kind.TRANSIENT, f"{self.url} answered with status {response.status}", retryable=True)
        return response.body

    async def close(self) -> None:
        """Close the connections."""
        await self._egress.close()


def open_depot(place: str, private: tuple[str, ...] = ()) -> FolderDepot | WebDepot:
    """The depot at a path or a web address; `private` are addresses that may be reached besides public ones."""
    if not place.startswith(("http://", "https://")):
        return FolderDepot(Path(place).expanduser().absolute())
    url = parse_url(place)
    own = (f"{url.host}:{url.port}",) if url.address is not None else ()
    return WebDepot(place, Egress(private=(*private, *own)))


def _folder(slug: str, version: str) -> str:
    check_name(slug)
    check_version(version)
    return f"tools/{slug}/{version}"


def _read_index(data: bytes, place: str) -> dict[str, list[str]]:
    document = read_json(data, place=place, max_bytes=MAX_INDEX_BYTES)
    tools: Mapping[str, object] | object = document.get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, dict) or document.get("depot") != FORMAT:  # type: ignore[attr-defined]  # tools came from it
        raise ToolError(Kind.VALIDATION, f"{place} is not an index of a depot that this Toolcrib can read")
    found: dict[str, list[str]] = {}
    for name, versions in tools.items():
        if not isinstance(versions, list) or not versions or not all(isinstance(word, str) for word in versions):
            raise ToolError(Kind.VALIDATION, f"{place}: {name[:80]!r} has no list of versions; the depot is damaged")
        found[name] = versions
    return found


def _make(folder: Path) -> None:
    folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)


def _write(path: Path, data: bytes, mode: int) -> None:
    _make(path.parent)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        create_in(folder, path.name, data, mode=mode)
    finally:
        os.close(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
