"""Tools under switches, shared by many processes: written as documents, found through an index that follows them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.catalog.cursors import Cursors
from toolcrib.catalog.documents import Documents
from toolcrib.catalog.etags import etag_of
from toolcrib.catalog.listing import Listing
from toolcrib.catalog.lookup import Lookup
from toolcrib.catalog.overlay import ALL_ON, Overlay
from toolcrib.catalog.reaper import Reaper
from toolcrib.catalog.remarks import remark_on_hosts
from toolcrib.catalog.shelfmarks import Shelfmarks
from toolcrib.catalog.slots import SPACE, check_bundle_id
from toolcrib.catalog.sources import Sources, source_id, tool_word
from toolcrib.catalog.syncing import Syncing
from toolcrib.catalog.writing import Writing
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.ids import is_uuid7

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from toolcrib.catalog.overlay import Board
    from toolcrib.journal.tallies import Count
    from toolcrib.model.bundle import Bundle, Found, Kept, Page
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.search.nouns import Index

__all__ = ["Bundles", "etag_of"]


class Bundles:
    """Keeps bundles and their tools in a store, and shows the tools of every other source beside them.

    `entries` gives the tools of those sources; they are read only, and only their switches are kept here. `functions` are
    those that tools of the store may name by their keys. One tool is always read from its document; lists, searches and the
    look-up of a call are at most 100 ms behind. Everything blocks, and threads may share it. What is written takes an
    `if_match`: the tag of what the client has read, without which the change is made in any case.
    """

    def __init__(
        self,
        store: Store,
        index: Index,
        *,
        entries: Callable[[], Iterable[Entry]],
        functions: Mapping[str, Callable[..., object]],
        key: Callable[[], bytes],
        secrets: Callable[[], Collection[str]] = tuple,
        metrics: Callable[[], Mapping[str, Count]] = dict,
        models: frozenset[str] | None = None,
        max_tools: int = 100_000,
        hosts: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        documents = Documents(store)
        self._store = store
        self._index = index
        self._metrics = metrics
        self._clock = clock
        self._hosts = hosts
        self._overlay = Overlay(store, clock)
        self._sources = Sources(entries, self._overlay, index)
        self._syncing = Syncing(store, index, documents)
        self._reaper = Reaper(monotonic)
        self._lookup = Lookup(
            documents=documents,
            shelfmarks=Shelfmarks(store),
            syncing=self._syncing,
            index=index,
            sources=self._sources,
            overlay=self._overlay,
            functions=functions,
            models=models,
        )
        # Whoever lists what is kept here under another form signs its tokens with the same key.
        self.cursors = Cursors(key)
        self._listing = Listing(
            index=index,
            lookup=self._lookup,
            syncing=self._syncing,
            sources=self._sources,
            cursors=self.cursors,
            metrics=metrics,
        )
        self._writing = Writing(
            store=store,
            index=index,
            documents=documents,
            syncing=self._syncing,
            sources=self._sources,
            overlay=self._overlay,
            lookup=self._lookup,
            secrets=secrets,
            max_tools=max_tools,
            clock=clock,
        )

    def bundle(self, bundle_id: str) -> Bundle:
        """One bundle, as its document is now."""
        bundle_id = check_bundle_id(bundle_id)
        return self._lookup.other(bundle_id) or self._lookup.stored(bundle_id)

    def put_bundle(self, bundle_id: str, document: Mapping[str, object], *, if_match: str = "") -> tuple[Bundle, bool]:
        """Write a bundle, new (True) or in place of the one that is there (False), which keeps its tools."""
        return self._writing.put_bundle(check_bundle_id(bundle_id), document, if_match)

    def switch_bundle(self, bundle_id: str, enabled: bool, *, if_match: str = "") -> Bundle:  # noqa: FBT001 - a switch is what it is about
        """Switch a bundle on or off, whoever owns it."""
        return self._writing.switch_bundle(check_bundle_id(bundle_id), enabled=enabled, if_match=if_match)

    def delete_bundle(self, bundle_id: str, *, if_match: str = "") -> Bundle:
        """Delete an empty bundle; until it is removed for good, writing it again brings it back."""
        bundle = self._writing.delete_bundle(check_bundle_id(bundle_id), if_match)
        self._reaper.see(bundle, self._clock())
        return bundle

    def list_bundles(
        self,
        *,
        ids: Collection[str] | None = None,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
    ) -> Page[Bundle]:
        """Bundles of every owner."""
        return self._listing.bundles(ids, include_disabled=include_disabled, page_size=page_size, page_token=page_token)

    def tool(self, bundle_id: str, slug: str, version: str) -> Kept:
        """One tool, as its document is now."""
        return self._with_remarks(self._lookup.tool(check_bundle_id(bundle_id), slug, version, self._metrics()))

    def put_tool(
        self, bundle_id: str, slug: str, version: str, document: Mapping[str, object], *, if_match: str = ""
    ) -> Kept:
        """Write a new tool; of many writers of one slug and version, in whichever process, one wins."""
        return self._with_remarks(self._writing.put_tool(check_bundle_id(bundle_id), slug, version, document, if_match))

    def switch_tool(self, bundle_id: str, slug: str, version: str, enabled: bool, *, if_match: str = "") -> Kept:  # noqa: FBT001 - a switch is what it is about
        """Switch a tool on or off, whoever owns it."""
        return self._writing.switch_tool(check_bundle_id(bundle_id), slug, version, enabled=enabled, if_match=if_match)

    def delete_tool(self, bundle_id: str, slug: str, version: str, *, if_match: str = "") -> None:
        """Remove a tool for good."""
        self._writing.delete_tool(check_bundle_id(bundle_id), slug, version, if_match)

    def list_tools(
        self,
        *,
        tags: Collection[str] = (),
        bundle_ids: Collection[str] | None = None,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
    ) -> Page[Kept]:
        """Tools of every owner, those with all of the tags; the size of a page is a recommendation."""
        return self._listing.tools(
            tags=tags,
            bundle_ids=bundle_ids,
            include_disabled=include_disabled,
            page_size=page_size,
            page_token=page_token,
        )

    def search(
        self, text: str, *, include_disabled: bool = False, page_size: int | None = None, page_token: str = ""
    ) -> Page[Found]:
        """What fits what was typed: beginnings of names before words, words before what is nearly right, then the newest."""
        return self._listing.search(text, include_disabled=include_disabled, page_size=page_size, page_token=page_token)

    def ask(
        self, question: str, *, include_disabled: bool = False, page_size: int | None = None, page_token: str = ""
    ) -> Page[Found]:
        """What answers a question in plain words, the most relevant first, at most a hundred."""
        return self._listing.ask(
            question, include_disabled=include_disabled, page_size=page_size, page_token=page_token
        )

    def find(self, name: str, bundle: str | None = None, version: str | None = None) -> Entry | None:
        """The tool of the store that a call means; `bundle` is a slug or an id. Raises DISABLED for a broken document."""
        return self._lookup.find(name, bundle, version)

    def entry(self, bundle_id: str, slug: str, version: str) -> Entry | None:
        """The tool of any owner that a call means. Raises DISABLED for a broken document."""
        return self._lookup.entry(bundle_id, slug, version)

    def bundle_id_of(self, tool: Tool) -> str:
        """The id of the bundle that a tool is in, whoever owns it."""
        self._syncing.look()
        named = self._syncing.read(lambda: self._index.named(tool.slug))
        rows = [row for row in named if row.key and row.version == tool.version]
        ids = (row.bundle for row in rows if self._is_in(tool, row.bundle))
        return next(ids, "") if tool.id else source_id(tool.bundle)

    @property
    def switches(self) -> Mapping[str, Board]:
        """The switches of tools of other sources, by bundle; another object whenever one was moved, in whichever process."""
        return self._overlay.look()

    def switched_off(self, tool: Tool) -> str:
        """Why a tool of another source is switched off here; empty if it is not."""
        boards = self._overlay.look()
        return boards.get(source_id(tool.bundle), ALL_ON).why_off(tool_word(tool)) if boards else ""

    def reap(self, now: float | None = None) -> list[str]:
        """Remove for good what was deleted two days ago and is still empty; the ids."""
        now = self._clock() if now is None else now
        self._lookup.look()
        due = self._reaper.due(self._syncing.roster.bundles.values(), now)
        return [id_ for id_ in due if self._writing.remove_bundle(id_, lambda bundle: self._reaper.is_old(bundle, now))]

    def problems(self) -> list[ToolError]:
        """Documents that cannot be read, and folders that are none of ours; everything is looked at."""
        self._lookup.look()
        self._syncing.look_at_everything()
        texts = [
            *self._syncing.roster.problems.values(),
            *(row.problem for row in self._lookup.rows() if row.problem),
            *(board.problem for board in self._overlay.look().values() if board.problem),
            *(
                f"{SPACE}/{name} is no bundle: its name is no UUID of version 7; move it away"
                for name in self._store.folders(SPACE)
                if not is_uuid7(name)
            ),
        ]
        return [ToolError(Kind.VALIDATION, text) for text in texts]

    def close(self) -> None:
        """Let go of what is open."""
        self._syncing.close()
        self._index.close()

    def _is_in(self, tool: Tool, bundle_id: str) -> bool:
        entry = self._lookup.entry(bundle_id, tool.slug, tool.version)
        return entry is not None and entry.tool.id == tool.id

    def _with_remarks(self, kept: Kept) -> Kept:
        if kept.tool is None or kept.bundle.read_only:
            return kept
        return replace(kept, warnings=(*kept.warnings, *remark_on_hosts(kept.tool, self._hosts)))
