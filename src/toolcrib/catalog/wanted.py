"""What a look-up asks for, and the place that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from toolcrib.pure.names import read_address

if TYPE_CHECKING:
    from toolcrib.catalog.index import Index, Place


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
