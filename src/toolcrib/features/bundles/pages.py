"""Pages of bundles and tools: an item that stays is listed exactly once, even if others come and go meanwhile."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from toolcrib.core.sources import current_view
from toolcrib.features.bundles.stored_documents import check_bundle_id
from toolcrib.infra.search import Hit, Tier
from toolcrib.model.bundle import Found, Owner, Page
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolcrib.features.bundles.index_sync import IndexSync
    from toolcrib.features.bundles.lookup import Lookup
    from toolcrib.features.bundles.other_sources import Sources
    from toolcrib.infra.call_counts import Count
    from toolcrib.infra.search import Row
    from toolcrib.infra.search.index import Index
    from toolcrib.model.bundle import Bundle, Kept

T = TypeVar("T")

PAGE_SIZE = 25
MAX_PAGE_SIZE = 256
MAX_TEXT = 1_000
MAX_ANSWERS = 100
# Of so many hits the first that a limited caller may see are its answers.
MAX_LOOKED_THROUGH = 5_000
# A token refers to the remaining hits by short digests, because their ids would not fit.
DIGEST_BYTES = 8
MAX_TOKEN = 12_000
SIGNATURE_BYTES = 16
# Domain separation: the key signs other things too.
_PURPOSE = b"page token\0"


@dataclass(frozen=True, kw_only=True, slots=True)
class BundlePages:
    """List and search bundles and tools of every owner."""

    index: Index
    lookup: Lookup
    syncing: IndexSync
    sources: Sources
    cursors: Cursors
    metrics: Callable[[], Mapping[str, Count]]

    def bundles(
        self,
        *,
        ids: Collection[str] | None = None,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
    ) -> Page[Bundle]:
        """Bundles in the order of their ids, without deleted ones."""
        size = check_page_size(page_size)
        wanted = None if ids is None else sorted({check_bundle_id(id_) for id_ in ids})
        query = ["bundles", wanted, include_disabled]
        after = self._after(query, page_token)
        # The roster of bundles is complete before the index is.
        self.lookup.look(patience=0)
        everything = {**self.syncing.roster.bundles, **self.sources.snapshot.bundles}
        found = (
            (id_, bundle)
            for id_, bundle in sorted(everything.items())
            if id_ > after
            and (wanted is None or id_ in wanted)
            and (include_disabled or bundle.enabled)
            and not bundle.soft_deleted_at
            and self.shows_bundle(bundle)
        )
        return self._page(query, found, size)

    def shows_bundle(self, bundle: Bundle) -> bool:
        """Whether the current caller may see the bundle: a limited one sees those that hold a tool it sees."""
        view = current_view()
        if view is None:
            return True
        if view.bundles is not None and self.lookup.name_of(bundle) not in view.bundles:
            return False

        def rows_after(last: Row | None) -> list[Row]:
            after = "" if last is None else last.id
            page = partial(
                self.index.page, after=after, limit=MAX_PAGE_SIZE, bundles=[bundle.id], include_disabled=True
            )
            return self.syncing.read(page)

        rows = _batches(rows_after, MAX_PAGE_SIZE)
        return any(self._usable(row.id, {}, include_disabled=True) is not None for row in rows)

    def tools(
        self,
        *,
        tags: Collection[str] = (),
        bundle_ids: Collection[str] | None = None,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
        patience: float | None = None,
    ) -> Page[Kept]:
        """Tools, bundle by bundle: those with all of the tags, of any of the bundles; the page size is a recommendation.

        With `patience` an index that is not complete after so many seconds gives what it has, and the page says so.
        """
        wanted = None if bundle_ids is None else sorted({check_bundle_id(id_) for id_ in bundle_ids})
        query = ["tools", sorted(set(tags)), wanted, include_disabled]
        size = recommended_size(page_size)
        after = self._after(query, page_token)
        is_complete = self.lookup.look(patience)
        counts = self.metrics()

        def rows_after(last: Row | None) -> list[Row]:
            page = partial(
                self.index.page, limit=size + 1, bundles=wanted, tags=tags, include_disabled=include_disabled
            )
            return self._read(lambda: page(after=after if last is None else last.id), is_complete=is_complete)

        found = (
            (row.id, kept)
            for row in _batches(rows_after, size + 1)
            if (kept := self._usable(row.id, counts, include_disabled=include_disabled)) is not None
        )
        return self._page(query, found, size, is_complete=is_complete)

    def stored(
        self, *, tags: Collection[str] = (), after: str = "", patience: float | None = None
    ) -> tuple[Iterator[tuple[str, Entry]], bool]:
        """The tools that are stored, read one by one as they are taken, each with its place; and whether that is all of them.

        Those after the place `after`, with all of the tags; case does not matter.
        """
        is_complete = self.lookup.look(patience)

        def rows_after(last: Row | None) -> list[Row]:
            page = partial(self.index.page, limit=MAX_PAGE_SIZE, tags=tags, any_case=True, include_disabled=True)
            return self._read(lambda: page(after=after if last is None else last.id), is_complete=is_complete)

        rows = _batches(rows_after, MAX_PAGE_SIZE)
        found = ((row.id, self._usable(row.id, {}, include_disabled=True)) for row in rows)
        entries = (
            (place, Entry(tool=kept.tool, enabled=kept.usable, reason=kept.reason))
            for place, kept in found
            if kept is not None and kept.tool is not None and kept.bundle.owner is Owner.STORE
        )
        return entries, is_complete

    def tags(self) -> set[str]:
        """Every tag that the index knows."""
        self.lookup.look(None)
        return self.syncing.read(self.index.tags)

    def search(
        self,
        text: str,
        *,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
        patience: float | None = None,
    ) -> Page[Found]:
        """Tools that match a typed text: prefixes before whole words before fuzzy matches, then the newest first.

        Where fewer than a page match, they are followed by those that answer the text as a question. A page token says
        which of the two parts it continues.
        """
        text = check_text(text)
        query = ["search", text, include_disabled]
        size = check_page_size(page_size)
        position = self.cursors.read(query, page_token) if page_token else None
        if isinstance(position, dict):
            return self._relevant(query, text, size, position, include_disabled=include_disabled, patience=patience)
        after = _read_hit(position) if isinstance(position, list) else None
        is_complete = self.lookup.look(patience)
        counts = self.metrics()

        def hits_after(last: Hit | None) -> list[Hit]:
            search = partial(self.index.search, limit=size + 1, include_disabled=include_disabled)
            return self._read(lambda: search(text, after=last or after), is_complete=is_complete)

        found = (
            ([str(hit.tier), hit.distance, hit.modified_at, hit.id], Found(kept=kept, tier=hit.tier, score=hit.score))
            for hit in _batches(hits_after, size + 1)
            if (kept := self._usable(hit.id, counts, include_disabled=include_disabled)) is not None
        )
        pairs = [*islice(found, size + 1)]
        page = self._cut(query, pairs, size, is_complete=is_complete)
        if page_token or len(pairs) >= size:
            return page
        matching = {str(position[-1]) for position, _ in pairs}
        rest = self._relevant(
            *(query, text, size - len(pairs)), without=matching, include_disabled=include_disabled, patience=patience
        )
        return replace(rest, items=(*page.items, *rest.items))

    def ask(
        self,
        question: str,
        *,
        include_disabled: bool = False,
        page_size: int | None = None,
        page_token: str = "",
        patience: float | None = None,
    ) -> Page[Found]:
        """Tools that answer a question in plain language, at most MAX_ANSWERS, the most relevant first."""
        question = check_text(question)
        query = ["ask", question, include_disabled]
        size = check_page_size(page_size)
        position = self.cursors.read(query, page_token) if page_token else None
        return self._relevant(query, question, size, position, include_disabled=include_disabled, patience=patience)

    def _relevant(
        self,
        query: object,
        question: str,
        size: int,
        position: object = None,
        *,
        without: Collection[str] = (),
        include_disabled: bool,
        patience: float | None,
    ) -> Page[Found]:
        """The most relevant tools but these. The page token contains the remaining hits as they were."""
        is_complete = self.lookup.look(patience)
        most = len(without) + (MAX_ANSWERS if current_view() is None else MAX_LOOKED_THROUGH)
        ask = partial(self.index.ask, question, limit=most, include_disabled=include_disabled)
        answer = partial(self._read, ask, is_complete=is_complete)
        hits = [hit for hit in answer() if hit.id not in without] if position is None else self._rest(position, answer)
        counts = self.metrics()
        if current_view() is not None:
            # A token names the hits that are left, and must not name one that the caller may not see.
            usable = (hit for hit in hits if self._usable(hit.id, counts, include_disabled=include_disabled))
            hits = [*islice(usable, MAX_ANSWERS)]
        items: list[Found] = []
        for number, hit in enumerate(hits):
            kept = self._usable(hit.id, counts, include_disabled=include_disabled)
            if kept is None:
                continue
            if len(items) == size:
                token = self._rest_token(query, hits[number:])
                return Page(items=tuple(items), next_token=token, indexing=not is_complete)
            items.append(Found(kept=kept, tier=hit.tier, score=hit.score))
        return Page(items=tuple(items), indexing=not is_complete)

    def _read(self, work: Callable[[], T], *, is_complete: bool) -> T:
        """Read from the index; an incomplete one is not waited for."""
        return self.syncing.read(work) if is_complete else work()

    def _rest(self, position: object, answer: Callable[[], list[Hit]]) -> list[Hit]:
        """The hits that a token refers to; `answer` gives the current hits, which are mostly the same."""
        left = position.get(Tier.RELEVANCE, ()) if isinstance(position, dict) else ()
        scores = {str(digest): float(score) for digest, score in left}
        slots: dict[str, str] = {}
        for id_ in chain((hit.id for hit in answer()), (row.id for row in self.lookup.rows())):
            if len(slots) == len(scores):
                break
            if (digest := _digest(id_)) in scores:
                slots[digest] = id_
        return [
            Hit(id=slots[digest], tier=Tier.RELEVANCE, score=score)
            for digest, score in scores.items()
            if digest in slots
        ]

    def _rest_token(self, query: object, hits: list[Hit]) -> str:
        return self.cursors.write(query, {Tier.RELEVANCE: [[_digest(hit.id), round(hit.score, 4)] for hit in hits]})

    def _after(self, query: object, page_token: str) -> str:
        return str(self.cursors.read(query, page_token)) if page_token else ""

    def _usable(self, slot: str, counts: Mapping[str, Count], *, include_disabled: bool) -> Kept | None:
        """The tool of a row; None if it is gone, not for the current caller, or unusable here where usable ones are wanted."""
        kept = self.lookup.listed(slot, counts)
        return kept if kept is not None and (include_disabled or kept.usable) and is_shown(kept) else None

    def _page(
        self, query: object, found: Iterable[tuple[object, T]], size: int, *, is_complete: bool = True
    ) -> Page[T]:
        """The first items, each found with its position, and a token if there are more."""
        return self._cut(query, [*islice(found, size + 1)], size, is_complete=is_complete)

    def _cut(self, query: object, pairs: Sequence[tuple[object, T]], size: int, *, is_complete: bool) -> Page[T]:
        token = self.cursors.write(query, pairs[size - 1][0]) if len(pairs) > size else ""
        return Page(items=tuple(item for _, item in pairs[:size]), next_token=token, indexing=not is_complete)


def is_shown(kept: Kept) -> bool:
    """Whether the current caller may see the tool; of a broken one that is not known."""
    view = current_view()
    return view is None or (kept.tool is not None and view.shows(kept.tool))


def _batches(fetch_after: Callable[[T | None], list[T]], limit: int) -> Iterator[T]:
    """All items, fetched in batches of `limit`."""
    batch = fetch_after(None)
    while True:
        yield from batch
        if len(batch) < limit:
            return
        batch = fetch_after(batch[-1])


def check_page_size(size: int | None) -> int:
    """The page size; refuses one that is out of range."""
    if size is None:
        return PAGE_SIZE
    if not 1 <= size <= MAX_PAGE_SIZE:
        raise ToolError(Kind.VALIDATION, f"the size of a page is a number from 1 to {MAX_PAGE_SIZE}, not {size!r:.40}")
    return size


def recommended_size(size: int | None) -> int:
    """A recommended page size, clamped to the allowed range."""
    return PAGE_SIZE if size is None else min(max(1, size), MAX_PAGE_SIZE)


def check_text(text: str) -> str:
    """The text of a search; refuses an empty or too long one."""
    text = text.strip().removeprefix("+").strip()
    if not text:
        raise ToolError(Kind.VALIDATION, "the search text is empty; write what to search for")
    if len(text) > MAX_TEXT:
        raise ToolError(Kind.VALIDATION, f"the search text has {len(text)} characters, the limit is {MAX_TEXT}")
    return text


def _digest(slot: str) -> str:
    return hashlib.blake2b(slot.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _read_hit(position: list[object]) -> Hit:
    tier, distance, modified_at, id_ = (str(part) for part in position)
    return Hit(id=id_, tier=Tier(tier), modified_at=modified_at, distance=int(distance))


class Cursors:
    """Signed page tokens, each valid only for the query that it was made for.

    Query and position are JSON values; the query identifies the listing.
    """

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._load_key = key

    def write(self, query: object, position: object) -> str:
        """The token for the items after the position."""
        packed = zlib.compress(_to_bytes(position), 9)
        return base64.urlsafe_b64encode(self._sign(query, packed) + packed).rstrip(b"=").decode()

    def read(self, query: object, token: str) -> object:
        """The position of a token; refuses a token of another query."""
        signed = _decode(token)
        signature, packed = signed[:SIGNATURE_BYTES], signed[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(query, packed)):
            raise ToolError(
                Kind.VALIDATION,
                "the page token does not belong to this query; ask for the first page again, without a token",
            )
        return json.loads(zlib.decompress(packed))

    @cached_property
    def _key(self) -> bytes:
        return self._load_key()

    def _sign(self, query: object, packed: bytes) -> bytes:
        query_digest = hashlib.sha256(_to_bytes(query)).digest()
        return hmac.digest(self._key, _PURPOSE + query_digest + packed, "sha256")[:SIGNATURE_BYTES]


def _to_bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _decode(token: str) -> bytes:
    """The bytes of a token; empty if it is malformed."""
    if len(token) > MAX_TOKEN or not token.isascii():
        return b""
    try:
        signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (ValueError, binascii.Error):
        return b""
    # Only the canonical spelling is accepted.
    return signed if base64.urlsafe_b64encode(signed).rstrip(b"=").decode() == token else b""
