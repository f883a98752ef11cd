"""Describe tools as JSON, for listing, showing and searching them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.toolkit.tool_facts import all_facts_of, found_facts, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.core.resources import Resources
    from toolcrib.model.bundle import Found, Page
    from toolcrib.toolkit.tool_facts import DescribedCrib, Facts


class Search(Protocol):
    """Finds tools by a text or a question."""

    def __call__(self, text: str, /, *, include_disabled: bool, page_size: int) -> Page[Found]:
        """The first page of matches."""


class Descriptions:
    """The descriptions of one Crib's tools."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def list_all(self, crib: DescribedCrib, tags: Sequence[str], *, executors: bool) -> list[Facts]:
        """The tools that have all of the tags; or the executors instead."""
        return [describe() for _, describe in listed(crib, tags=tags, executors=executors)]

    def show(self, crib: DescribedCrib, name: str) -> Facts | None:
        """All facts of the tool that a name means; None if there is none."""
        entry = crib.find(name)
        return None if entry is None else all_facts_of(crib, entry)

    def search(self, text: str, *, is_question: bool, everything: bool, limit: int) -> tuple[list[Facts], bool]:
        """The tools that match a search text, then those that answer it as a question; and whether there are more."""
        bundles = self._resources.get("bundles")
        look: Search = bundles.ask if is_question else bundles.search
        page = look(text, include_disabled=everything, page_size=limit)
        return [found_facts(found) for found in page.items], bool(page.next_token)
