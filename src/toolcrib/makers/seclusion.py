"""The walls around a maker's program: the system and the program itself are read, the workspace is written, all else is closed."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.jobs import Walls
from toolcrib.ground.sandbox.walls import LIBRARIES, SYSTEM, present

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolcrib.ground.sandbox.walls import Premises

# A place of the system with more in it than this is not taken apart, but left out.
MAX_ENTRIES = 10_000


def build_maker_walls(
    folder: Path, runtime: Iterable[Path], premises: Premises, *, hidden: Sequence[Path], network: bool, disk_bytes: int
) -> Walls:
    """The walls of a program that writes in the folder; `runtime` is what it reads besides, and `hidden` what it never sees.

    No place is opened and then closed in part: what is hidden is not opened, so that nothing depends on mounts. Of the
    runtime nothing is opened that holds something hidden, such as the folder of a program that lies in a home.
    """
    secluded = [place.resolve() for place in hidden]
    system = [part for place in present((*LIBRARIES, *SYSTEM)) for part in _around(place, secluded)]
    own = [place for place in runtime if _is_apart(place, secluded)]
    return Walls(
        read=tuple(dict.fromkeys((*system, *own, folder))),
        write=(folder,),
        programs=True,
        network=network,
        memory_bytes=premises.memory_bytes,
        processes=premises.processes,
        disk_bytes=disk_bytes,
    )


def lies_in_project(path: Path, project: Sequence[Path]) -> bool:
    """Whether it lies where tools write, by its name or where it leads.

    The Python that runs Toolcrib may lie there too, and no tool can write to that.
    """
    own = [prefix for prefix in (Path(sys.prefix), Path(sys.base_prefix)) if _is_below(prefix, project)]
    return _is_below(path, project) and not any(map(path.is_relative_to, own))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    spellings = (path, path.resolve())
    places = [place for folder in folders for place in (folder, folder.resolve())]
    return any(each.is_relative_to(place) for place in places for each in spellings)


def _is_apart(place: Path, hidden: Sequence[Path]) -> bool:
    """Whether none of the hidden places can be seen from here."""
    real = place.resolve()
    return not any(each.is_relative_to(real) for each in hidden)


def _around(place: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """The place, or where something hidden lies in it, everything around that; no links, which could lead there."""
    if _is_apart(place, hidden):
        yield place
        return
    if place in hidden or not place.is_dir():
        return
    entries = list(islice(place.iterdir(), MAX_ENTRIES + 1))
    if len(entries) <= MAX_ENTRIES:
        for entry in sorted(entries):
            if not entry.is_symlink():
                yield from _around(entry, hidden)
