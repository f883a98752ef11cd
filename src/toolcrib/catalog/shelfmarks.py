"""Which tools the names of files speak of, for calls that cannot wait until an index has learned all documents."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.catalog.slots import SPACE, read_slot, slot_at, slot_of
from toolcrib.pure.filenames import CUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.model.protocols import Store

LOOK_SECONDS = 0.1


class Shelfmarks:
    """The slots of a store by the spelling of their slugs, looked at anew at most every 100 ms. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[float, Mapping[str, list[str]]] = (0.0, {})

    def slots(self, slug: str) -> list[str]:
        """The slots of every tool of that slug."""
        return self._look().get(_spelling(slot_of("", slug, "")), [])

    def slugs(self, read: Callable[[str], str]) -> Iterator[str]:
        """Every slug; `read` says it for a slot whose file has a name that was cut short."""
        for spelling, slots in self._look().items():
            yield read(slots[0]) if CUT in spelling else read_slot(slots[0]).slug

    def _look(self) -> Mapping[str, list[str]]:
        until, seen = self._seen
        if monotonic() < until:
            return seen
        found: dict[str, list[str]] = {}
        for key in self._store.keys(f"{SPACE}/"):
            if slot := slot_at(key):
                found.setdefault(_spelling(slot), []).append(slot)
        self._seen = monotonic() + LOOK_SECONDS, found
        return found


def _spelling(slot: str) -> str:
    return slot.partition("/")[2].partition("@")[0]
