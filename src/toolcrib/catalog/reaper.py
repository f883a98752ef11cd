"""Removing bundles for good two days after they were deleted, and never a moment earlier."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.catalog.clocks import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.model.bundle import Bundle

GRACE_SECONDS = 2 * 24 * 3600.0
# The clock on the wall was moved if it went on so differently from the one that nobody can move.
MOVED_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    """When a bundle was first seen deleted: what its document said, and how far the clock had been put forward by then."""

    soft_deleted_at: str
    ahead: float


class Reaper:
    """Says which bundles are due, pass by pass.

    A bundle is due when two days have gone by on the clock, not counting what the clock was put forward since the bundle was
    first seen deleted; never in the pass that first sees it, and in no pass before which the clock was moved.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: tuple[float, float] | None = None
        self._ahead = 0.0
        self._sightings: dict[str, Sighting] = {}

    def due(self, bundles: Iterable[Bundle], now: float) -> list[str]:
        """The ids of the deleted bundles whose time is over."""
        was_moved = self._watch_clock(now)
        deleted = [bundle for bundle in bundles if bundle.soft_deleted_at]
        due = [] if was_moved else [bundle.id for bundle in deleted if self.is_old(bundle, now)]
        self._sightings = {bundle.id: self._sighting(bundle) for bundle in deleted}
        return due

    def see(self, bundle: Bundle, now: float) -> None:
        """See a bundle deleted outside of a pass, as whoever deletes it does."""
        self._watch_clock(now)
        self._sightings[bundle.id] = self._sighting(bundle)

    def is_old(self, bundle: Bundle, now: float) -> bool:
        """Whether two days have gone by since the bundle was deleted."""
        seen = self._sightings.get(bundle.id)
        if not bundle.soft_deleted_at or seen is None:
            return False
        return now - seconds_of(bundle.soft_deleted_at) - (self._ahead - seen.ahead) >= GRACE_SECONDS

    def _sighting(self, bundle: Bundle) -> Sighting:
        seen = self._sightings.get(bundle.id)
        if seen is not None and seen.soft_deleted_at == bundle.soft_deleted_at:
            return seen
        return Sighting(soft_deleted_at=bundle.soft_deleted_at, ahead=self._ahead)

    def _watch_clock(self, now: float) -> bool:
        """Whether the clock was moved since the last pass."""
        steady = self._monotonic()
        last, self._last = self._last, (now, steady)
        if last is None:
            return False
        moved = (now - last[0]) - (steady - last[1])
        self._ahead += max(0.0, moved) if abs(moved) > MOVED_SECONDS else 0.0
        return abs(moved) > MOVED_SECONDS
