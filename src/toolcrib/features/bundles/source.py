"""The bundles of a Crib, made when they are first needed: a project that keeps none never loads what keeps them."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.model.bundle import Owner
from toolcrib.model.tool import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.features.bundles.facade import Bundles
    from toolcrib.model.errors import ToolError
    from toolcrib.model.tool import Tool

BUNDLES = "bundles"
SWITCHES = "switches"
LOOK_SECONDS = 0.1
PAGE = 256


class BundleSource:
    """What the catalogue asks about tools that are kept in bundles, and about switches that were moved."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._look_at = 0.0
        self._made: Bundles | None = None

    @property
    def bundles(self) -> Bundles:
        """The rules of keeping: one object for all threads."""
        if self._made is None:
            self._made = self._resources.get("bundles")
        return self._made

    def find(self, name: str, bundle: str | None, version: str | None) -> Entry | None:
        """The tool that is meant among those kept in bundles."""
        return self.bundles.find(name, bundle, version) if self._is_used(BUNDLES) else None

    def entry(self, bundle_id: str, slug: str, version: str) -> Entry | None:
        """The tool of that bundle, whoever owns it."""
        return self.bundles.entry(bundle_id, slug, version)

    def entries(self) -> Iterator[Entry]:
        """Every tool that is kept in a bundle."""
        token = ""
        while self._is_used(BUNDLES):
            page = self.bundles.list_tools(include_disabled=True, page_size=PAGE, page_token=token)
            for kept in page.items:
                if kept.bundle.owner is Owner.STORE and kept.tool is not None:
                    yield Entry(tool=kept.tool, enabled=kept.usable, reason=kept.reason)
            token = page.next_token
            if not token:
                return

    def contents(self) -> object:
        """What changes whenever a tool of a bundle does, at most a moment late."""
        return self.bundles.contents() if self._is_used(BUNDLES) else None

    def problems(self) -> list[ToolError]:
        """What is kept in bundles and broken."""
        return self.bundles.problems() if self._is_used(BUNDLES) else []

    def switched_off(self, tool: Tool) -> str:
        """Why a tool that is not kept in a bundle was switched off; empty if it was not."""
        return self.bundles.switched_off(tool) if self._is_used(SWITCHES) else ""

    def generation(self) -> object:
        """The switches of such tools: another object whenever one was moved, here at once, elsewhere at most a moment ago."""
        # As `_is_made`, in place, because every call asks.
        if self._made is None and not self._resources.has_made("bundles"):
            now = monotonic()
            if now < self._look_at:
                return None
            self._look_at = now + LOOK_SECONDS
            if not self._is_used(SWITCHES):
                return None
        return self.bundles.switches or None

    @property
    def _is_made(self) -> bool:
        """Whether this source, or the Crib itself, has asked for the bundles."""
        return self._made is not None or self._resources.has_made("bundles")

    def _is_used(self, space: str) -> bool:
        if self._is_made:
            return True
        folder = self._resources.data.file(space)
        return folder is not None and folder.is_dir()
