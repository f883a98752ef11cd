"""Where each name leads, worked out once and then only looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import function_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.catalog.folder import Folder, ReadFile
    from toolcrib.catalog.switches import Switches
    from toolcrib.model.tool import Entry, Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a name leads: to an entry, or to the problem of a file that goes by the name.

    `settled` means that no file, changed or new, could lead the name elsewhere.
    """

    entry: Entry | None = None
    problem: ToolError | None = None
    folder: Folder | None = None
    file: str = ""
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """Places by name, by slug and by address; what cannot be told apart is a problem."""

    names: dict[str, Place] = field(default_factory=dict)
    slugs: dict[str, list[Place]] = field(default_factory=dict)
    addresses: dict[str, Entry] = field(default_factory=dict)
    problems: list[ToolError] = field(default_factory=list)


def build_index(bundles: Mapping[str, Iterable[Tool]], folders: Iterable[Folder], switches: Switches) -> Index:
    """Go through bundles and files in their order; the first of a name is the one that is meant."""
    index = Index()
    settled = True
    for bundle, tools in bundles.items():
        for tool in tools:
            _add(index, Place(entry=switches.entry(tool), settled=settled))
        for folder in folders:
            if folder.bundle == bundle:
                settled = False
                _add_files(index, folder, switches)
    _add_function_names(index)
    return index


def _add_files(index: Index, folder: Folder, switches: Switches) -> None:
    for name, file in folder.files:
        for tool in file.tools:
            _add(index, Place(entry=switches.entry(tool), folder=folder, file=name))
        if file.problem is not None:
            _reserve(index, folder, name, file)


def _reserve(index: Index, folder: Folder, name: str, file: ReadFile) -> None:
    """A broken file keeps its name: a tool further back that is called alike must not be called in its stead."""
    stem = PurePath(name).stem
    place = Place(problem=file.problem, folder=folder, file=name)
    for spelling in (stem.replace("_", "-"), stem):
        index.names.setdefault(spelling, place)


def _add(index: Index, place: Place) -> None:
    entry = place.entry
    if entry is None:
        return
    tool = entry.tool
    first = index.addresses.setdefault(tool.address, entry)
    if first is not entry:
        there = first.tool.origin or "the host program"
        message = f"{tool.origin}: {tool.address} is already defined in {there}; rename one of them"
        index.problems.append(ToolError(Kind.CONFLICT, message))
        return
    index.slugs.setdefault(tool.slug, []).append(place)
    meant = index.names.setdefault(tool.slug, place)
    index.names.setdefault(tool.name, meant)


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
