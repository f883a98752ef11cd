"""Every tool there is, found by name, slug or full address."""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from toolcrib.core.catalog_index import Built, Index, Switches, build_index, is_built, read_wanted
from toolcrib.lib.names import did_you_mean, read_address, slug_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcrib.core.catalog_index import Place, Wanted
    from toolcrib.core.file_source import Folder
    from toolcrib.model.tool import Entry, Tool

NAMED_ACTIONS = 10
# The bundles of the tools that come with Toolcrib.
BUILTIN_BUNDLE = "builtin"
SYSTEM_BUNDLE = "system"
ID_LETTERS = 36


class Rank:
    """The order of sources: of equal names the one with the lower rank is meant."""

    HOST = 0
    MODULES = 10
    TOOL_FOLDERS = 20
    REGISTRIES = 25
    SCRIPTS = 30
    PACKAGES = 40
    BUNDLES = 50
    BUILTINS = 60
    SYSTEM = 70


class LateTools:
    """The tools of a bundle that are only made when no source before them has the name."""

    def __init__(self, bundle: str, load: Callable[[], Iterable[Tool]]) -> None:
        self.bundle = bundle
        self.load = load


class Shelf(Protocol):
    """Where the tools of bundles are kept that are written through the platform, and the switches of all the others."""

    def find(self, name: str, bundle: str | None, version: str | None) -> Entry | None:
        """The tool that is meant among those kept here."""

    def entry(self, bundle_id: str, slug: str, version: str) -> Entry | None:
        """The tool of that bundle, whoever owns it."""

    def entries(self) -> Iterator[Entry]:
        """Every tool that is kept here."""

    def problems(self) -> list[ToolError]:
        """What is kept here and broken."""

    def switched_off(self, tool: Tool) -> str:
        """Why a tool that is not kept here was switched off; empty if it was not."""

    def switches(self) -> object:
        """The switches of those: another object whenever one was moved; quick, because every call asks."""


class Catalog:
    """Keeps tools of every source.

    Of several tools with one name the one from the earlier bundle is meant, and within a bundle the newest; the full
    address `bundle/slug@version` always means exactly one. Threads may share a catalogue.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self._switches = Switches(disabled, where)
        self._bundles: dict[str, dict[str, Tool]] = {}
        self._folders: list[Folder] = []
        self._later: list[tuple[str, Callable[[], Iterable[Tool]]]] = []
        self._built = Built()
        self._clashes: list[ToolError] = []
        self._why_unbuilt: Callable[[str], str] = lambda _: ""
        self._shelf: Shelf | None = None
        self._behind: frozenset[str] = frozenset()
        self._index = Index()
        self._changes = 0
        # What the index was made of: the number of changes, and the switches that were moved.
        self._made_of: tuple[int, object] = (0, None)
        self._lock = threading.RLock()

    def add(self, tool: Tool) -> None:
        """Keep a tool of the host program."""
        with self._lock:
            bundle = self._bundles.setdefault(tool.bundle, {})
            if tool.address in bundle:
                message = f"{tool.address} is already registered; give the tool another name or version"
                raise ToolError(Kind.CONFLICT, message)
            bundle[tool.address] = tool
            self._changes += 1

    def remove(self, tool: Tool) -> None:
        """Forget a tool of the host program."""
        with self._lock:
            if self._bundles.get(tool.bundle, {}).pop(tool.address, None) is not None:
                self._changes += 1

    def add_folder(self, folder: Folder) -> None:
        """Keep the tools of a folder, as long as its files are there; they are read when a name first leads there."""
        with self._lock:
            self._folders.append(folder)
            self._bundles.setdefault(folder.bundle, {})
            self._changes += 1

    def add_later(self, bundle: str, load: Callable[[], Iterable[Tool]]) -> None:
        """Keep the tools of a bundle that is only made when no tool of the host program has the name."""
        with self._lock:
            self._bundles.setdefault(bundle, {})
            self._later.append((bundle, load))
            self._changes += 1

    def add_source(self, source: object) -> None:
        """Keep the tools of a source."""
        if isinstance(source, LateTools):
            self.add_later(source.bundle, source.load)
        else:
            self.add_folder(source)  # type: ignore[arg-type]  # the only other kind

    def add_shelf(self, shelf: Shelf, behind: frozenset[str]) -> None:
        """Keep what is on a shelf; of equal names it is meant before the bundles `behind` it, and after all others."""
        with self._lock:
            self._shelf, self._behind = shelf, behind
            self._switches.moved = shelf.switched_off
            self._changes += 1

    def set_built(self, version: str, tools: Iterable[Tool], why_unbuilt: Callable[[str], str]) -> None:
        """Have these tools of registries in place of those that were there; `why_unbuilt` says of a slug why it is none of them."""
        with self._lock:
            for tool in self._built.tools:
                self.remove(tool)
            self._built.put(version, tools)
            self._why_unbuilt = why_unbuilt
            self._clashes = []
            for tool in self._built.tools:
                try:
                    self.add(tool)
                except ToolError as problem:
                    self._clashes.append(problem)

    @property
    def built_version(self) -> str:
        """The version of the registries in force; empty where nothing was built."""
        return self._built.version

    def find(
        self, name: str, bundle: str | None = None, version: str | None = None, tools_version: str = ""
    ) -> Entry | None:
        """The tool that is meant, as its file is now; of a registry, as it was in the version that a session is bound to."""
        if self._shelf is not None and bundle is not None and version is not None and len(bundle) == ID_LETTERS:
            return self._shelf.entry(bundle, slug_of(name), version)
        if tools_version and tools_version != self._built.version:
            return self._find_bound(read_wanted(name, bundle, version), tools_version)
        if bundle is None and version is None and self._is_current():
            place = self._index.names.get(name)
            if place is not None and place.settled:
                return place.entry
        return self._find_anywhere(read_wanted(name, bundle, version))

    def find_below(self, name: str, bundle: str) -> Entry | None:
        """The tool that is meant where only this bundle and those behind it count, as its file is now."""
        return self._find_now(read_wanted(name, below=bundle))

    def entries(self, tools_version: str = "") -> Iterator[Entry]:
        """Every tool, bundle by bundle; of registries those of the version that a session is bound to."""
        entries = self._refresh().addresses.values()
        kept = iter(()) if self._shelf is None else self._shelf.entries()
        if not tools_version or tools_version == self._built.version:
            return chain(entries, kept)
        bound = map(self._switches.entry, reversed(self._built.tools_of(tools_version)))
        return chain((entry for entry in entries if not is_built(entry)), kept, bound)

    def own_entries(self) -> list[Entry]:
        """Every tool that is not on the shelf, under the switches of the operator alone."""
        entries = self._refresh().addresses.values()
        return [entry if entry.enabled else self._switches.by_word(entry.tool) for entry in entries]

    def problems(self) -> list[ToolError]:
        """What keeps files from being tools, tools from being found, and switches from switching, one by one."""
        index = self._refresh()
        broken = (name for name, place in index.names.items() if place.problem is not None)
        names = [*broken, *(f"{bundle}/*" for bundle in tuple(self._bundles))]
        return [
            *(each for folder in self._folders for problem in folder.problems for each in _one_by_one(problem)),
            *self._clashes,
            *index.problems,
            *(() if self._shelf is None else self._shelf.problems()),
            *self._switches.idle((entry.tool for entry in index.addresses.values()), names),
        ]

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of the other tools that go by this tool's name."""
        with self._lock:
            self._load_later()
            changed = [folder.refresh_names() for folder in self._folders]
            self._changes += any(changed)
            entries = [place.entry for place in self._indexed().slugs.get(tool.slug, ())]
        addresses = (entry.tool.address for entry in entries if entry is not None)
        return [address for address in addresses if address != tool.address]

    def suggest(self, name: str) -> str:
        """A hint at what is wrong with the file of that name, at the actions of that tool, or at a name that is near."""
        index = self._indexed()
        bare = read_address(name).name
        place = index.named(bare)
        if place is not None and place.problem is not None and place.folder is not None:
            # Whoever calls a tool is told the file, and not where on this machine the project lies.
            folder = place.folder.path
            return f"its file is broken: {place.problem.message.replace(str(folder), folder.name)}"
        if unbuilt := self._why_unbuilt(slug_of(bare)):
            return unbuilt
        known = {entry.tool.name for entry in index.addresses.values()}
        return _name_actions(index, slug_of(bare)) or did_you_mean(name, known)

    def _find_bound(self, wanted: Wanted, tools_version: str) -> Entry | None:
        """What a session finds that began with an earlier registry: its own tools, and those that no registry names."""
        entry = self._find_anywhere(wanted)
        if entry is not None and not is_built(entry):
            return entry
        tool = self._built.find(wanted, tools_version)
        return None if tool is None else self._switches.entry(tool)

    def _find_anywhere(self, wanted: Wanted) -> Entry | None:
        """A tool of any source, in their order."""
        entry = self._find_now(wanted)
        is_settled = entry is not None and (wanted.bundle is not None or entry.tool.bundle not in self._behind)
        if self._shelf is None or is_settled:
            return entry
        return self._shelf.find(wanted.name, wanted.bundle, wanted.version) or entry

    def _find_now(self, wanted: Wanted) -> Entry | None:
        """A tool whose file may have changed since it was read, or may have come since."""
        with self._lock:
            before = place = wanted.place(self._indexed())
            if place is not None and place.settled:
                return place.entry
            # One bundle after the other: what lies behind the one that holds the tool is left alone.
            for rank, bundle in enumerate([*self._bundles]):
                if place is not None and place.rank < rank:
                    break
                if wanted.counts(self._index, rank):
                    self._look_into(bundle, rank, place)
                    place = wanted.place(self._indexed())
            if place is None and before is not None:
                # It is gone from where it was; only now every file is looked at for where it may have gone.
                return self._find_now(wanted)
            return None if place is None else place.entry

    def _look_into(self, bundle: str, rank: int, place: Place | None) -> None:
        """Bring a bundle up to date as far as the name, which leads to the place now, could lead elsewhere."""
        folders = [folder for folder in self._folders if folder.bundle == bundle]
        changed = [folder.refresh() if place is None else folder.refresh_names() for folder in folders]
        if place is not None:
            namesakes = (other for other in self._index.slugs.get(place.slug, ()) if other.rank == rank)
            changed += [other.folder.refresh_file(other.file) for other in namesakes if other.folder is not None]
        self._changes += any(changed)
        self._load_later(bundle)

    def _load_later(self, bundle: str | None = None) -> None:
        """Make what was put off, of one bundle or of all."""
        for later in [later for later in self._later if bundle in (None, later[0])]:
            for tool in later[1]():
                # What the host program put in the place of such a tool stays.
                self._bundles.setdefault(tool.bundle, {}).setdefault(tool.address, tool)
            # Only now: what could not be made is tried again and fails again, instead of being gone.
            self._later.remove(later)
            self._changes += 1

    def _refresh(self) -> Index:
        with self._lock:
            self._load_later()
            changed = [folder.refresh() for folder in self._folders]
            self._changes += any(changed)
            return self._indexed()

    def _indexed(self) -> Index:
        if self._is_current():
            return self._index
        with self._lock:
            if self._is_current():
                return self._index
            # Noted before anything is looked at: what changes meanwhile is seen the next time.
            made_of = self._changes, None if self._shelf is None else self._shelf.switches()
            newest_first = {bundle: [*reversed(tools.values())] for bundle, tools in self._bundles.items()}
            # Whole before it is in place: another thread finds everything by the old index or by the new one.
            self._index = build_index(newest_first, self._folders, self._switches, self._behind)
            self._made_of = made_of
            return self._index

    def _is_current(self) -> bool:
        """Whether the index is made of what is there now."""
        changes, switches = self._made_of
        return changes == self._changes and (self._shelf is None or self._shelf.switches() is switches)


def _one_by_one(problem: ToolError) -> Iterator[ToolError]:
    """The problems that one file has, each for itself."""
    texts = problem.details.get("problems")
    if not isinstance(texts, list) or not texts:
        yield problem
        return
    yield from (ToolError(problem.kind, str(text)) for text in texts)


def _name_actions(index: Index, slug: str) -> str:
    """The actions of the tool that the name is, or begins with before a dot."""
    whole = slug if slug in index.actions else slug.rpartition(".")[0]
    named = [f"{whole}.{action}" for action in index.actions.get(whole, ())]
    return f"{whole} has the actions {', '.join(named[:NAMED_ACTIONS])}" if named else ""
