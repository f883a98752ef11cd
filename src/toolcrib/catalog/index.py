"""Where each name leads, worked out once and then only looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import action_of, function_name, slug_of, version_order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from toolcrib.catalog.folder import Folder
    from toolcrib.catalog.switches import Switches
    from toolcrib.model.tool import Entry, Tool


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
