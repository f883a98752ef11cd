"""Every tool there is, found by name, slug or full address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry
from toolcrib.pure.names import did_you_mean, read_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.catalog.folder import Folder
    from toolcrib.model.tool import Tool


@dataclass(frozen=True, slots=True)
class _Place:
    """A tool's entry, and the folder whose file it must be compared with before it is handed out."""

    entry: Entry
    folder: Folder | None


class Catalog:
    """Keeps tools of every source.

    Of several tools with one name the one from the earlier bundle is meant, and within a bundle the newest; the full
    address `bundle/slug@version` always means exactly one.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self._disabled = disabled
        self._where = where
        self._bundles: dict[str, dict[str, Tool]] = {}
        self._folders: list[Folder] = []
        self._names: dict[str, _Place] = {}
        self._addresses: dict[str, _Place] = {}
        self._stale = False

    def add(self, tool: Tool) -> None:
        """Keep a tool of the host program."""
        bundle = self._bundles.setdefault(tool.bundle, {})
        if tool.address in bundle:
            raise ToolError(
                Kind.CONFLICT, f"{tool.address} is already registered; give the tool another name or version"
            )
        bundle[tool.address] = tool
        self._stale = True

    def remove(self, tool: Tool) -> None:
        """Forget a tool of the host program."""
        if self._bundles.get(tool.bundle, {}).pop(tool.address, None) is not None:
            self._stale = True

    def add_folder(self, folder: Folder) -> None:
        """Keep the tools of a folder, as long as its files are there."""
        folder.refresh()
        self._folders.append(folder)
        self._bundles.setdefault(folder.bundle, {})
        self._stale = True

    def find(self, name: str, bundle: str | None = None, version: str | None = None) -> Entry | None:
        """The tool that is meant, as its file is now."""
        if self._stale:
            self._index()
        place = self._names.get(name) if bundle is None and version is None else self._exactly(name, bundle, version)
        if place is not None and place.folder is None:
            return place.entry
        return self._find_file(place, name, bundle, version)

    def entries(self) -> Iterator[Entry]:
        """Every tool, bundle by bundle."""
        self._refresh_folders()
        return (place.entry for place in self._addresses.values())

    def problems(self) -> list[ToolError]:
        """What keeps files from being tools, and tools from being found."""
        self._refresh_folders()
        return [*(problem for folder in self._folders for problem in folder.problems), *self._clashes()]

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of the other tools that go by this tool's name."""
        return [address for address, place in self._addresses.items() if _clash(place.entry.tool, tool)]

    def suggest(self, name: str) -> str:
        """A hint at the name that was perhaps meant."""
        return did_you_mean(name, {place.entry.tool.name for place in self._addresses.values()})

    def _find_file(self, place: _Place | None, name: str, bundle: str | None, version: str | None) -> Entry | None:
        """A tool whose file may have changed since it was read, or may have come since."""
        if place is None:
            self._refresh_folders()
        elif place.folder is not None and place.folder.refresh_file(_file_name(place.entry.tool)):
            self._index()
        place = self._exactly(name, bundle, version)
        return None if place is None else place.entry

    def _exactly(self, name: str, bundle: str | None, version: str | None) -> _Place | None:
        if "/" in name or "@" in name:
            address = read_address(name)
            bundle, name, version = address.bundle or bundle, address.name, address.version or version
        slug = name.replace("_", "-")
        if bundle is None and version is None:
            return self._names.get(slug)
        wanted = (
            place
            for place in self._addresses.values()
            if place.entry.tool.slug == slug
            and bundle in (None, place.entry.tool.bundle)
            and version in (None, place.entry.tool.version)
        )
        return next(wanted, None)

    def _refresh_folders(self) -> None:
        changed = [folder.refresh() for folder in self._folders]
        if self._stale or any(changed):
            self._index()

    def _index(self) -> None:
        self._stale = False
        self._names, self._addresses = {}, {}
        for bundle in self._bundles:
            for tool, folder in self._newest_first(bundle):
                place = _Place(self._entry(tool), folder)
                self._addresses.setdefault(tool.address, place)
                self._names.setdefault(tool.slug, place)
                self._names.setdefault(tool.name, self._names[tool.slug])

    def _newest_first(self, bundle: str) -> Iterable[tuple[Tool, Folder | None]]:
        yield from ((tool, None) for tool in reversed(self._bundles[bundle].values()))
        for folder in self._folders:
            if folder.bundle == bundle:
                yield from ((tool, folder) for tool in folder.tools)

    def _entry(self, tool: Tool) -> Entry:
        spellings = {tool.name, tool.slug, tool.address, f"{tool.bundle}/{tool.slug}", f"{tool.bundle}/*"}
        hit = sorted(spellings & self._disabled)
        if not hit:
            return Entry(tool=tool)
        cure = f"take {hit[0]!r} out of `disabled` in toolcrib.toml"
        return Entry(tool=tool, enabled=False, reason=f"{hit[0]!r} stands in {self._where}", cure=cure)

    def _clashes(self) -> Iterator[ToolError]:
        files: dict[str, Tool] = {}
        for folder in self._folders:
            for tool in folder.tools:
                first = files.setdefault(tool.address, tool)
                if first is not tool:
                    message = f"{tool.origin}: {tool.address} is already defined in {first.origin}; rename one of them"
                    yield ToolError(Kind.CONFLICT, message)


def _file_name(tool: Tool) -> str:
    return Path(tool.origin.place).name if tool.origin else ""


def _clash(other: Tool, tool: Tool) -> bool:
    return other is not tool and other.slug == tool.slug
