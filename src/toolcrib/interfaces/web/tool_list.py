"""List tools for the page in short rows, filtered and sliced on the server, so that 10,000 tools scroll smoothly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.bundles.endpoints import INDEX_SECONDS
from toolcrib.toolkit.http.contract import MAX_PAGE
from toolcrib.toolkit.tool_facts import NOT_OFFERED, place_of, shadow_of, unbuilt_facts, why_not_offered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.crib import Crib
    from toolcrib.model.errors import Reader
    from toolcrib.model.tool import Entry
    from toolcrib.toolkit.http.contract import Query

# A search returns the best matches first, so that more are not needed.
MAX_FOUND = 2_000
MAX_DESCRIPTION = 300
MAX_OFFERED_FILTERS = 1_000
ENABLED, DISABLED, NOT_FOR_MODELS = STATES = ("enabled", "disabled", "notOffered")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """The filters of the list; empty means all tools."""

    bundle: str = ""
    tag: str = ""
    kind: str = ""
    effects: str = ""
    state: str = ""

    @classmethod
    def of(cls, query: Query) -> Filters:
        """The filters of a request."""
        names = ("bundle", "tag", "kind", "effects", "state")
        return cls(**{name: query.text(name) for name in names})

    def match(self, entry: Entry, is_offered: Callable[[Entry], bool]) -> bool:
        """Whether a tool is in the list."""
        tool = entry.tool
        return (
            self.bundle in ("", tool.bundle)
            and (not self.tag or self.tag in tool.tags)
            and self.kind in ("", tool.kind)
            and self.effects in ("", tool.side_effects)
            and self._match_state(entry, is_offered)
        )

    def _match_state(self, entry: Entry, is_offered: Callable[[Entry], bool]) -> bool:
        if self.state in ("", DISABLED):
            return not self.state or not entry.enabled
        return entry.enabled and is_offered(entry) == (self.state == ENABLED)


def list_tools(crib: Crib, query: Query, reader: Reader) -> dict[str, object]:
    """One slice of the list, the length of the list, and with the first slice the values to filter by."""
    offset, size, filters = query.number("offset") or 0, query.number("size") or MAX_PAGE, Filters.of(query)
    text, is_indexing = query.text("q").strip(), False
    tiers: dict[str, str] = {}
    entries = {entry.tool.address: entry for entry in crib.entries}
    if text:
        tiers, is_indexing = _search(crib, text)
        entries = {address: entries[address] for address in tiers if address in entries}
    found = [entry for entry in entries.values() if filters.match(entry, lambda one: _is_offered(crib, one))]
    if not text:
        found.sort(key=lambda entry: (entry.tool.name.casefold(), entry.tool.address))
    answer: dict[str, object] = {
        "tools": [
            {**_row(crib, entry, reader), "foundBy": tiers.get(entry.tool.address, "")}
            for entry in found[offset : offset + size]
        ],
        "total": len(found),
        "indexing": is_indexing,
    }
    if not offset:
        answer |= {"filters": _choices(crib.entries), "unbuilt": unbuilt_facts(crib, reader)}
    return answer


def _search(crib: Crib, text: str) -> tuple[dict[str, str], bool]:
    """How the tools were found that match what was typed, by address, the best first; and whether stored ones are still being indexed."""
    found: dict[str, str] = {}
    token, is_indexing = "", False
    while len(found) < MAX_FOUND:
        page = crib.bundles.search(
            text, include_disabled=True, page_size=MAX_PAGE, page_token=token, patience=INDEX_SECONDS
        )
        found |= {one.kept.tool.address: one.tier for one in page.items if one.kept.tool is not None}
        token, is_indexing = page.next_token, page.indexing
        if not token:
            break
    return found, is_indexing


def _is_offered(crib: Crib, entry: Entry) -> bool:
    if entry.tool.kind in NOT_OFFERED or crib.grants.missing(entry.tool):
        return False
    first = crib.find(entry.tool.name)
    return first is not None and first.tool.address == entry.tool.address


def _row(crib: Crib, entry: Entry, reader: Reader) -> dict[str, object]:
    tool = entry.tool
    hidden = why_not_offered(entry, shadow_of(crib, tool), crib.grants, reader)
    return {
        "name": tool.name,
        "address": tool.address,
        "description": tool.description[:MAX_DESCRIPTION],
        "bundle": tool.bundle,
        "bundleID": crib.bundles.bundle_id_of(tool),
        "slug": tool.slug,
        "version": tool.version,
        "tags": list(tool.tags),
        "kind": tool.kind,
        "sideEffects": tool.side_effects,
        "enabled": entry.enabled,
        "reason": entry.reason,
        "requiresConfirmation": tool.requires_confirmation,
        "offered": not hidden,
        "notOffered": hidden,
        "origin": place_of(crib, tool),
    }


def _choices(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """The values that occur in the tools, so that a filter offers only values with matches."""
    tools = [entry.tool for entry in entries]
    found = {
        "bundle": {tool.bundle for tool in tools},
        "tag": {tag for tool in tools for tag in tool.tags},
        "kind": {str(tool.kind) for tool in tools},
        "effects": {str(tool.side_effects) for tool in tools},
    }
    return {name: sorted(filter(None, values))[:MAX_OFFERED_FILTERS] for name, values in found.items()}
