"""The catalog: all sources of tools in order of rank, one index of their names, and the switches of all tools."""

from __future__ import annotations

import threading
from itertools import chain, takewhile
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.file_source import FileSource
from toolcrib.core.sources import (
    STORED_RANKS,
    CatalogIndex,
    LateSource,
    ListedSource,
    Rank,
    Switches,
    ToolList,
    current_view,
)
from toolcrib.infra.settings import Table, read_word_set, read_words, setting
from toolcrib.lib.names import action_of, did_you_mean, read_address, slug_of
from toolcrib.model.errors import LIST_THE_TOOLS, Cure, Kind, ToolError, cure_of
from toolcrib.model.tool import Broken, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.core.sources import StoredSwitches, View
    from toolcrib.model.protocols import Source
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool

    # A bare name, or a name with the bundle and version that were given.
    Key = str | tuple[str, str | None, str | None]
    # The `generation` methods of sources, each with its value when they were last read.
    Generations = tuple[tuple[Callable[[], object], object], ...]


# How long known tools may be used without checking the switches, which other processes may change.
KNOWN_SECONDS = 0.01
NAMED_TOOLS = 3


class CatalogSettings(Table, name="catalog"):
    """Where tools are found, and which of them are disabled."""

    folders: tuple[str, ...] = setting(
        default=("tools", "bundles"),
        read=read_words,
        opens=False,
        summary="folders whose files are tools, from the project folder; of equal names the earlier folder is meant",
    )
    disabled: frozenset[str] = setting(
        default=frozenset(),
        read=read_word_set,
        opens=False,
        summary="tools that are disabled, by name, `bundle/name`, either with `@version`, or `bundle/*`",
    )


class KnownTools:
    """A cache of the enabled tools of the host program, by what they were called by, for the fast path.

    It expires at `until`, in the time of `time.monotonic`, because another process may change a switch. A change in this
    process empties it at once.
    """

    __slots__ = ("tools", "until")

    def __init__(self) -> None:
        self.tools: dict[Key, Tool] = {}
        self.until = 0.0

    def forget(self) -> None:
        """Empty the cache."""
        self.until = 0.0
        # A new dictionary: a thread that began its lookup before the change adds to the old one.
        self.tools = {}


class Wanted(NamedTuple):
    """A tool by name, of a bundle or version if one is given."""

    name: str
    bundle: str | None
    version: str | None


class Catalog:
    """Finds tools of all sources, by name, slug or address; thread-safe.

    Among tools of equal names the one of the source with the lowest rank is found; the full address `bundle/slug@version`
    is unambiguous.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self.host = ToolList(Rank.HOST)
        self.known = KnownTools()
        self._switches = Switches(disabled, where)
        self._sources: tuple[Source, ...] = (self.host,)
        # The leading sources whose `generation` tells of every change, so that their lookups can be cached.
        self._settled: tuple[Source, ...] = self._sources
        self._watched: tuple[Callable[[], object], ...] = ()
        self._settled_entries: tuple[Generations, dict[Key, Entry]] = ((), {})
        self._index: tuple[tuple[object, ...] | None, CatalogIndex] = (None, CatalogIndex())
        self._changing = threading.Lock()

    def add(self, tool: Tool) -> None:
        """Add a tool of the host program."""
        self.host.add(tool)
        self.forget()

    def remove(self, tool: Tool) -> None:
        """Remove a tool of the host program."""
        self.host.remove(tool)
        self.forget()

    def add_source(self, source: Source) -> None:
        """Add a source, after those of the same rank; its tools are read when a lookup first reaches it."""
        with self._changing:
            self._sources = tuple(sorted((*self._sources, source), key=lambda each: each.rank))
            self._settled = tuple(takewhile(lambda each: each.settled and each.listed, self._sources))
            self._watch()
            self._index = (None, CatalogIndex())

    def forget(self) -> None:
        """Empty all caches of lookups, after a change in this process."""
        self._settled_entries = ((), {})
        self.known.forget()

    def use_switches(self, stored: StoredSwitches) -> None:
        """Also apply switches that were changed at run time."""
        self._switches.stored = stored
        self._watch()

    @property
    def tools_version(self) -> str:
        """The version that a new session is pinned to; empty if no source has versions."""
        return next((source.version for source in self._sources if source.version), "")

    def find(
        self, name: str, bundle: str | None = None, version: str | None = None, session: Session | None = None
    ) -> Entry | None:
        """The tool of that name, among those that the current caller may see."""
        view = current_view()
        if session is None:
            # Fast path of most calls: the cached entry is valid if no generation has changed.
            generations, known = self._settled_entries
            entry = known.get(name if bundle is None and version is None else (name, bundle, version))
            if entry is not None and (view is None or view.shows(entry.tool)):
                until = monotonic() + KNOWN_SECONDS
                for generation, noted in generations:
                    if generation() != noted:
                        break
                else:
                    self.known.until = until
                    return entry
        if view is None:
            return self._find_anew(name, bundle, version, session)
        return self._find_seen(view, name, bundle, version, session)

    def _find_seen(
        self, view: View, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | None:
        """The tool that is meant among those that a view shows."""
        try:
            entry = self._find_anew(name, bundle, version, session)
            if entry is None or view.shows(entry.tool):
                return entry
            if bundle is not None or version is not None or "/" in name or "@" in name:
                return None
            # An invisible tool must not shadow a visible one of the same name.
            same = self._indexed(look_at_files=False).slugs.get(slug_of(name), ())
            listed = map(self._switches.apply, same)
            stored = (source.find(name, None, None, session) for source in self._sources if not source.listed)
            found = (each for each in chain(listed, stored) if isinstance(each, Entry))
            return next((each for each in found if view.shows(each.tool)), None)
        except ToolError:
            # A broken tool: it is unknown whether the caller may see it.
            return None

    def _find_anew(
        self, name: str, bundle: str | None = None, version: str | None = None, session: Session | None = None
    ) -> Entry | None:
        """Look the tool up in the sources and cache it; for a session, in the version that it is pinned to."""
        wanted = _read_wanted(name, bundle, version)
        if session is not None:
            session = None if session.tools_version in ("", self.tools_version) else session
            return self._look_up(wanted, session, self._sources)[0]
        # Read before the lookup, so that a change meanwhile is noticed next time.
        until = monotonic() + KNOWN_SECONDS
        generations = tuple((generation, generation()) for generation in self._watched)
        kept = self._settled_entries
        if generations != kept[0]:
            self.known.forget()
            kept = self._settled_entries = generations, {}
        known = self.known.tools
        entry, source = self._look_up(wanted, None, self._sources)
        if entry is not None:
            is_bare = bundle is None and version is None
            key = name if is_bare else (name, bundle, version)
            is_of_host = entry.enabled and self._is_of_host(entry.tool, wanted.bundle, source)
            if is_of_host or (is_bare and source in self._settled):
                # Into the cache of these generations: another thread may have replaced it meanwhile.
                kept[1][key] = entry
            if is_of_host:
                known[key] = entry.tool
                self.known.until = until
        return entry

    def _is_of_host(self, tool: Tool, bundle: str | None, source: Source | None) -> bool:
        """Whether the tool belongs to the host program, and no source in front of its own can gain a tool of that bundle."""
        if source is self.host is self._sources[0]:
            return True
        same = None if bundle is None else self.host.find(tool.slug, tool.bundle, tool.version, None)
        if not isinstance(same, Entry) or same.tool is not tool:
            return False
        others = (each for each in self._sources if not (isinstance(each, LateSource) and each.settled))
        return next((each for each in others if not each.bundles or bundle in each.bundles), None) is source

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The tool of that name; raises ToolError if there is none."""
        entry = self.find(name, session=session)
        if entry is None:
            raise ToolError(Kind.NOT_FOUND, f"Tool {name[:200]!r} not found", cure=self.cure_for(name))
        return entry

    def find_below(self, name: str, bundle: str) -> Entry | None:
        """The tool of that name in the source of this bundle or those after it."""
        above = takewhile(lambda source: bundle not in source.bundles, self._sources)
        return self._look_up(_read_wanted(name, None, None), None, self._sources[len(tuple(above)) :])[0]

    def means(self, name: str, tool: Tool) -> bool:
        """Whether a name without a bundle, in a grant, means the tool: it means the first tool of the project of that name.

        This does not depend on the caller. It never means a stored tool, so that an imported tool cannot take over a grant.
        """
        own = [source for source in self._sources if source.rank not in STORED_RANKS]
        found, _ = self._ask_twice(Wanted(name, None, None), None, own)
        if found is None:
            # The name that models see, or that of a tool which can only be called by its actions.
            index, slug = self._indexed(look_at_files=False), slug_of(name)
            actions = index.actions.get(slug)
            slug = f"{slug}-{actions[0]}" if actions else index.shown.get(name, "")
            found, _ = self._ask(Wanted(slug, None, None), None, own) if slug else (None, None)
        if found is None:
            # The tool is not in its file yet, or of an earlier version; no stored bundle has the name of such a bundle.
            return any(tool.bundle in source.bundles for source in own)
        return isinstance(found, Entry) and found.tool.bundle == tool.bundle

    def entries_near(self, path: Path) -> tuple[object, Iterator[Entry]]:
        """The tools of the folders around a file and below its own, and a value that stays equal as long as they do."""
        files = (each for each in self._sources if isinstance(each, FileSource))
        near = [each for each in files if each.path in path.parents or path.parent in each.path.parents]
        switches = self._switches.stored and self._switches.stored.generation()
        state = switches, *(each.generation() for each in near)
        return state, (self._switches.apply(entry) for each in near for entry in each.entries())

    def stored_word(self, name: str) -> str:
        """The key that grants the stored tool which a call by this name without a bundle finds; empty if it finds none."""
        try:
            entry = None if "/" in name else self._find_anew(name)
        except ToolError:
            return ""
        if entry is None or self.means(read_address(name).name, entry.tool):
            return ""
        return f"{entry.tool.bundle}/{name}"

    def tool_in_file(self, name: str) -> Tool:
        """The tool of that name, or any action of a tool that is only callable by its actions, as they share a file."""
        if self.find(name) is None:
            for entry in self.entries():
                action = action_of(entry.tool)
                if action is not None and action.whole == slug_of(name):
                    return entry.tool
        return self.require(name).tool

    def entries(self, session: Session | None = None, *, stored: bool = True) -> Iterator[Entry]:
        """Every tool that the current caller may see, source by source; for a session, in the version that it is pinned to.

        Without `stored`, the tools of stored bundles are left out, of which there may be very many.
        """
        if session is None or session.tools_version in ("", self.tools_version):
            listed: Iterable[Entry] = self._indexed().addresses.values()
        else:
            listed = chain.from_iterable(source.entries(session) for source in self._sources if source.listed)
        unlisted = (source for source in self._sources if not source.listed)
        searched = (source.entries() for source in unlisted if stored or source.rank != Rank.BUNDLES)
        found = chain(map(self._switches.apply, listed), chain.from_iterable(searched))
        view = current_view()
        return found if view is None else (entry for entry in found if view.shows(entry.tool))

    def contents(self) -> tuple[object, ...]:
        """A value that stays equal as long as `entries` and `find` return the same; checks the files for changes."""
        self._indexed()
        for source in self._sources:
            # Created now, because its generation would change when it is created later.
            if isinstance(source, LateSource):
                source.load()
        stored = self._switches.stored
        switches = None if stored is None else stored.generation()
        return (switches, *(source.generation() for source in self._sources))

    def own_entries(self) -> list[Entry]:
        """Every tool of the listed sources, with only the switches of the settings applied."""
        return [self._switches.apply_words(entry) for entry in self._indexed().addresses.values()]

    def problems(self) -> list[ToolError]:
        """All problems of files, names and switches."""
        index = self._indexed()
        tools = [entry.tool for entry in index.addresses.values()]
        return [
            *(problem for source in self._sources if source.listed for problem in source.problems()),
            *self._shared_bundles(),
            *index.problems,
            *(problem for source in self._sources if not source.listed for problem in source.problems()),
            *self._switches.idle(tools, self._is_name),
        ]

    def _shared_bundles(self) -> Iterator[ToolError]:
        """Errors for folders whose tools are one bundle, because their names are equal."""
        folders: dict[str, dict[str, None]] = {}
        for source in self._sources:
            for folder, bundle in source.homes.items() if isinstance(source, ListedSource) else ():
                folders.setdefault(bundle, {})[folder] = None
        for bundle, (first, *others) in folders.items():
            for other in others:
                message = f"{other}: is the bundle {bundle}, as {first} is; rename one of the two folders"
                yield ToolError(Kind.CONFLICT, message)

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of the other tools with this tool's name."""
        found, view = self._indexed(look_at_files=False).slugs.get(tool.slug, ()), current_view()
        others = (entry.tool for entry in found if view is None or view.shows(entry.tool))
        return [other.address for other in others if other.address != tool.address]

    def suggest(self, name: str) -> str:
        """A hint: the problem of the file of that name, the actions of that tool, or a similar name."""
        return self._wrong_file(name) or self._near_name(name)

    def cure_for(self, name: str) -> Cure:
        """The cure for a call of an unknown tool."""
        if problem := self._wrong_file(name):
            return Cure(problem, "its file cannot be used; ask the operator")
        return cure_of(self._near_name(name) or LIST_THE_TOOLS)

    def _wrong_file(self, name: str) -> str:
        """The problem of the file of that name; hidden from a caller that sees only some tools."""
        if current_view() is not None:
            return ""
        bare = read_address(name).name
        found, _ = self._ask(Wanted(bare, None, None), None, self._sources)
        if isinstance(found, Broken):
            return found.reason
        return next(filter(None, (source.hint(slug_of(bare)) for source in self._sources)), "")

    def _near_name(self, name: str) -> str:
        """The actions of that tool, the tool whose function has that name, or a similar name."""
        index, view = self._indexed(look_at_files=False), current_view()
        seen = [each.tool for each in index.addresses.values() if view is None or view.shows(each.tool)]
        if view is None and (actions := index.name_actions(slug_of(read_address(name).name))):
            return actions
        slug = slug_of(read_address(name).name)
        if same := [tool.address for tool in seen if tool.slug == slug]:
            return f"the tool of that name is {' or '.join(same[:NAMED_TOOLS])}"
        function = next((tool for tool in seen if tool.script and name and tool.script.entry == name), None)
        if function is not None:
            return f"a tool has the name of its file, so {name[:200]} is called {function.name}"
        return did_you_mean(name, {tool.name for tool in seen})

    def _watch(self) -> None:
        """Collect the generations that lookups must check, and empty the caches; other changes call `forget` themselves."""
        stored = self._switches.stored
        changing = [
            source for source in self._settled if source is not self.host and not isinstance(source, LateSource)
        ]
        self._watched = tuple(each.generation for each in (stored, *changing) if each is not None)
        self.forget()

    def _look_up(
        self, wanted: Wanted, session: Session | None, sources: Sequence[Source]
    ) -> tuple[Entry | None, Source | None]:
        """Ask the sources in order; if none has the tool, again after they have checked every file."""
        bundle = wanted.bundle
        asked = [each for each in sources if bundle is None or not each.bundles or bundle in each.bundles]
        found, source = self._ask_twice(wanted, session, asked)
        if found is None and sources is self._sources and wanted.bundle is None and wanted.version is None:
            # Models call a tool by the name that they see; a tool whose real name it is takes precedence.
            slug = self._indexed(look_at_files=False).shown.get(wanted.name)
            found, source = (None, None) if slug is None else self._ask(wanted._replace(name=slug), session, asked)
        if source is None or not isinstance(found, Entry):
            return None, None
        return self._switches.apply(found) if source.listed else found, source

    def _ask_twice(
        self, wanted: Wanted, session: Session | None, sources: Sequence[Source]
    ) -> tuple[Entry | Broken | None, Source | None]:
        found, source = self._ask(wanted, session, sources)
        if found is None:
            for each in sources:
                if each.listed and not each.settled:
                    tuple(each.entries(session))
            found, source = self._ask(wanted, session, sources)
        return found, source

    def _ask(
        self, wanted: Wanted, session: Session | None, sources: Iterable[Source]
    ) -> tuple[Entry | Broken | None, Source | None]:
        """The first source that has the name, and what it found."""
        refusal: ToolError | None = None
        for source in sources:
            try:
                found = source.find(wanted.name, wanted.bundle, wanted.version, session)
            except ToolError as problem:
                # The source no longer has the version of the session; another one may have the tool.
                if session is None:
                    raise
                refusal = problem
                continue
            if found is not None:
                return found, source
        if refusal is not None:
            raise refusal
        return None, None

    def _indexed(self, *, look_at_files: bool = True) -> CatalogIndex:
        """The index of all listed sources, cached until the tools of one of them change."""
        listed = [source for source in self._sources if source.listed]
        if look_at_files:
            for source in listed:
                if not source.settled:
                    tuple(source.entries())
        state = tuple(source.generation() for source in listed)
        known = self._index
        if known[0] != state:
            known = self._index = state, CatalogIndex(chain.from_iterable(source.entries() for source in listed))
        return known[1]

    def has_named(self, word: str) -> bool:
        """Whether a word of the settings names an existing bundle or tool, including stored and broken tools."""
        bundle, _, rest = word.rpartition("/")
        if rest == "*":
            known = any(bundle in source.bundles for source in self._sources)
            return known or any(entry.tool.bundle == bundle for entry in self.entries())
        if self._is_name(word):
            return True
        try:
            return self._find_anew(word) is not None
        except ToolError:
            return True  # a stored tool whose document is broken

    def _is_name(self, word: str) -> bool:
        """Whether a word that matches no tool is the name of a broken file, or of a bundle without tools."""
        bundle, _, rest = word.rpartition("/")
        if rest == "*":
            return any(slug_of(bundle) == slug_of(known) for source in self._sources for known in source.bundles)
        return isinstance(self._ask(Wanted(word, None, None), None, self._sources)[0], Broken)


def _read_wanted(name: str, bundle: str | None, version: str | None) -> Wanted:
    """Read a name that may be an address, whose bundle and version take precedence over the given ones."""
    if "/" not in name and "@" not in name:
        return Wanted(name, bundle, version)
    address = read_address(name)
    return Wanted(address.name, address.bundle or bundle, address.version or version)
