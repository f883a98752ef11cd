"""The catalog: every source of tools in its order, one index of their names, and the switches of all tools."""

from __future__ import annotations

import threading
from itertools import chain, takewhile
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.sources import STORED_RANKS, Index, LateSource, Rank, Switches, ToolList, current_view
from toolcrib.infra.settings import Table, read_word_set, read_words, setting
from toolcrib.lib.names import action_of, did_you_mean, read_address, slug_of
from toolcrib.model.errors import LIST_THE_TOOLS, Cure, Kind, ToolError, cure_of
from toolcrib.model.tool import Broken, Chained, Entry, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcrib.core.sources import StoredSwitches, View
    from toolcrib.model.protocols import Source
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool

    # What to ask whether something changed, and what it said last.
    Generations = tuple[tuple[Callable[[], object], object], ...]


# How long a call may go on without a look at the switches, which other processes may move.
KNOWN_SECONDS = 0.01
NAMED_TOOLS = 3


class CatalogSettings(Table, name="catalog"):
    """Where tools are found, and which of them are disabled."""

    folders: tuple[str, ...] = setting(
        default=("tools",),
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
    """The enabled tools of the host program, by the names they were called by: calls find them without asking the catalog.

    They hold until `until`, a reading of `time.monotonic`, because another process may move a switch. A change in this process
    empties them at once.
    """

    __slots__ = ("tools", "until")

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.until = 0.0

    def forget(self) -> None:
        """Have every tool looked up again."""
        self.until = 0.0
        # A new one: a thread that began to look up a tool before the change adds it to the former.
        self.tools = {}


class Wanted(NamedTuple):
    """A tool by name, of a bundle or version if one is given."""

    name: str
    bundle: str | None
    version: str | None


class Catalog:
    """Finds tools of every source, by name, slug or address.

    Of several tools with one name the one of the source with the lower rank is meant; the full address `bundle/slug@version`
    always means exactly one. Threads may share a catalog.
    """

    def __init__(self, disabled: frozenset[str] = frozenset(), where: str = "disabled") -> None:
        self.host = ToolList(Rank.HOST)
        self.known = KnownTools()
        self._switches = Switches(disabled, where)
        self._sources: tuple[Source, ...] = (self.host,)
        # The sources before the first one whose files may change unnoticed: their tools need not be looked up again.
        self._settled: tuple[Source, ...] = self._sources
        self._watched: tuple[Callable[[], object], ...] = ()
        self._settled_entries: tuple[Generations, dict[str, Entry]] = ((), {})
        self._index: tuple[tuple[object, ...] | None, Index] = (None, Index())
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
        """Add a source, behind those of the same rank; its tools are read when a name first leads there."""
        with self._changing:
            self._sources = tuple(sorted((*self._sources, source), key=lambda each: each.rank))
            self._settled = tuple(takewhile(lambda each: each.settled and each.listed, self._sources))
            self._watch()
            self._index = (None, Index())

    def forget(self) -> None:
        """Look up every tool again: something has changed in this process."""
        self._settled_entries = ((), {})
        self.known.forget()

    def use_switches(self, stored: StoredSwitches) -> None:
        """Obey switches that were moved while a Crib ran, too."""
        self._switches.stored = stored
        self._watch()

    @property
    def tools_version(self) -> str:
        """The version of the tools that a new session keeps to; empty where no source has versions."""
        return next((source.version for source in self._sources if source.version), "")

    def find(
        self, name: str, bundle: str | None = None, version: str | None = None, session: Session | None = None
    ) -> Entry | None:
        """The tool that is meant, among those that the current caller may see."""
        view = current_view()
        if bundle is None and version is None and session is None:
            # Most calls come here, so what settled sources are known to have is only checked for changes.
            generations, known = self._settled_entries
            entry = known.get(name)
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
            # A tool that is not shown takes no name away from those that are.
            same = self._indexed(look_at_files=False).slugs.get(slug_of(name), ())
            listed = map(self._switches.apply, same)
            stored = (source.find(name, None, None, session) for source in self._sources if not source.listed)
            found = (each for each in chain(listed, stored) if isinstance(each, Entry))
            return next((each for each in found if view.shows(each.tool)), None)
        except ToolError:
            # A broken tool: whether the caller might see it is not known.
            return None

    def _find_anew(
        self, name: str, bundle: str | None = None, version: str | None = None, session: Session | None = None
    ) -> Entry | None:
        """The tool that is meant, as its file is now; for a session of an earlier version, as that version has it."""
        is_bare = bundle is None and version is None and session is None
        if session is not None and session.tools_version in ("", self.tools_version):
            session = None
        # Noted before anything is looked up: what changes meanwhile is seen the next time.
        until = monotonic() + KNOWN_SECONDS
        generations = tuple((generation, generation()) for generation in self._watched)
        kept = self._settled_entries
        if generations != kept[0]:
            self.known.forget()
            kept = self._settled_entries = generations, {}
        known = self.known.tools
        entry, source = self._look_up(_read_wanted(name, bundle, version), session, self._sources)
        if is_bare and entry is not None and source in self._settled:
            # Into those that belong to these generations: another thread may have begun new ones meanwhile.
            kept[1][name] = entry
            if entry.enabled and source is self.host is self._sources[0]:
                known[name] = entry.tool
                self.known.until = until
        return entry

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The tool that is meant; raises ToolError if there is none."""
        entry = self.find(name, session=session)
        if entry is None:
            raise ToolError(Kind.NOT_FOUND, f"Tool {name[:200]!r} not found", cure=self.cure_for(name))
        return entry

    def find_below(self, name: str, bundle: str) -> Entry | None:
        """The tool that is meant where only the source of this bundle and those behind it count."""
        above = takewhile(lambda source: bundle not in source.bundles, self._sources)
        return self._look_up(_read_wanted(name, None, None), None, self._sources[len(tuple(above)) :])[0]

    def means(self, name: str, tool: Tool) -> bool:
        """Whether a name without a bundle, in a grant, means the tool: it means the one of the project that comes first by it.

        Which that is does not depend on the caller. It is never a stored tool: what is imported takes over no grant.
        """
        own = [source for source in self._sources if source.rank not in STORED_RANKS]
        found, _ = self._ask_twice(Wanted(name, None, None), None, own)
        if found is None:
            # The name that models are shown, or that of a tool which can only be called by its actions.
            index, slug = self._indexed(look_at_files=False), slug_of(name)
            actions = index.actions.get(slug)
            slug = f"{slug}-{actions[0]}" if actions else index.shown.get(name, "")
            found, _ = self._ask(Wanted(slug, None, None), None, own) if slug else (None, None)
        if found is None:
            # It is not in its file yet, or belongs to an earlier version of a session; no stored bundle has such a name.
            return any(tool.bundle in source.bundles for source in own)
        return isinstance(found, Entry) and found.tool.bundle == tool.bundle

    def stored_word(self, name: str) -> str:
        """How the stored tool is granted that is called by this name, which has no bundle; empty if none is."""
        try:
            entry = None if "/" in name else self._find_anew(name)
        except ToolError:
            return ""
        if entry is None or self.means(read_address(name).name, entry.tool):
            return ""
        return f"{entry.tool.bundle}/{name}"

    def tool_in_file(self, name: str) -> Tool:
        """The tool that is meant, or one action of a tool that can only be called by its actions: they share a file."""
        if self.find(name) is None:
            for entry in self.entries():
                action = action_of(entry.tool)
                if action is not None and action.whole == slug_of(name):
                    return entry.tool
        return self.require(name).tool

    def entries(self, session: Session | None = None, *, stored: bool = True) -> Iterator[Entry]:
        """Every tool that the current caller may see, source by source; for a session of an earlier version, as that has them.

        Without `stored`, those of bundles are left out, of which there may be very many.
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
        """What is equal to an earlier answer as long as `entries` and `find` return the same; files are looked at."""
        self._indexed()
        for source in self._sources:
            # One that is made later would have another generation although nothing changed.
            if isinstance(source, LateSource):
                source.load()
        stored = self._switches.stored
        switches = None if stored is None else stored.generation()
        return (switches, *(source.generation() for source in self._sources))

    def own_entries(self) -> list[Entry]:
        """Every tool of the sources that are listed, under the switches of the operator alone."""
        return [self._switches.apply_words(entry) for entry in self._indexed().addresses.values()]

    def problems(self) -> list[ToolError]:
        """What keeps files from being tools, tools from being found, and switches from switching, one by one."""
        index = self._indexed()
        tools = [entry.tool for entry in index.addresses.values()]
        return [
            *(problem for source in self._sources if source.listed for problem in source.problems()),
            *index.problems,
            *(problem for source in self._sources if not source.listed for problem in source.problems()),
            *self._switches.idle(tools, self._is_name),
        ]

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of the other tools that go by this tool's name."""
        found, view = self._indexed(look_at_files=False).slugs.get(tool.slug, ()), current_view()
        others = (entry.tool for entry in found if view is None or view.shows(entry.tool))
        return [other.address for other in others if other.address != tool.address]

    def suggest(self, name: str) -> str:
        """A hint at what is wrong with the file of that name, at the actions of that tool, or at a name that is near."""
        return self._wrong_file(name) or self._near_name(name)

    def cure_for(self, name: str) -> Cure:
        """What helps a caller of a tool that is not there."""
        if problem := self._wrong_file(name):
            return Cure(problem, "its file cannot be used; ask the operator")
        return cure_of(self._near_name(name) or LIST_THE_TOOLS)

    def _wrong_file(self, name: str) -> str:
        """What is wrong with the file of that name; files are none of the business of a caller that sees only some tools."""
        if current_view() is not None:
            return ""
        bare = read_address(name).name
        found, _ = self._ask(Wanted(bare, None, None), None, self._sources)
        if isinstance(found, Broken):
            return found.reason
        return next(filter(None, (source.hint(slug_of(bare)) for source in self._sources)), "")

    def _near_name(self, name: str) -> str:
        """The actions of that tool, the tool whose function is called so, or a name that is near."""
        index, view = self._indexed(look_at_files=False), current_view()
        seen = [each.tool for each in index.addresses.values() if view is None or view.shows(each.tool)]
        if view is None and (actions := index.name_actions(slug_of(read_address(name).name))):
            return actions
        slug = slug_of(read_address(name).name)
        if same := [tool.address for tool in seen if tool.slug == slug]:
            return f"the tool of that name is {' or '.join(same[:NAMED_TOOLS])}"
        function = next((tool for tool in seen if name and _function_of(tool) == name), None)
        if function is not None:
            return f"a tool has the name of its file, so {name[:200]} is called {function.name}"
        return did_you_mean(name, {tool.name for tool in seen})

    def _watch(self) -> None:
        """Forget what is known; a call asks only what can change without the catalog being told."""
        stored = self._switches.stored
        changing = [
            source for source in self._settled if source is not self.host and not isinstance(source, LateSource)
        ]
        self._watched = tuple(each.generation for each in (stored, *changing) if each is not None)
        self.forget()

    def _look_up(
        self, wanted: Wanted, session: Session | None, sources: Sequence[Source]
    ) -> tuple[Entry | None, Source | None]:
        """Ask the sources in their order, and where none has the tool, once more after they looked at every file."""
        bundle = wanted.bundle
        asked = [each for each in sources if bundle is None or not each.bundles or bundle in each.bundles]
        found, source = self._ask_twice(wanted, session, asked)
        if found is None and sources is self._sources and wanted.bundle is None and wanted.version is None:
            # A model that calls a tool by the name it was shown finds it; a tool that is really called so comes first.
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
        """What the first source finds that has the name, and that source."""
        refusal: ToolError | None = None
        for source in sources:
            try:
                found = source.find(wanted.name, wanted.bundle, wanted.version, session)
            except ToolError as problem:
                # A source that no longer has the version of the session; another one may have the tool.
                if session is None:
                    raise
                refusal = problem
                continue
            if found is not None:
                return found, source
        if refusal is not None:
            raise refusal
        return None, None

    def _indexed(self, *, look_at_files: bool = True) -> Index:
        """The index of all listed sources; made anew only where one of them has other tools."""
        listed = [source for source in self._sources if source.listed]
        if look_at_files:
            for source in listed:
                if not source.settled:
                    tuple(source.entries())
        state = tuple(source.generation() for source in listed)
        known = self._index
        if known[0] != state:
            known = self._index = state, Index(chain.from_iterable(source.entries() for source in listed))
        return known[1]

    def has_named(self, word: str) -> bool:
        """Whether a word of the operator means something that is there: a tool, also a stored or a broken one, or a bundle."""
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
        """Whether a word that disables no tool is the name of a broken file, or of a bundle without tools."""
        bundle, _, rest = word.rpartition("/")
        if rest == "*":
            return any(slug_of(bundle) == slug_of(known) for source in self._sources for known in source.bundles)
        return isinstance(self._ask(Wanted(word, None, None), None, self._sources)[0], Broken)


def _function_of(tool: Tool) -> str:
    """The function in its file that a tool is; empty for other kinds of tools."""
    script = tool.run.script if isinstance(tool.run, Chained) else tool.run
    return script.entry if isinstance(script, Script) else ""


def _read_wanted(name: str, bundle: str | None, version: str | None) -> Wanted:
    """Read a name that may be an address; what the address says counts before what is given beside it."""
    if "/" not in name and "@" not in name:
        return Wanted(name, bundle, version)
    address = read_address(name)
    return Wanted(address.name, address.bundle or bundle, address.version or version)
