"""An index in the memory of the process, without SQLite: the same hits in the same order, found by looking at every row."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from toolcrib.infra.search.relevance import Document, Relevance, document_of, read_question
from toolcrib.infra.search.tokens import Query, Vocabulary, all_words_of, by_relevance, names_of, order, read_query
from toolcrib.infra.search.types import Hit, Row, Tier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class _Known:
    """A row, and the words by which it is found."""

    row: Row
    names: frozenset[str]
    words: frozenset[str]
    document: Document


class MemoryIndex:
    """Rows in a dictionary."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, _Known] = {}
        self._off: set[str] = set()
        self._facts: dict[str, str] = {}
        self._vocabulary = Vocabulary()

    def put(self, rows: Iterable[Row]) -> None:
        """Have these rows in place of those with the same ids, all at once."""
        fresh = [_Known(row, frozenset(names_of(row)), frozenset(all_words_of(row)), document_of(row)) for row in rows]
        with self._lock:
            for known in fresh:
                self._rows[known.row.id] = known
                self._vocabulary.add(known.words)

    def set_own(self, rows: Iterable[Row]) -> None:
        """Have exactly these rows as the process's own."""
        wanted = {row.id: row for row in rows}
        with self._lock:
            own = {id_: known.row for id_, known in self._rows.items() if not known.row.key}
            self.remove(own.keys() - wanted.keys())
            self.put(row for id_, row in wanted.items() if own.get(id_) != row)

    def remove(self, ids: Iterable[str]) -> None:
        """Forget rows."""
        with self._lock:
            for id_ in ids:
                self._rows.pop(id_, None)

    def put_bundle(self, bundle: str, *, enabled: bool) -> None:
        """Know whether a bundle is switched on."""
        with self._lock:
            (self._off.discard if enabled else self._off.add)(bundle)

    def remove_bundle(self, bundle: str) -> None:
        """Forget a bundle and all its rows."""
        with self._lock:
            self._off.discard(bundle)
            self.remove([known.row.id for known in self._rows.values() if known.row.bundle == bundle])

    def get(self, id_: str) -> Row | None:
        """The row of that id."""
        known = self._rows.get(id_)
        return None if known is None else known.row

    def stamps(self, bundle: str) -> dict[str, tuple[str, str]]:
        """For each document of a bundle, by its key, the id of its row and its stamp."""
        return {row.key: (row.id, row.stamp) for row in self._all() if row.bundle == bundle and row.key}

    def named(self, slug: str) -> list[Row]:
        """All rows of that slug, of whichever bundle and version, the newest created first."""
        found = sorted((row for row in self._all() if row.slug == slug), key=lambda row: row.id)
        return sorted(found, key=lambda row: row.created_at, reverse=True)

    def page(
        self,
        *,
        after: str = "",
        limit: int,
        bundles: Collection[str] | None = None,
        tags: Collection[str] = (),
        include_disabled: bool = False,
    ) -> list[Row]:
        """Rows in the order of their ids, behind the one with the id `after`; with all of the tags, of any of the bundles."""
        wanted = set(tags)
        found = (
            row
            for row in self._all()
            if row.id > after
            and (bundles is None or row.bundle in bundles)
            and wanted.issubset(row.tags)
            and (include_disabled or self._is_on(row))
        )
        return heapq.nsmallest(limit, found, key=lambda row: row.id)

    def search(self, text: str, *, after: Hit | None = None, limit: int, include_disabled: bool = False) -> list[Hit]:
        """What fits what was typed: prefix before word before fuzzy, then the newest, then by id; behind the hit `after`."""
        query = read_query(text)
        if query is None:
            return []
        hits = self._hits(query, include_disabled=include_disabled)
        return heapq.nsmallest(limit, (hit for hit in hits if after is None or order(hit) > order(after)), key=order)

    def ask(self, question: str, *, limit: int, include_disabled: bool = False) -> list[Hit]:
        """What answers a question in plain words, the most relevant first."""
        ideas = read_question(question)
        stems = {each for idea in ideas for each in idea.stems}
        rows = [known for known in self._snapshot() if include_disabled or self._is_on(known.row)]
        frequencies = Counter(each for known in rows for each in stems.intersection(chain(*known.document)))
        relevance = Relevance(ideas, frequencies, len(rows))
        hits = (
            Hit(
                id=known.row.id,
                tier=Tier.RELEVANCE,
                modified_at=known.row.modified_at,
                score=relevance.score(known.document),
            )
            for known in rows
        )
        return heapq.nsmallest(limit, (hit for hit in hits if hit.score), key=by_relevance)

    def count(self) -> int:
        """How many rows have a key."""
        return sum(1 for row in self._all() if row.key)

    def incarnation(self) -> int:
        """What lies in memory is never lost."""
        return 1

    def facts(self) -> Mapping[str, str]:
        """What whoever keeps the index noted about it; empty for one that was just made."""
        return dict(self._facts)

    def note(self, facts: Mapping[str, str], *, incarnation: int | None = None) -> None:
        """Note something about the index, beside what was noted before; nothing if it is another one than the caller knows."""
        if incarnation in (None, self.incarnation()):
            with self._lock:
                self._facts.update(facts)

    def close(self) -> None:
        """Nothing is open."""

    def _all(self) -> Iterator[Row]:
        return (known.row for known in self._snapshot())

    def _snapshot(self) -> list[_Known]:
        with self._lock:
            return list(self._rows.values())

    def _is_on(self, row: Row) -> bool:
        return row.enabled and row.bundle not in self._off

    def _hits(self, query: Query, *, include_disabled: bool) -> Iterator[Hit]:
        with self._lock:
            almost = [{word, *self._vocabulary.near(word)} for word in query.words]
        for known in self._snapshot():
            if include_disabled or self._is_on(known.row):
                tier = _tier(known, query, almost)
                if tier is not None:
                    yield Hit(id=known.row.id, tier=tier, modified_at=known.row.modified_at)


def _tier(known: _Known, query: Query, almost: list[set[str]]) -> Tier | None:
    """How well a row fits; `almost` has for each word of the query those that it nearly is."""
    if any(name.startswith(query.squeezed) for name in known.names):
        return Tier.PREFIX
    if known.words.issuperset(query.words):
        return Tier.WORD
    for word, likely in zip(query.words, almost, strict=True):
        if known.words.isdisjoint(likely) and not any(other.startswith(word) for other in known.words):
            return None
    return Tier.FUZZY
