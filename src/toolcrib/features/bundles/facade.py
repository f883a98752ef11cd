"""Bundles of stored tools, shared by many processes: documents in a store, found through a search index."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.core.sources import current_view
from toolcrib.features.bundles.archive import unpack
from toolcrib.features.bundles.definition import tool_to_wire
from toolcrib.features.bundles.editor import Editor
from toolcrib.features.bundles.index_rows import SlugFiles
from toolcrib.features.bundles.index_sync import IndexSync
from toolcrib.features.bundles.lookup import Lookup, no_such_tool
from toolcrib.features.bundles.other_sources import ALL_ON, Overlay, Sources, source_id, tool_word
from toolcrib.features.bundles.pages import MAX_PAGE_SIZE, BundlePages, Cursors, is_shown
from toolcrib.features.bundles.stored_documents import SPACE, Documents, check_bundle_id, seconds_of
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.lib.names import is_uuid7
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.bundles.archive import Archive
    from toolcrib.features.bundles.other_sources import Board
    from toolcrib.infra.call_counts import Count
    from toolcrib.infra.search.index import Index
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.model.bundle import Bundle, Kept
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Entry, Tool

GRACE_SECONDS = 2 * 24 * 3600.0
# The wall clock was changed if it differs from the monotonic clock by so much.
MOVED_SECONDS = 3600.0


class Bundles:
    """Stores bundles and their tools, and shows the tools of every other source beside them.

    `entries` gives the tools of those sources; they are read-only, and only whether they are enabled is stored here. `builtins` keep their names.
    `functions` are those that stored tools may name by key. A single tool is always read from its document; lists, searches
    and the lookup of a call are at most 100 ms behind. All methods block, and threads may share the object. Methods that write
    take an `if_match`: the ETag of what the client has read; without one the change is made unconditionally.
    """

    def __init__(
        self,
        store: Store,
        index: Index,
        *,
        entries: Callable[[], Iterable[Entry]],
        builtins: Callable[[], Iterable[Tool]] = tuple,
        functions: Mapping[str, Callable[..., object]],
        key: Callable[[], bytes],
        secrets: Callable[[], Collection[str]] = tuple,
        holds_secret: Callable[[str], bool] | None = None,
        metrics: Callable[[], Mapping[str, Count]] = dict,
        models: frozenset[str] | None = None,
        max_tools: int = 100_000,
        root: Path | None = None,
        hosts: Callable[[], tuple[str, ...]] = tuple,
        on_switch: Callable[[], None] = lambda: None,
        record: Recorder = unrecorded,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        documents = Documents(store)
        self._store = store
        self._index = index
        self._metrics = metrics
        self._builtins = builtins
        self._functions = functions
        self._clock = clock
        self._hosts = hosts
        self._overlay = Overlay(store, clock, on_switch)
        self._sources = Sources(entries, self._overlay, index)
        self._syncing = IndexSync(store, index, documents)
        self._reaper = Reaper(monotonic)
        self._lookup = Lookup(
            documents=documents,
            slug_files=SlugFiles(store),
            syncing=self._syncing,
            index=index,
            sources=self._sources,
            overlay=self._overlay,
            functions=functions,
            models=models,
        )
        # Public: other listings of the same tools sign their page tokens with the same key.
        self.cursors = Cursors(key)
        self._listing = listing = BundlePages(
            index=index,
            lookup=self._lookup,
            syncing=self._syncing,
            sources=self._sources,
            cursors=self.cursors,
            metrics=metrics,
        )
        self._editor = Editor(
            store=store,
            index=index,
            documents=documents,
            syncing=self._syncing,
            sources=self._sources,
            overlay=self._overlay,
            lookup=self._lookup,
            secrets=secrets,
            holds_secret=holds_secret or (lambda _: False),
            max_tools=max_tools,
            record=record,
            root=root,
            clock=clock,
        )
        self.list_bundles, self.list_tools, self.list_stored = listing.bundles, listing.tools, listing.stored
        self.search, self.ask, self.list_tags = listing.search, listing.ask, listing.tags
        self.find, self.entry = self._lookup.find, self._lookup.entry
        self.put_bundle, self.switch_bundle = self._editor.put_bundle, self._editor.switch_bundle
        self.switch_tool, self.delete_tool = self._editor.switch_tool, self._editor.delete_tool
        self.refuse_file = self._editor.refuse_file

    def bundle(self, bundle_id: str) -> Bundle:
        """Read one bundle from its document."""
        bundle_id = check_bundle_id(bundle_id)
        if current_view() is None:
            return self._lookup.other(bundle_id) or self._lookup.stored(bundle_id)
        try:
            bundle = self._lookup.other(bundle_id) or self._lookup.stored(bundle_id)
            self._lookup.look(patience=0)
            if not bundle.soft_deleted_at and self._listing.shows_bundle(bundle):
                return bundle
        except ToolError:
            # Of a broken bundle the caller learns as little as of one that it may not see.
            pass
        raise ToolError(Kind.NOT_FOUND, f"there is no bundle {bundle_id}")

    def export_bundle(self, bundle_id: str) -> bytes:
        """A stored bundle and all its tools as a ZIP archive; the same content gives the same bytes."""
        if current_view() is not None:
            self.bundle(bundle_id)
            raise ToolError(
                Kind.BLOCKED, "an archive holds every tool of a bundle, and this caller sees only some tools"
            )
        return self._editor.export_bundle(bundle_id)

    def import_bundle(self, bundle_id: str, data: bytes, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive, with all its tools or not at all; disabled unless `enable`.

        It gets this id in place of its own, and where one is given this slug.
        """
        return self._editor.import_bundle(bundle_id, unpack(data), slug=slug, enable=enable)

    def read_archive(self, data: bytes) -> Archive:
        """The documents of an archive; nothing is stored."""
        return unpack(data)

    def disable_ahead(self, bundle: str, tools: Iterable[Tool]) -> None:
        """Disable tools that another source will show in this bundle, before their files arrive."""
        self._editor.disable_ahead(bundle, map(tool_word, tools))

    def delete_bundle(self, bundle_id: str, *, if_match: str = "") -> Bundle:
        """Soft-delete an empty bundle; until it is removed for good, writing it again restores it."""
        bundle = self._editor.delete_bundle(bundle_id, if_match)
        self._reaper.see(bundle, self._clock())
        return bundle

    def tool(self, bundle_id: str, slug: str, version: str) -> Kept:
        """Read one tool from its document."""
        bundle_id = check_bundle_id(bundle_id)
        if current_view() is not None:
            self.bundle(bundle_id)
        kept = self._lookup.tool(bundle_id, slug, version, self._metrics())
        if not is_shown(kept):
            raise no_such_tool(bundle_id, slug, version)
        return self._with_remarks(kept)

    def document(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version of a tool, with what is known of it; None if there is none."""
        try:
            return tool_to_wire(self.tool(bundle_id, slug, version))
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def list_all(self) -> list[Bundle]:
        """Every bundle, also disabled ones."""
        found: list[Bundle] = []
        token: str | None = ""
        while token is not None:
            page = self.list_bundles(include_disabled=True, page_size=MAX_PAGE_SIZE, page_token=token)
            found += page.items
            token = page.next_token or None
        return found

    def put_tool(
        self, bundle_id: str, slug: str, version: str, document: Mapping[str, object], *, if_match: str = ""
    ) -> Kept:
        """Write a new tool; of concurrent writers of one slug and version, in any process, one wins."""
        return self._with_remarks(self._editor.put_tool(bundle_id, slug, version, document, if_match))

    def functions(self) -> dict[str, str]:
        """The functions that a stored tool may name, by key, each with the first line of its documentation."""
        return {
            key: (function.__doc__ or "").strip().partition("\n")[0]
            for key, function in sorted(self._functions.items())
        }

    def contents(self) -> object:
        """A value that stays equal as long as stored tools, their state and the functions are unchanged."""
        self._lookup.look()
        return self._syncing.epoch, self._overlay.look(), tuple(self._functions.items())

    def bundle_id_of(self, tool: Tool) -> str:
        """The id of the bundle that contains a tool of any owner."""
        self._syncing.look()
        named = self._syncing.read(lambda: self._index.named(tool.slug))
        rows = [row for row in named if row.key and row.version == tool.version]
        ids = (row.bundle for row in rows if self._is_in(tool, row.bundle))
        return next(ids, "") if tool.id else source_id(tool.bundle)

    @property
    def switches(self) -> Mapping[str, Board]:
        """The state of tools of other sources, by bundle; a new object whenever one was changed, in any process."""
        return self._overlay.look()

    def switched_off(self, tool: Tool) -> str:
        """Why a tool of another source is disabled here; empty if it is not."""
        boards = self._overlay.look()
        return boards.get(source_id(tool.bundle), ALL_ON).why_off(tool_word(tool)) if boards else ""

    def reap(self, now: float | None = None) -> list[str]:
        """Remove bundles for good that were deleted two days ago and are still empty; their ids."""
        now = self._clock() if now is None else now
        self._lookup.look()
        due = self._reaper.due(self._syncing.roster.bundles.values(), now)
        return [id_ for id_ in due if self._editor.remove_bundle(id_, lambda bundle: self._reaper.is_old(bundle, now))]

    def problems(self) -> list[ToolError]:
        """Documents that cannot be read, and foreign folders; checks every document."""
        self._lookup.look()
        self._syncing.look_at_everything()
        names = self._lookup.sources.look().names
        texts = [
            *self._syncing.roster.problems.values(),
            *(row.problem for row in self._lookup.rows() if row.problem),
            *(
                f"{SPACE}/{bundle.id}: the bundle {bundle.slug} has the name of tools that are not stored, so its address is "
                f"its id; give it another slug, or rename their folder"
                for bundle in self._syncing.roster.bundles.values()
                if bundle.slug in names and not bundle.soft_deleted_at
            ),
            *(board.problem for board in self._overlay.look().values() if board.problem),
            *(
                f"{SPACE}/{name} is not a bundle: its name is not a UUID of version 7; move it away"
                for name in self._store.folders(SPACE)
                if not is_uuid7(name)
            ),
        ]
        return [ToolError(Kind.VALIDATION, text) for text in texts]

    def close(self) -> None:
        """Close what is open."""
        self._syncing.close()
        self._index.close()

    def _is_in(self, tool: Tool, bundle_id: str) -> bool:
        entry = self._lookup.entry(bundle_id, tool.slug, tool.version)
        return entry is not None and entry.tool.id == tool.id

    def _with_remarks(self, kept: Kept) -> Kept:
        if kept.tool is None or kept.bundle.read_only:
            return kept
        remarks = [*remark_on_hosts(kept.tool, self._hosts())]
        if any(tool.slug == kept.tool.slug for tool in self._builtins()):
            remarks.append(f"{kept.tool.name} alone means the built-in tool; call this one {kept.tool.address}")
        return replace(kept, warnings=(*kept.warnings, *remarks))


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenDeletion:
    """When a bundle was first seen deleted: its deletion time, and how far the clock had been moved forward by then."""

    soft_deleted_at: str
    ahead: float


class Reaper:
    """Decides in each sweep which deleted bundles are due for removal.

    A bundle is due two days after its deletion, not counting jumps of the clock since it was first seen deleted; never in the
    sweep that first sees it, and never in a sweep after the clock was changed.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: tuple[float, float] | None = None
        self._ahead = 0.0
        self._seen_deletions: dict[str, SeenDeletion] = {}

    def due(self, bundles: Iterable[Bundle], now: float) -> list[str]:
        """The ids of deleted bundles that are due."""
        was_moved = self._watch_clock(now)
        deleted = [bundle for bundle in bundles if bundle.soft_deleted_at]
        due = [] if was_moved else [bundle.id for bundle in deleted if self.is_old(bundle, now)]
        self._seen_deletions = {bundle.id: self._seen_deletion(bundle) for bundle in deleted}
        return due

    def see(self, bundle: Bundle, now: float) -> None:
        """Note that a bundle was deleted, outside of a sweep."""
        self._watch_clock(now)
        self._seen_deletions[bundle.id] = self._seen_deletion(bundle)

    def is_old(self, bundle: Bundle, now: float) -> bool:
        """Whether two days have passed since the bundle was deleted."""
        seen = self._seen_deletions.get(bundle.id)
        if not bundle.soft_deleted_at or seen is None:
            return False
        return now - seconds_of(bundle.soft_deleted_at) - (self._ahead - seen.ahead) >= GRACE_SECONDS

    def _seen_deletion(self, bundle: Bundle) -> SeenDeletion:
        seen = self._seen_deletions.get(bundle.id)
        if seen is not None and seen.soft_deleted_at == bundle.soft_deleted_at:
            return seen
        return SeenDeletion(soft_deleted_at=bundle.soft_deleted_at, ahead=self._ahead)

    def _watch_clock(self, now: float) -> bool:
        """Whether the clock was changed since the last sweep."""
        steady = self._monotonic()
        last, self._last = self._last, (now, steady)
        if last is None:
            return False
        moved = (now - last[0]) - (steady - last[1])
        self._ahead += max(0.0, moved) if abs(moved) > MOVED_SECONDS else 0.0
        return abs(moved) > MOVED_SECONDS


def remark_on_hosts(tool: Tool, hosts: tuple[str, ...]) -> Iterator[str]:
    """Warn of each host that the tool names and that its calls may not reach."""
    if not isinstance(tool.run, Http):
        return
    try:
        allowed = parse_hosts(hosts)
    except ToolError as problem:
        yield f"http_tools.hosts: {problem.message}"
        return
    for origin in dict.fromkeys("/".join(call.url.split("/", 3)[:3]) for call in tool.run.calls):
        try:
            allowed.check(parse_url(f"{origin}/"))
        except ToolError:
            host = origin.partition("://")[2]
            yield f'{host} is not among http_tools.hosts, so calls are refused; add "{host}" there'
