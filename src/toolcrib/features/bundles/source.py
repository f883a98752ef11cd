"""The catalog source of stored tools; a project without bundles never loads the modules behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.sources import BUNDLES, Rank
from toolcrib.lib.names import slug_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.errors import ToolError
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Entry

ID_LETTERS = 36


class BundleSource:
    """The tools that are stored in bundles: too many to be listed, so the catalog asks for each by name.

    A bundle may be given by its id too, and then by that of any owner.
    """

    rank = Rank.BUNDLES
    bundles = ()
    listed = False
    settled = False
    version = ""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def find(self, name: str, bundle: str | None, version: str | None, session: Session | None) -> Entry | None:
        """The tool that is meant among those of bundles."""
        if bundle is not None and version is not None and len(bundle) == ID_LETTERS:
            bundles: Bundles = self._resources.get("bundles")
            return bundles.entry(bundle, slug_of(name), version)
        stored = self._stored
        return None if stored is None else stored.find(name, bundle, version)

    def entries(self, session: Session | None = None) -> Iterator[Entry]:
        """Every tool that is stored in a bundle."""
        bundles = self._stored
        if bundles is not None:
            entries, _ = bundles.list_stored()
            yield from (entry for _, entry in entries)

    def generation(self) -> object:
        """A value that changes whenever a stored tool does, at most 100 ms late."""
        stored = self._stored
        return None if stored is None else stored.contents()

    def problems(self) -> list[ToolError]:
        """What is stored in bundles and broken."""
        stored = self._stored
        return [] if stored is None else stored.problems()

    def hint(self, slug: str) -> str:
        """Always empty: a broken document is among the problems."""
        return ""

    @property
    def _stored(self) -> Bundles | None:
        """The service of bundles; None in a project without bundles, which never loads it."""
        return self._resources.stored_bundles(BUNDLES)  # type: ignore[no-any-return]  # so it is registered
