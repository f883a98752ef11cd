"""Sources of tools: ranks, indexes of names, tools in memory, switches, and the view of a limited caller."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.lib.names import BUILTIN_BUNDLE, HOST, SYSTEM_BUNDLE, action_of, did_you_mean, function_name, slug_of
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Broken, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolcrib.model.protocols import Source
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool


NAMED_ACTIONS = 10
# The spaces of the store for bundles, and for switches that were changed at run time.
BUNDLES = "bundles"
SWITCHES = "switches"
LOOK_SECONDS = 0.1


class Rank:
    """The order of sources: among equal names the tool of the source with the lowest rank is found."""

    HOST = 0
    TOOL_FOLDERS = 20
    SCRIPTS = 30
    PACKAGES = 40
    BUILTINS = 44
    DOCUMENTS = 45
    BUNDLES = 50
    SYSTEM = 70


# The sources of tools that were imported or created through the API, not written as files of the project.
STORED_RANKS = (Rank.DOCUMENTS, Rank.BUNDLES)


def folder_rank(position: int) -> float:
    """The rank of everything in one of the tool folders: the first folder of the settings before the second."""
    return Rank.TOOL_FOLDERS + position / 1_000


class NameIndex:
    """Entries by every spelling of their names; among equal names the first one added is found."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.names: dict[str, Entry | Broken] = {}
        self.slugs: dict[str, list[Entry | Broken]] = {}
        self.actions: dict[str, dict[str, str]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add a tool, after those that were added before."""
        tool = entry.tool
        self.slugs.setdefault(tool.slug, []).append(entry)
        self.names.setdefault(tool.name, self.names.setdefault(tool.slug, entry))
        if action := action_of(tool):
            self.actions.setdefault(action.whole, {}).setdefault(action.action, tool.slug)

    def add_broken(self, slug: str, name: str, broken: Broken) -> None:
        """Reserve the name of a tool that cannot be read."""
        self.slugs.setdefault(slug, []).append(broken)
        self.names.setdefault(slug, broken)
        self.names.setdefault(name, broken)

    def slug_of(self, name: str) -> str:
        """Normalise a name to its slug; `tool.action` becomes the slug of the tool of that action."""
        slug = slug_of(name)
        whole, dot, action = slug.rpartition(".")
        return self.actions.get(whole, {}).get(action, slug) if dot else slug

    def find(self, name: str, bundle: str | None, version: str | None) -> Entry | Broken | None:
        """The first entry of that name, of any bundle and version unless they are given."""
        if bundle is None and version is None:
            return self.names.get(name) or self.names.get(self.slug_of(name))
        for found in self.slugs.get(self.slug_of(name), ()):
            # The bundle and version of a broken file are unknown, so such a lookup skips it.
            if (
                isinstance(found, Entry)
                and bundle in (None, found.tool.bundle)
                and version in (None, found.tool.version)
            ):
                return found
        return None


class ListedSource(ABC):
    """A Source that finds its tools in an index of its `entries`; a subclass only defines `rank` and `entries`."""

    rank: float = Rank.PACKAGES
    bundles: Collection[str] = ()
    # The folders that its tools are written in, with the bundle of each.
    homes: Mapping[str, str] = MappingProxyType({})
    listed = True
    settled = True
    version = ""
    _named: tuple[object, NameIndex] | None = None

    @abstractmethod
    def entries(self, session: Session | None = None) -> Sequence[Entry]:
        """Every tool; among equal names the one to be found comes first."""

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """Look the name up in the index."""
        return self.index.find(name, bundle, version)

    @property
    def index(self) -> NameIndex:
        """The index of its present tools, cached until `generation` changes."""
        # Read before the tools are, so that a change meanwhile is noticed next time.
        generation, named = self.generation(), self._named
        if named is None or named[0] != generation:
            named = self._named = generation, NameIndex(self.entries())
        return named[1]

    def generation(self) -> object:
        """A value that changes whenever the tools of the source do."""
        return 0

    def problems(self) -> list[ToolError]:
        """Errors of the tools that cannot be used."""
        return []

    def hint(self, slug: str) -> str:
        """Why a tool of that slug is missing here, for error messages; empty if there is nothing to say."""
        return ""


class ToolList(ListedSource):
    """Tools in memory: those of the host program, or those that come with packages.

    An earlier bundle comes before a later one, and within a bundle the tool that was added last comes first.
    """

    def __init__(self, rank: float, tools: Iterable[Tool] = ()) -> None:
        self.rank = rank
        self._tools: dict[str, dict[str, Tool]] = {}
        # A live view of the keys.
        self.bundles = self._tools.keys()
        self._changes = 0
        self._changing = threading.Lock()
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Add a tool; raises ToolError if its address is taken."""
        with self._changing:
            bundle = self._tools.setdefault(tool.bundle, {})
            if tool.address in bundle:
                message = f"{tool.address} is already registered; give the tool another name or version"
                raise ToolError(Kind.CONFLICT, message)
            bundle[tool.address] = tool
            self._changes += 1

    def remove(self, tool: Tool) -> None:
        """Remove a tool."""
        with self._changing:
            if self._tools.get(tool.bundle, {}).pop(tool.address, None) is not None:
                self._changes += 1

    def generation(self) -> int:
        """How often a tool was added or removed."""
        return self._changes

    def entries(self, session: Session | None = None) -> list[Entry]:
        """Its tools, bundle by bundle, the newest first."""
        with self._changing:
            return [Entry(tool=tool) for bundle in self._tools.values() for tool in reversed(bundle.values())]


class LateSource:
    """Creates sources when a lookup first reaches them, so that a call of another tool never loads them.

    `is_empty` says that they have no tools as long as this Crib runs; they are only created for their hints.
    """

    version = ""

    def __init__(
        self,
        rank: float,
        make: Callable[[], Iterable[Source]],
        *,
        bundles: Collection[str] = (),
        listed: bool = True,
        is_empty: bool = False,
    ) -> None:
        self.rank = rank
        self.bundles = bundles
        self.listed = listed
        self.settled = is_empty
        self._is_empty = is_empty
        self._make = make
        self._made: tuple[Source, ...] | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, created on first use; if that fails, it is tried again next time."""
        if self._made is None:
            self._made = tuple(self._make())
        return self._made

    def load(self) -> None:
        """Create the sources now, unless they have no tools."""
        if not self._is_empty:
            _ = self.sources

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """The tool of the first source that has one of that name."""
        for source in () if self._is_empty else self.sources:
            found = source.find(name, bundle, version, session)
            if found is not None:
                return found
        return None

    def entries(self, session: Session | None = None) -> Iterable[Entry]:
        """Every tool of every source."""
        return chain.from_iterable(source.entries(session) for source in (() if self._is_empty else self.sources))

    def generation(self) -> object:
        """The generations of the sources; None before they are created."""
        return None if self._is_empty or self._made is None else tuple(source.generation() for source in self._made)

    def problems(self) -> list[ToolError]:
        """The problems of all sources."""
        return [] if self._is_empty else [problem for source in self.sources for problem in source.problems()]

    def hint(self, slug: str) -> str:
        """The first hint of any source."""
        return next(filter(None, (source.hint(slug) for source in self.sources)), "")


class CatalogIndex:
    """The index of the catalog: entries by address and by slug, slugs by the names that models see, and actions of tools.

    Equal addresses, and names that look equal to models, are problems.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.addresses: dict[str, Entry] = {}
        self.slugs: dict[str, list[Entry]] = {}
        self.shown: dict[str, str] = {}
        self.actions: dict[str, list[str]] = {}
        self.problems: list[ToolError] = []
        for entry in entries:
            self._add(entry)
        for slug, (entry, *_) in self.slugs.items():
            self._add_shown(slug, entry)

    def name_actions(self, slug: str) -> str:
        """A hint at the actions of the tool that the slug, or its part before the last dot, names."""
        whole = slug if slug in self.actions else slug.rpartition(".")[0]
        named = [f"{whole}.{action}" for action in dict.fromkeys(self.actions.get(whole, ()))]
        return f"{whole} has the actions {', '.join(named[:NAMED_ACTIONS])}" if named else ""

    def _add(self, entry: Entry) -> None:
        tool = entry.tool
        first = self.addresses.setdefault(tool.address, entry)
        if first is not entry:
            # The host program may override a tool that comes with Toolcrib.
            if tool.bundle not in (BUILTIN_BUNDLE, SYSTEM_BUNDLE):
                there = first.tool.origin or "the host program"
                message = f"{tool.origin}: {tool.address} is already defined in {there}; rename one of them"
                self.problems.append(ToolError(Kind.CONFLICT, message))
            return
        self.slugs.setdefault(tool.slug, []).append(entry)
        if action := action_of(tool):
            self.actions.setdefault(action.whole, []).append(action.action)

    def _add_shown(self, slug: str, entry: Entry) -> None:
        """Add the name that models see; a tool whose real name it is takes precedence."""
        visible = function_name(entry.tool.name)
        meant = slug_of(visible)
        meant = meant if meant in self.slugs else self.shown.setdefault(visible, slug)
        if meant != slug:
            other = self.slugs[meant][0].tool.address
            message = f"{entry.tool.address} and {other} look alike to models; rename one of them"
            self.problems.append(ToolError(Kind.CONFLICT, message))


class StoredSwitches:
    """The switches that were changed at run time; their store is only loaded if there are any.

    `is_loaded` says whether the store was loaded; `load` returns it, or None while nothing is stored.
    """

    def __init__(self, is_loaded: Callable[[], bool], load: Callable[[], Any]) -> None:
        self._is_loaded = is_loaded
        self._load = load
        self._look_at = 0.0

    def generation(self) -> object:
        """The switches, another object after each change; a change by another process is seen after at most LOOK_SECONDS."""
        if not self._is_loaded():
            now = monotonic()
            if now < self._look_at:
                return None
            self._look_at = now + LOOK_SECONDS
        bundles = self._load()
        return None if bundles is None else bundles.switches or None

    def why_off(self, tool: Tool) -> str:
        """Why the tool was disabled; empty if it was not."""
        bundles = self._load()
        return "" if bundles is None else bundles.switched_off(tool)


class Switches:
    """Decides which tools are disabled, by words: a name, `name@version`, `bundle/name`, `bundle/name@version` or `bundle/*`.

    The name of a tool with actions disables every action, `name.action` that one. Dashes and underscores are equivalent
    here, so that no spelling leaves a tool enabled by mistake. `stored` are switches that were changed at run time.
    """

    def __init__(self, disabled: frozenset[str], where: str) -> None:
        self._words = {slug_of(word): word for word in sorted(disabled)}
        self._where = where
        self.stored: StoredSwitches | None = None

    def apply(self, entry: Entry) -> Entry:
        """The entry, disabled if a setting or a stored switch disables it."""
        entry = self.apply_words(entry)
        reason = self.stored.why_off(entry.tool) if entry.enabled and self.stored is not None else ""
        if not reason:
            return entry
        tool = entry.tool
        whole = f"'{tool.bundle or HOST}/*'" if "bundle" in reason else tool.name
        cure = Cure(f"enable it with: crib enable {whole}", "ask the operator to enable it")
        return Entry(tool=tool, enabled=False, reason=reason, cure=cure)

    def apply_words(self, entry: Entry) -> Entry:
        """The entry, disabled if a word of the settings disables it."""
        if entry.tool.metadata.get("isEnabled") is False:
            cure = Cure(f'write "isEnabled": true in {entry.tool.origin}', "ask the operator to enable it")
            return Entry(tool=entry.tool, enabled=False, reason="its isEnabled is false", cure=cure)
        hit = self._word_for(entry.tool) if self._words else None
        if hit is None:
            return entry
        reason = f"{hit!r} stands in {self._where}"
        cure = Cure(f"take {hit!r} out of {self._where}", "ask the operator to enable it")
        return Entry(tool=entry.tool, enabled=False, reason=reason, cure=cure)

    def idle(self, tools: list[Tool], is_name: Callable[[str], bool]) -> Iterator[ToolError]:
        """Errors for words that match none of the tools, nor any other name."""
        if not self._words:
            return
        used = {spelling for tool in tools for spelling in spellings(tool)}
        for spelling, word in self._words.items():
            if spelling not in used and not is_name(word):
                hint = did_you_mean(word, {tool.name for tool in tools}) or "see the names with: crib list"
                yield ToolError(Kind.VALIDATION, f"{self._where}: {word!r} is the name of no tool", cure=hint)

    def _word_for(self, tool: Tool) -> str | None:
        return next((self._words[spelling] for spelling in spellings(tool) if spelling in self._words), None)


def spellings(tool: Tool, bundle: str | None = None) -> tuple[str, ...]:
    """All words of the settings that match the tool; `bundle` is how its bundle is written there."""
    bundle = slug_of(tool.bundle) if bundle is None else bundle
    version = slug_of(tool.version)
    action = action_of(tool)
    names = (tool.slug,) if action is None else (tool.slug, str(action), action.whole)
    found = ((name, f"{bundle}/{name}", f"{name}@{version}", f"{bundle}/{name}@{version}") for name in names)
    return (*chain.from_iterable(found), f"{bundle}/*")


class View(Protocol):
    """Which tools a limited caller may see; all others are treated as if they did not exist."""

    @property
    def bundles(self) -> frozenset[str] | None:
        """The only bundles whose tools are visible; None if bundles are not limited."""

    def shows(self, tool: Tool) -> bool:
        """Whether the tool may be seen and called."""

    def shows_published(self, name: str, bundle: str, tags: Iterable[str], modes: Collection[str] | None) -> bool:
        """Whether the resource or prompt of this name may be seen and read."""

    def mode_of(self, asked: str | None) -> str | None:
        """The mode of a call, which may ask for one; raises ToolError for a mode that the caller does not have."""


# The view of the current caller; None for one that may see everything. Interfaces set it. It is a context variable and no
# parameter, so that an endpoint that does not know about views is limited too.
VIEW: ContextVar[View | None] = ContextVar("view", default=None)
current_view = VIEW.get


def call_mode(asked: str | None) -> str | None:
    """The mode of a call of the current caller, which may have only one."""
    view = current_view()
    return asked if view is None else view.mode_of(asked)


@contextmanager
def seen_through(view: View | None) -> Iterator[None]:
    """Limit lookups and listings to a view within a `with` block, and in tasks started in it."""
    token = VIEW.set(view)
    try:
        yield
    finally:
        VIEW.reset(token)
