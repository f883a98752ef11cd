"""Where each name leads, worked out once and then only looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from math import inf
from pathlib import PurePath
from typing import TYPE_CHECKING

from toolcrib.lib.names import action_of, did_you_mean, function_name, read_address, slug_of, version_order
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from toolcrib.core.file_source import Folder
    from toolcrib.model.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a name leads: to an entry, or to the problem of a file that goes by the name.

    `rank` is that of its bundle, 0 the one that is meant first. `settled` means that no file, changed or new, could lead
    the name elsewhere.
    """

    slug: str
    rank: int
    entry: Entry | None = None
    problem: ToolError | None = None
    folder: Folder | None = None
    file: str = ""
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """Places by name and by slug, entries by address, and for tools with actions the slug of each action.

    What cannot be told apart is a problem.
    """

    ranks: dict[str, int] = field(default_factory=dict)
    names: dict[str, Place] = field(default_factory=dict)
    slugs: dict[str, list[Place]] = field(default_factory=dict)
    actions: dict[str, dict[str, str]] = field(default_factory=dict)
    addresses: dict[str, Entry] = field(default_factory=dict)
    problems: list[ToolError] = field(default_factory=list)

    def slug_of(self, name: str) -> str:
        """The slug that a spelling of a name means; `tool.action` means the tool of that action."""
        slug = slug_of(name)
        whole, dot, action = slug.rpartition(".")
        return self.actions.get(whole, {}).get(action, slug) if dot else slug

    def named(self, name: str) -> Place | None:
        """Where a bare name leads."""
        return self.names.get(name) or self.names.get(self.slug_of(name))


def build_index(
    bundles: Mapping[str, Iterable[Tool]], folders: Iterable[Folder], switches: Switches, unsettled: Container[str] = ()
) -> Index:
    """Go through bundles and files in their order; the first of a name is the one that is meant.

    Before an `unsettled` bundle stands something that the index does not know of.
    """
    index = Index()
    settled = True
    for rank, (bundle, tools) in enumerate(bundles.items()):
        index.ranks[bundle] = rank
        settled = settled and bundle not in unsettled
        for tool in tools:
            _add(index, Place(slug=tool.slug, rank=rank, entry=switches.entry(tool), settled=settled))
        for folder in folders:
            if folder.bundle == bundle:
                settled = False
                for place in _newest_first(_places(folder, rank, switches)):
                    _add(index, place)
    _add_function_names(index)
    return index


def _places(folder: Folder, rank: int, switches: Switches) -> Iterator[Place]:
    for name, file in folder.files:
        for tool in file.tools:
            yield Place(slug=tool.slug, rank=rank, entry=switches.entry(tool), folder=folder, file=name)
        if file.problem is not None:
            # What it was to be called may still be said in it; else its file says so.
            known = (PurePath(name).stem, file.problem.details.get("tool_id"))
            for slug in dict.fromkeys(slug_of(spelling) for spelling in known if isinstance(spelling, str)):
                yield Place(slug=slug, rank=rank, problem=file.problem, folder=folder, file=name)


def _newest_first(places: Iterable[Place]) -> Iterator[Place]:
    """The places in the order of their files, but of several by one name the highest version first."""
    by_slug: dict[str, list[Place]] = {}
    for place in places:
        by_slug.setdefault(place.slug, []).append(place)
    for namesakes in by_slug.values():
        if len(namesakes) > 1:
            namesakes.sort(key=_age, reverse=True)
        yield from namesakes


def _age(place: Place) -> tuple[object, ...]:
    """Files do not say when they were made, versions do; what a broken file would be nobody knows, so it is asked first."""
    return (True,) if place.entry is None else (False, version_order(place.entry.tool.version))


def _add(index: Index, place: Place) -> None:
    if place.entry is None:
        # A broken file keeps its name: a tool further back that is called alike must not be called in its stead.
        index.slugs.setdefault(place.slug, []).append(place)
        for spelling in (place.slug, PurePath(place.file).stem):
            index.names.setdefault(spelling, place)
        return
    tool = place.entry.tool
    first = index.addresses.setdefault(tool.address, place.entry)
    if first is not place.entry:
        there = first.tool.origin or "the host program"
        message = f"{tool.origin}: {tool.address} is already defined in {there}; rename one of them"
        index.problems.append(ToolError(Kind.CONFLICT, message))
        return
    index.slugs.setdefault(tool.slug, []).append(place)
    meant = index.names.setdefault(tool.slug, place)
    index.names.setdefault(tool.name, meant)
    if action := action_of(tool):
        index.actions.setdefault(action.whole, {}).setdefault(action.action, tool.slug)


def _add_function_names(index: Index) -> None:
    """A model that calls a tool by the name it was shown finds it; a tool that is really called so comes first."""
    for place in list(index.names.values()):
        if place.entry is None:
            continue
        visible = function_name(place.entry.tool.name)
        meant = index.names.setdefault(visible, place)
        if meant is not place and meant.entry is not None and meant.entry.tool.slug != place.entry.tool.slug:
            message = (
                f"{place.entry.tool.address} and {meant.entry.tool.address} look alike to models; rename one of them"
            )
            index.problems.append(ToolError(Kind.CONFLICT, message))


# MERGED toolcrib.catalog.switches

# Which tools the operator switched off.


# What the bundle of the host program's own tools is called.
HOST = "host"


class Switches:
    """Words that switch tools off: a name, `name@version`, `bundle/name`, `bundle/name@version` or `bundle/*`.

    The name of a tool with actions switches off every action, `name.action` that one. Dashes and underscores are the same letter here, so that no spelling leaves a tool switched on by mistake.
    """

    def __init__(self, disabled: frozenset[str], where: str) -> None:
        self._words = {slug_of(word): word for word in sorted(disabled)}
        self._where = where
        # Why a tool was switched off through the catalogue; empty if it was not.
        self.moved: Callable[[Tool], str] = lambda _: ""

    def entry(self, tool: Tool) -> Entry:
        """The tool with its switch."""
        entry = self.by_word(tool)
        if entry.enabled and (reason := self.moved(tool)):
            whole = f"'{tool.bundle or HOST}/*'" if "bundle" in reason else tool.name
            return Entry(tool=tool, enabled=False, reason=reason, cure=f"switch it on with: crib enable {whole}")
        return entry

    def by_word(self, tool: Tool) -> Entry:
        """The tool with the switch of the operator alone."""
        hit = self._word_for(tool) if self._words else None
        if hit is None:
            return Entry(tool=tool)
        reason = f"{hit!r} stands in {self._where}"
        return Entry(tool=tool, enabled=False, reason=reason, cure=f"take {hit!r} out of {self._where}")

    def _word_for(self, tool: Tool) -> str | None:
        return next((self._words[spelling] for spelling in _spellings(tool) if spelling in self._words), None)

    def idle(self, tools: Iterable[Tool], others: Iterable[str]) -> Iterator[ToolError]:
        """The words that switch nothing off: none of the tools, and none of the other names."""
        if not self._words:
            return
        tools = list(tools)
        used = {spelling for tool in tools for spelling in _spellings(tool)} | {slug_of(name) for name in others}
        for spelling, word in self._words.items():
            if spelling not in used:
                hint = did_you_mean(word, {tool.name for tool in tools}) or "see the names with: crib list"
                yield ToolError(Kind.VALIDATION, f"{self._where}: {word!r} is the name of no tool; {hint}")


def _spellings(tool: Tool) -> tuple[str, ...]:
    bundle = slug_of(tool.bundle)
    version = slug_of(tool.version)
    action = action_of(tool)
    names = (tool.slug,) if action is None else (tool.slug, str(action), action.whole)
    spellings = ((name, f"{bundle}/{name}", f"{name}@{version}", f"{bundle}/{name}@{version}") for name in names)
    return (*chain.from_iterable(spellings), f"{bundle}/*")


# MERGED toolcrib.catalog.wanted

# What a look-up asks for, and the place that answers it.


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool by name, of a bundle or version if one is said; nothing that stands before the bundle `below` counts."""

    name: str
    bundle: str | None = None
    version: str | None = None
    below: str | None = None

    @property
    def is_bare(self) -> bool:
        """Whether any bundle and any version will do."""
        return self.bundle is None and self.version is None

    def counts(self, index: Index, rank: int) -> bool:
        """Whether the bundle of that rank could hold it."""
        if self.below is not None and rank < index.ranks.get(self.below, inf):
            return False
        return self.bundle is None or index.ranks.get(self.bundle, rank) == rank

    def place(self, index: Index) -> Place | None:
        """Where it leads."""
        if self.is_bare and self.below is None:
            return index.named(self.name)
        places = index.slugs.get(index.slug_of(self.name), ())
        return next((place for place in places if self.counts(index, place.rank) and self._is(place)), None)

    def _is(self, place: Place) -> bool:
        if place.entry is None:
            # Whoever asks for a certain bundle or version does not mean a file of which neither is known.
            return self.is_bare
        tool = place.entry.tool
        return self.bundle in (None, tool.bundle) and self.version in (None, tool.version)


def read_wanted(
    name: str, bundle: str | None = None, version: str | None = None, *, below: str | None = None
) -> Wanted:
    """Read a name that may be an address; what the address says counts before what is said beside it."""
    if "/" not in name and "@" not in name:
        return Wanted(name, bundle, version, below)
    address = read_address(name)
    return Wanted(address.name, address.bundle or bundle, address.version or version, below)
