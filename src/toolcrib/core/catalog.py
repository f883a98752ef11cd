"""The catalog: all sources of tools in their order, and one index of their names."""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from toolcrib.core.catalog_index import Index, Switches, build_index, read_wanted
from toolcrib.core.file_source import Folder
from toolcrib.lib.names import action_of, did_you_mean, read_address, slug_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcrib.core.catalog_index import Place, Wanted
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
    DOCUMENTS = 45
    BUNDLES = 50
    BUILTINS = 60
    SYSTEM = 70


class Source(Protocol):
    """Where tools are found. The catalog asks sources of lower rank first, and adds the switches to what they find."""

    def generation(self) -> object:
        """What changes whenever the source has other tools, or other switches; quick, because every call asks."""

    def problems(self) -> list[ToolError]:
        """What the source holds and cannot be used."""


@runtime_checkable
class ListedSource(Source, Protocol):
    """A source whose tools all go into the index of the catalog, such as the registries of tool folders.

    Where it has versions, a session keeps to the tools of the version that it began with.
    """

    version: str
    has_versions: bool
    tool_bundles: tuple[str, ...]

    def tools(self, version: str | None = None) -> Sequence[Tool]:
        """Its tools now, or those of an earlier version; raises ToolError for a version that it no longer has."""

    def find(self, name: str, bundle: str | None, version: str | None, tools_version: str) -> Tool | None:
        """The tool that is meant among those of a version of the source."""

    def why_missing(self, slug: str) -> str:
        """Why there is no tool of that slug, although there could be; empty if there is nothing to say."""


class SearchedSource(Source, Protocol):
    """A source with more tools than an index can hold: bundles. It keeps the switches of all other tools too."""

    def find(self, name: str, bundle: str | None, version: str | None) -> Entry | None:
        """The tool that is meant among those of the source."""

    def entry(self, bundle_id: str, slug: str, version: str) -> Entry | None:
        """The tool of the bundle with that id, enabled or not."""

    def entries(self) -> Iterator[Entry]:
        """Every tool of the source."""

    def contents(self) -> object:
        """What changes whenever `entries` would give other ones; equal contents are equal objects."""

    def switched_off(self, tool: Tool) -> str:
        """Why a tool of another source was disabled; empty if it was not."""


class LateTools:
    """The tools of one bundle, made when a lookup first comes to them."""

    def __init__(self, bundle: str, load: Callable[[], Iterable[Tool]]) -> None:
        self.bundle = bundle
        self.load = load


class _Listed:
    """A listed source, and what the catalog has taken from it."""

    def __init__(self, source: ListedSource) -> None:
        self.source = source
        self.generation: object = None
        self.tools: Sequence[Tool] = ()
        self.clashes: list[ToolError] = []


class Catalog:
    """Finds tools of every source, by name, slug or address.

    Of several tools with one name the one from the earlier bundle is meant, and within a bundle the newest; the full
    address `bundle/slug@version` always means exactly one. Threads may share a catalog.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self._switches = Switches(disabled, where)
        self._bundles: dict[str, dict[str, Tool]] = {}
        self._folders: list[Folder] = []
        self._later: list[LateTools] = []
        self._listed: list[_Listed] = []
        self._searched: SearchedSource | None = None
        # The bundles of sources that come after the searched one.
        self._behind: frozenset[str] = frozenset()
        self._index = Index()
        self._changes = 0
        # What the index was made of: the number of changes, and the generation of the searched source.
        self._made_of: tuple[int, object] = (0, None)
        self._lock = threading.RLock()

    def add(self, tool: Tool) -> None:
        """Add a tool of the host program."""
        with self._lock:
            bundle = self._bundles.setdefault(tool.bundle, {})
            if tool.address in bundle:
                message = f"{tool.address} is already registered; give the tool another name or version"
                raise ToolError(Kind.CONFLICT, message)
            bundle[tool.address] = tool
            self._changes += 1

    def remove(self, tool: Tool) -> None:
        """Remove a tool of the host program."""
        with self._lock:
            if self._bundles.get(tool.bundle, {}).pop(tool.address, None) is not None:
                self._changes += 1

    def add_source(self, source: Folder | LateTools | ListedSource | SearchedSource) -> None:
        """Add a source behind those that were added before; its tools are read when a name first leads there."""
        with self._lock:
            bundles: tuple[str, ...] = ()
            if isinstance(source, Folder):
                self._folders.append(source)
                bundles = (source.bundle,)
            elif isinstance(source, LateTools):
                self._later.append(source)
                bundles = (source.bundle,)
            elif isinstance(source, ListedSource):
                self._listed.append(_Listed(source))
                bundles = source.tool_bundles
            else:
                self._searched = source
                self._switches.moved = source.switched_off
            for bundle in bundles:
                self._bundles.setdefault(bundle, {})
            if self._searched is not None:
                self._behind |= {*bundles}
            self._changes += 1

    @property
    def tools_version(self) -> str:
        """The version of the tools that a session keeps to; empty where no source has versions."""
        listed = self._versioned()
        if listed is None:
            return ""
        # A source may look for a new version only when it is asked.
        listed.source.generation()
        return listed.source.version

    def find(
        self, name: str, bundle: str | None = None, version: str | None = None, tools_version: str = ""
    ) -> Entry | None:
        """The tool that is meant, as its file is now; of a source with versions, in the version that a session keeps to."""
        if self._searched is not None and bundle is not None and version is not None and len(bundle) == ID_LETTERS:
            return self._searched.entry(bundle, slug_of(name), version)
        if tools_version and tools_version != self.tools_version:
            return self._find_bound(read_wanted(name, bundle, version), tools_version)
        if bundle is None and version is None and self._is_current():
            place = self._index.names.get(name)
            if place is not None and place.settled:
                return place.entry
        return self._find_anywhere(read_wanted(name, bundle, version))

    def require(self, name: str) -> Entry:
        """The tool that is meant; raises ToolError if there is none."""
        entry = self.find(name)
        if entry is None:
            cure = self.suggest(name) or "list the tools with: crib list"
            raise ToolError(Kind.NOT_FOUND, f"Tool {name[:200]!r} not found; {cure}")
        return entry

    def tool_in_file(self, name: str) -> Tool:
        """The tool that is meant, or one action of a tool that can only be called by its actions: they share a file."""
        if self.find(name) is None:
            for entry in self.entries():
                action = action_of(entry.tool)
                if action is not None and action.whole == slug_of(name):
                    return entry.tool
        return self.require(name).tool

    def find_below(self, name: str, bundle: str) -> Entry | None:
        """The tool that is meant where only this bundle and those behind it count, as its file is now."""
        return self._find_now(read_wanted(name, below=bundle))

    def entries(self, tools_version: str = "") -> Iterator[Entry]:
        """Every tool, bundle by bundle; of a source with versions those of the version that a session keeps to."""
        entries = self._refresh().addresses.values()
        stored = iter(()) if self._searched is None else self._searched.entries()
        if not tools_version or tools_version == self.tools_version:
            return chain(entries, stored)
        listed = self._versioned()
        bound = () if listed is None else map(self._switches.entry, reversed(listed.source.tools(tools_version)))
        return chain((entry for entry in entries if not self._is_versioned(entry)), stored, bound)

    def contents(self) -> tuple[object, ...]:
        """What is equal to an earlier answer as long as `entries` and `find` give what they gave then; files are looked at."""
        self._refresh()
        return (self._made_of, None if self._searched is None else self._searched.contents())

    def own_entries(self) -> list[Entry]:
        """Every tool of the index, under the switches of the operator alone."""
        entries = self._refresh().addresses.values()
        return [entry if entry.enabled else self._switches.by_word(entry.tool) for entry in entries]

    def problems(self) -> list[ToolError]:
        """What keeps files from being tools, tools from being found, and switches from switching, one by one."""
        index = self._refresh()
        broken = (name for name, place in index.names.items() if place.problem is not None)
        names = [*broken, *(f"{bundle}/*" for bundle in tuple(self._bundles))]
        return [
            *(problem for listed in self._listed for problem in listed.source.problems()),
            *(each for folder in self._folders for problem in folder.problems for each in _one_by_one(problem)),
            *(clash for listed in self._listed for clash in listed.clashes),
            *index.problems,
            *(() if self._searched is None else self._searched.problems()),
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
        for listed in self._listed:
            if reason := listed.source.why_missing(slug_of(bare)):
                return reason
        known = {entry.tool.name for entry in index.addresses.values()}
        return _name_actions(index, slug_of(bare)) or did_you_mean(name, known)

    def _find_bound(self, wanted: Wanted, tools_version: str) -> Entry | None:
        """What a session finds that began with an earlier version: tools of that version, and those without versions."""
        entry = self._find_anywhere(wanted)
        listed = self._versioned()
        if listed is None or (entry is not None and not self._is_versioned(entry)):
            return entry
        tool = listed.source.find(wanted.name, wanted.bundle, wanted.version, tools_version)
        return None if tool is None else self._switches.entry(tool)

    def _versioned(self) -> _Listed | None:
        """The source with versions."""
        return next((listed for listed in self._listed if listed.source.has_versions), None)

    def _is_versioned(self, entry: Entry) -> bool:
        listed = self._versioned()
        return listed is not None and any(tool is entry.tool for tool in listed.tools)

    def _take_listed(self) -> None:
        """Take what listed sources have now in place of what was taken from them before."""
        with self._lock:
            for listed in self._listed:
                generation = listed.source.generation()
                if generation == listed.generation:
                    continue
                for tool in listed.tools:
                    self.remove(tool)
                listed.generation, listed.tools, listed.clashes = generation, tuple(listed.source.tools()), []
                for tool in listed.tools:
                    try:
                        self.add(tool)
                    except ToolError as problem:
                        listed.clashes.append(problem)
                self._changes += 1

    def _find_anywhere(self, wanted: Wanted) -> Entry | None:
        """A tool of any source, in their order."""
        entry = self._find_now(wanted)
        is_settled = entry is not None and (wanted.bundle is not None or entry.tool.bundle not in self._behind)
        if self._searched is None or is_settled:
            return entry
        return self._searched.find(wanted.name, wanted.bundle, wanted.version) or entry

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
        for later in [later for later in self._later if bundle in (None, later.bundle)]:
            for tool in later.load():
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
            self._take_listed()
            made_of = self._changes, None if self._searched is None else self._searched.generation()
            newest_first = {bundle: [*reversed(tools.values())] for bundle, tools in self._bundles.items()}
            # Whole before it is in place: another thread finds everything by the old index or by the new one.
            self._index = build_index(newest_first, self._folders, self._switches, self._behind)
            self._made_of = made_of
            return self._index

    def _is_current(self) -> bool:
        """Whether the index is made of what is there now."""
        changes, generation = self._made_of
        for listed in self._listed:
            if listed.source.generation() != listed.generation:
                return False
        return changes == self._changes and (self._searched is None or self._searched.generation() is generation)


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
