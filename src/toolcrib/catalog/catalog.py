"""Every tool there is, found by name, slug or full address."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from toolcrib.catalog.index import Index, Place, build_index
from toolcrib.catalog.switches import Switches
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import did_you_mean, read_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcrib.catalog.folder import Folder
    from toolcrib.model.tool import Entry, Tool


class Catalog:
    """Keeps tools of every source.

    Of several tools with one name the one from the earlier bundle is meant, and within a bundle the newest; the full
    address `bundle/slug@version` always means exactly one. Threads may share a catalogue.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self._switches = Switches(disabled, where)
        self._bundles: dict[str, dict[str, Tool]] = {}
        self._folders: list[Folder] = []
        self._later: list[Callable[[], Iterable[Tool]]] = []
        self._index = Index()
        self._stale = False
        self._lock = threading.RLock()

    def add(self, tool: Tool) -> None:
        """Keep a tool of the host program."""
        with self._lock:
            bundle = self._bundles.setdefault(tool.bundle, {})
            if tool.address in bundle:
                message = f"{tool.address} is already registered; give the tool another name or version"
                raise ToolError(Kind.CONFLICT, message)
            bundle[tool.address] = tool
            self._stale = True

    def remove(self, tool: Tool) -> None:
        """Forget a tool of the host program."""
        with self._lock:
            if self._bundles.get(tool.bundle, {}).pop(tool.address, None) is not None:
                self._stale = True

    def add_folder(self, folder: Folder) -> None:
        """Keep the tools of a folder, as long as its files are there; they are read when a name first leads there."""
        with self._lock:
            self._folders.append(folder)
            self._bundles.setdefault(folder.bundle, {})
            self._stale = True

    def add_later(self, bundle: str, load: Callable[[], Iterable[Tool]]) -> None:
        """Keep the tools of a bundle that is only made when no tool of the host program has the name."""
        with self._lock:
            self._bundles.setdefault(bundle, {})
            self._later.append(load)

    def find(self, name: str, bundle: str | None = None, version: str | None = None) -> Entry | None:
        """The tool that is meant, as its file is now."""
        if bundle is None and version is None and not self._stale:
            place = self._index.names.get(name)
            if place is not None and place.settled:
                return place.entry
        return self._find_now(name, bundle, version)

    def entries(self) -> Iterator[Entry]:
        """Every tool, bundle by bundle."""
        return iter(self._refresh().addresses.values())

    def problems(self) -> list[ToolError]:
        """What keeps files from being tools, tools from being found, and switches from switching."""
        index = self._refresh()
        broken = (name for name, place in index.names.items() if place.problem is not None)
        names = [*broken, *(f"{bundle}/*" for bundle in tuple(self._bundles))]
        return [
            *(problem for folder in self._folders for problem in folder.problems),
            *index.problems,
            *self._switches.idle((entry.tool for entry in index.addresses.values()), names),
        ]

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of the other tools that go by this tool's name."""
        entries = (place.entry for place in self._indexed().slugs.get(tool.slug, ()))
        return [entry.tool.address for entry in entries if entry is not None and entry.tool is not tool]

    def suggest(self, name: str) -> str:
        """A hint at what is wrong with the file of that name, or at the name that was perhaps meant."""
        index = self._indexed()
        place = _named(index, read_address(name).name)
        if place is not None and place.problem is not None and place.folder is not None:
            # Whoever calls a tool is told the file, and not where on this machine the project lies.
            folder = place.folder.path
            return f"its file is broken: {place.problem.message.replace(str(folder), folder.name)}"
        return did_you_mean(name, {entry.tool.name for entry in index.addresses.values()})

    def _find_now(self, name: str, bundle: str | None, version: str | None) -> Entry | None:
        """A tool whose file may have changed since it was read, or may have come since."""
        with self._lock:
            place = _exactly(self._indexed(), name, bundle, version)
            if place is not None and place.settled:
                return place.entry
            if self._load_later():
                place = _exactly(self._indexed(), name, bundle, version)
            if self._refresh_for(place):
                self._stale = True
                place = _exactly(self._indexed(), name, bundle, version)
        return None if place is None else place.entry

    def _refresh_for(self, place: Place | None) -> bool:
        if place is None:
            changed = [folder.refresh() for folder in self._folders]
        else:
            changed = [folder.refresh_names() for folder in self._folders]
        if place is not None and place.folder is not None:
            changed.append(place.folder.refresh_file(place.file))
        return any(changed)

    def _load_later(self) -> bool:
        """Make the bundles that were put off; True if there were any."""
        later = len(self._later)
        while self._later:
            for tool in self._later[0]():
                # What the host program put in the place of such a tool stays.
                self._bundles.setdefault(tool.bundle, {}).setdefault(tool.address, tool)
            # Only now: what could not be made is tried again and fails again, instead of being gone.
            del self._later[0]
            self._stale = True
        return later > 0

    def _refresh(self) -> Index:
        with self._lock:
            self._load_later()
            changed = [folder.refresh() for folder in self._folders]
            self._stale = self._stale or any(changed)
            return self._indexed()

    def _indexed(self) -> Index:
        if not self._stale:
            return self._index
        with self._lock:
            newest_first = {bundle: [*reversed(tools.values())] for bundle, tools in self._bundles.items()}
            # Whole before it is in place: another thread finds everything by the old index or by the new one.
            self._index = build_index(newest_first, self._folders, self._switches)
            self._stale = False
            return self._index


def _exactly(index: Index, name: str, bundle: str | None, version: str | None) -> Place | None:
    if "/" in name or "@" in name:
        address = read_address(name)
        bundle, name, version = address.bundle or bundle, address.name, address.version or version
    if bundle is None and version is None:
        return _named(index, name)
    for place in index.slugs.get(name.replace("_", "-"), ()):
        tool = place.entry.tool if place.entry is not None else None
        if tool is not None and bundle in (None, tool.bundle) and version in (None, tool.version):
            return place
    return None


def _named(index: Index, name: str) -> Place | None:
    return index.names.get(name) or index.names.get(name.replace("_", "-"))
