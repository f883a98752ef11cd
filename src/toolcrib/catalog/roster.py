"""Which bundles a store holds, and what each is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.model.bundle import Bundle

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

BROKEN_SLUG = "broken"


@dataclass(frozen=True, kw_only=True, slots=True)
class Roster:
    """The bundles of a store by their ids.

    `problems` say why some of them, which are switched off, cannot be read. `names` says what each is called in addresses:
    by its slug where a look-up of the slug leads to it, else by its id. `meant` says which one a slug leads to.
    """

    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)

    def find(self, word: str) -> str | None:
        """The id of the bundle that an id or a slug means."""
        return word.lower() if word.lower() in self.bundles else self.meant.get(word)


def make_roster(
    bundles: Mapping[str, Bundle], problems: Mapping[str, str] | None = None, taken: Collection[str] = ()
) -> Roster:
    """Give every bundle its name; of several with one slug the earliest is called by it, unless others took it before."""
    problems = problems or {}
    meant: dict[str, str] = {}
    live = (bundle for bundle in bundles.values() if not bundle.soft_deleted_at and bundle.id not in problems)
    for bundle in sorted(live, key=lambda bundle: (bundle.created_at, bundle.id)):
        meant.setdefault(bundle.slug, bundle.id)
    names = {
        bundle.id: bundle.slug if meant.get(bundle.slug) == bundle.id and bundle.slug not in taken else bundle.id
        for bundle in bundles.values()
    }
    return Roster(bundles=bundles, problems=problems, names=names, meant=meant)


def is_on(bundle: Bundle) -> bool:
    """Whether the tools of a bundle can be used, as far as it is concerned."""
    return bundle.enabled and not bundle.soft_deleted_at


def stand_in(bundle_id: str) -> Bundle:
    """What is shown in place of a bundle whose document cannot be read."""
    return Bundle(id=bundle_id, slug=BROKEN_SLUG, display_name=bundle_id, enabled=False)
