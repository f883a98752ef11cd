"""Look up one bundle or one tool of any owner: from its document, or from a cache for a call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.sources import current_view
from toolcrib.features.bundles.index_rows import is_on, row_of
from toolcrib.features.bundles.other_sources import ALL_ON, kept_of
from toolcrib.features.bundles.stored_documents import check_slot, read_slot, slot_of
from toolcrib.lib.names import FUNCTION_NAME, HASH_LETTERS, function_name, slug_of
from toolcrib.lib.python_declarations import registered_function
from toolcrib.model.bundle import Kept
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Entry, Http, Registered, slug_problem, version_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.sources import View
    from toolcrib.features.bundles.index_rows import Roster, SlugFiles
    from toolcrib.features.bundles.index_sync import IndexSync
    from toolcrib.features.bundles.other_sources import Overlay, Sources
    from toolcrib.features.bundles.stored_documents import Documents, StoredTool
    from toolcrib.infra.call_counts import Count
    from toolcrib.infra.search import Row
    from toolcrib.infra.search.index import Index
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.tool import Run, Tool

KNOWN_SECONDS = 0.1
MAX_KNOWN = 10_000
PAGE = 1_000
# A name that models do not accept is replaced by one that ends with its hash.
SHOWN_NAME = re.compile(rf"_[a-zA-Z0-9_-]*_[0-9a-f]{{{HASH_LETTERS}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A cached lookup, valid for a moment while no document, no state and no function changes."""

    entry: Entry
    until: float
    epoch: int
    boards: object
    key: str = ""
    function: Callable[..., object] | None = None


@dataclass(kw_only=True)
class Lookup:
    """Look up tools in the store and in other sources. Threads may share it."""

    documents: Documents
    slug_files: SlugFiles
    syncing: IndexSync
    index: Index
    sources: Sources
    overlay: Overlay
    functions: Mapping[str, Callable[..., object]]
    models: frozenset[str] | None
    _known: dict[tuple[object, ...], _Known] = field(default_factory=dict)
    _bound: dict[str, tuple[Tool, Callable[..., object], Tool]] = field(default_factory=dict)
    _shown_names: tuple[int, Mapping[str, str]] = (-1, MappingProxyType({}))

    def look(self, patience: float | None = None) -> bool:
        """Update the index for a listing or a search; False if that takes longer than `patience` seconds."""
        names = self.sources.look().names
        is_complete = self.syncing.look(patience)
        self.syncing.reserve_names(names)
        return is_complete

    def look_quickly(self) -> bool:
        """Update for the lookup of one tool, without waiting for the index; whether it is complete."""
        names = self.sources.look().names
        is_complete = self.syncing.look_quickly()
        self.syncing.reserve_names(names)
        return is_complete

    def other(self, bundle_id: str) -> Bundle | None:
        """The bundle of another source with the id, with its current state; None if there is none."""
        bundle = self.sources.look().bundles.get(bundle_id)
        if bundle is None:
            return None
        board = self.overlay.board(bundle_id)
        return replace(bundle, enabled=not board.why_off(), toggled_at=board.bundle.toggled_at)

    def stored(self, bundle_id: str) -> Bundle:
        """Read the stored bundle from its document."""
        try:
            bundle = self.documents.bundle(bundle_id)
        except ToolError as problem:
            raise ToolError(Kind.CONFLICT, f"the bundle is broken: {problem.message}") from None
        if bundle is None:
            raise ToolError(Kind.NOT_FOUND, f"there is no bundle {bundle_id}")
        return bundle

    def tool(self, bundle_id: str, slug: str, version: str, counts: Mapping[str, Count]) -> Kept:
        """Read the tool from its document."""
        self.look_quickly()
        slot = check_slot(bundle_id, slug, version)
        other = self.other(bundle_id)
        if other is not None:
            kept = self._other_kept(slot, other)
        else:
            bundle = self.stored(bundle_id)
            stored_tool = self.documents.tool(slot, bundle, self.name_of(bundle))
            kept = None if stored_tool is None else self.kept(stored_tool, bundle)
        if kept is None:
            raise no_such_tool(bundle_id, slug, version)
        return counted(kept, counts)

    def listed(self, slot: str, counts: Mapping[str, Count]) -> Kept | None:
        """The tool of a row, read again only if it has another stamp; None if it is gone."""
        bundle_id = slot.partition("/")[0]
        snapshot = self.sources.snapshot
        if bundle_id in snapshot.bundles:
            kept = self._other_kept(slot, snapshot.bundles[bundle_id])
        else:
            roster = self.syncing.roster
            stored_tool = self._quick(slot, roster)
            kept = None if stored_tool is None else self.kept(stored_tool, roster.bundles[bundle_id])
        return None if kept is None else counted(kept, counts)

    def kept(self, stored_tool: StoredTool, bundle: Bundle) -> Kept:
        """A stored tool with its state."""
        return Kept(
            id=stored_tool.id,
            bundle=bundle,
            slug=stored_tool.slug,
            version=stored_tool.version,
            tool=None if stored_tool.tool is None else self._bind(stored_tool.slot, stored_tool.tool),
            document=stored_tool.document,
            enabled=stored_tool.enabled,
            reason=self._why_off(stored_tool, bundle).text,
            created_at=stored_tool.created_at,
            modified_at=stored_tool.modified_at,
            toggled_at=stored_tool.toggled_at,
            stamp=stored_tool.content,
            warnings=stored_tool.warnings,
        )

    def name_of(self, bundle: Bundle) -> str:
        """The name of the bundle in addresses."""
        return self.syncing.roster.names.get(bundle.id, bundle.slug)

    def entry(self, bundle_id: str, slug: str, version: str) -> Entry | None:
        """The tool for a call, of any owner; at most 100 ms behind."""
        wanted = (bundle_id, slug, version)
        known = self._known.get(wanted)
        if known is not None and self._is_valid(known):
            return known.entry
        if slug_problem(slug_of(slug)) or version_problem(version):
            return None
        boards = self.overlay.look()
        self.look_quickly()
        slot = slot_of(bundle_id.lower(), slug_of(slug), version)
        other = self.sources.snapshot.entries.get(slot)
        if other is not None:
            return self._note(wanted, other, boards)
        return self._stored_entry(wanted, slot, self.syncing.roster, boards)

    def find(self, name: str, bundle: str | None = None, version: str | None = None) -> Entry | None:
        """The stored tool that a call means; `bundle` is a slug or an id. At most 100 ms behind.

        Of several bundles the first by slug wins, disabled ones last; of several versions the newest. A broken document keeps
        its name: no other tool is called instead. A tool that the current caller may not see keeps none.
        """
        view = current_view()
        wanted = (name, bundle, version) if view is None else (name, bundle, version, view)
        known = self._known.get(wanted)
        if known is not None and self._is_valid(known):
            return known.entry
        boards = self.overlay.look()
        for slot in self.syncing.read(lambda: self._slots(name, bundle, version), self._look_for_call):
            if view is not None and not self._is_shown(slot, view):
                continue
            entry = self._stored_entry(wanted, slot, self.syncing.roster, boards)
            if entry is not None:
                return entry
        return None

    def _is_shown(self, slot: str, view: View) -> bool:
        stored_tool = self._quick(slot, self.syncing.roster)
        return stored_tool is not None and stored_tool.tool is not None and view.shows(stored_tool.tool)

    def _look_for_call(self) -> bool:
        # The names of other sources' bundles are loaded once.
        return self.syncing.look_quickly() if self.sources.were_asked else self.look_quickly()

    def _slots(self, name: str, bundle: str | None, version: str | None) -> list[str]:
        """The slots of the tools that a name may mean, by precedence."""
        is_complete = self._look_for_call()
        roster = self.syncing.roster
        only = None if bundle is None else roster.find(bundle)
        if bundle is not None and only is None:
            return []
        named = self.index.named if is_complete else partial(self._named_on_disk, roster=roster)
        slug = slug_of(name)
        rows = named(slug) or named(self._slug_shown_as(name, is_complete=is_complete))
        rows = [row for row in rows if row.key and only in (None, row.bundle) and version in (None, row.version)]
        there = [row for row in rows if row.bundle in roster.bundles and not roster.bundles[row.bundle].soft_deleted_at]
        # Rows come newest first, and stay so within a bundle.
        in_order = sorted(there, key=lambda row: (*_rank(roster.bundles[row.bundle]), not row.problem))
        return [row.id for row in in_order]

    def _named_on_disk(self, slug: str, *, roster: Roster) -> list[Row]:
        """The rows of that slug from the store instead of the index, the newest first."""
        stored_tool = (self._quick(slot, roster) for slot in self.slug_files.slots(slug) if slug)
        return sorted((row_of(one) for one in stored_tool if one), key=lambda row: row.created_at, reverse=True)

    def _slug_shown_as(self, name: str, *, is_complete: bool) -> str:
        """The slug of the tool that is offered to models under this name instead of its own."""
        if not SHOWN_NAME.fullmatch(name):
            return ""
        if not is_complete:
            slugs = self.slug_files.slugs(self._slug_in)
            return next((slug for slug in slugs if function_name(slug) == name), "")
        epoch, shown = self._shown_names
        if epoch != self.syncing.epoch:
            epoch, shown = self.syncing.epoch, {}
            for row in self.rows():
                if not FUNCTION_NAME.fullmatch(row.name or row.slug):
                    shown[function_name(row.name or row.slug)] = row.slug
            self._shown_names = (epoch, shown)
        return shown.get(name, "")

    def _slug_in(self, slot: str) -> str:
        """The slug in a document."""
        stored_tool = self._quick(slot, self.syncing.roster)
        return "" if stored_tool is None else stored_tool.slug

    def rows(self) -> Iterable[Row]:
        """Every row of the index."""
        after = ""
        while rows := self.index.page(after=after, limit=PAGE, include_disabled=True):
            yield from rows
            after = rows[-1].id

    def _stored_entry(self, wanted: tuple[object, ...], slot: str, roster: Roster, boards: object) -> Entry | None:
        stored_tool = self._quick(slot, roster)
        if stored_tool is None:
            return None
        reason = self._why_off(stored_tool, roster.bundles[slot.partition("/")[0]])
        if stored_tool.tool is None:
            raise ToolError(Kind.DISABLED, f"{stored_tool.slug}@{stored_tool.version} cannot be used: {reason.text}")
        tool = self._bind(slot, stored_tool.tool)
        entry = Entry(tool=tool, enabled=not reason.text, reason=reason.text, cure=reason.cure)
        return self._note(wanted, entry, boards, stored_tool.tool)

    def _quick(self, slot: str, roster: Roster) -> StoredTool | None:
        bundle = roster.bundles.get(read_slot(slot).bundle)
        return None if bundle is None else self.documents.quick_tool(slot, bundle, roster.names[bundle.id])

    def _note(self, wanted: tuple[object, ...], entry: Entry, boards: object, tool: Tool | None = None) -> Entry:
        key = tool.run.key if tool is not None and isinstance(tool.run, Registered) else ""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[wanted] = _Known(
            entry=entry,
            until=monotonic() + KNOWN_SECONDS,
            epoch=self.syncing.epoch,
            boards=boards,
            key=key,
            function=self.functions.get(key) if key else None,
        )
        return entry

    def _is_valid(self, known: _Known) -> bool:
        """Whether a cached lookup is still valid."""
        if monotonic() >= known.until or known.epoch != self.syncing.epoch:
            return False
        if known.boards is not self.overlay.look():
            return False
        return not known.key or self.functions.get(known.key) is known.function

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()

    def _bind(self, slot: str, tool: Tool) -> Tool:
        """The tool with the function registered under its key; the same object as long as both are unchanged."""
        if not isinstance(tool.run, Registered):
            return tool
        function = self.functions.get(tool.run.key)
        if function is None:
            return tool
        known = self._bound.get(slot)
        if known is not None and known[0] is tool and known[1] is function:
            return known[2]
        if len(self._bound) >= MAX_KNOWN:
            self._bound.clear()
        self._bound[slot] = (tool, function, replace(tool, run=registered_function(function)))
        return self._bound[slot][2]

    def _why_off(self, stored_tool: StoredTool, bundle: Bundle) -> Reason:
        problem = self.syncing.roster.problems.get(bundle.id, "")
        return why_off(stored_tool, bundle, problem, self.functions, self.models)

    def _other_kept(self, slot: str, bundle: Bundle) -> Kept | None:
        snapshot = self.sources.snapshot
        entry = snapshot.entries.get(slot)
        return None if entry is None else kept_of(entry, bundle, snapshot.boards.get(bundle.id, ALL_ON))


def no_such_tool(bundle_id: str, slug: str, version: str) -> ToolError:
    """The error for a version of a tool that does not exist."""
    return ToolError(Kind.NOT_FOUND, f"there is no tool {slug}@{version} in the bundle {bundle_id}")


def counted(kept: Kept, counts: Mapping[str, Count]) -> Kept:
    """The tool with its call counts."""
    count = counts.get(kept.id)
    return kept if count is None else replace(kept, calls=count.calls, last_called_at=count.last_called_at)


def _rank(bundle: Bundle) -> tuple[object, ...]:
    """The precedence of bundles with tools of the same name."""
    return (not is_on(bundle), bundle.slug, bundle.created_at, bundle.id)


class Reason(NamedTuple):
    """Why a stored tool cannot be used, and the cure; empty if it can."""

    text: str = ""
    cure: Cure | str = ""


def _enable(what: str) -> Cure:
    return Cure(f"enable it with: crib enable {what}", "ask the operator to enable it")


def why_off(
    stored_tool: StoredTool,
    bundle: Bundle,
    problem: str,
    functions: Mapping[str, Callable[..., object]],
    models: frozenset[str] | None,
) -> Reason:
    """The first reason why it cannot be used; `problem` is the error of its bundle's document."""
    if stored_tool.tool is None:
        return Reason(f"its file is broken: {stored_tool.problem}", Cure("repair the file, or delete the tool"))
    if not stored_tool.enabled:
        return Reason("its isEnabled is false", _enable(stored_tool.slug))
    return _why_bundle_off(bundle, problem) or _what_is_missing(stored_tool.tool.run, functions, models) or Reason()


def _why_bundle_off(bundle: Bundle, problem: str) -> Reason | None:
    if problem:
        return Reason(f"the file of its bundle is broken: {problem}", Cure("repair the file"))
    if bundle.soft_deleted_at:
        return Reason(f"its bundle {bundle.slug} is being deleted", "write the bundle again")
    if not bundle.enabled:
        return Reason(f"its bundle {bundle.slug} is disabled", _enable(f"'{bundle.slug}/*'"))
    return None


def _what_is_missing(
    run: Run, functions: Mapping[str, Callable[..., object]], models: frozenset[str] | None
) -> Reason | None:
    if isinstance(run, Registered) and run.key not in functions:
        cure = f'register one with @registered("{run.key}") in a module that modules names'
        return Reason(f"no function is registered under {run.key!r} in this process", Cure(cure))
    if isinstance(run, Registered | Http) and run.model and models is not None and run.model not in models:
        return Reason(f"the model {run.model!r} is not available", Cure(f"add {run.model!r} to models"))
    return None
