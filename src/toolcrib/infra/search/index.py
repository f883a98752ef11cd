"""Find tools: by typed text, by a question, and page by page."""

from __future__ import annotations

import threading
from collections import Counter
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from toolcrib.infra.search import by_relevance, order, queries, read_query, tables
from toolcrib.infra.search.database import Database
from toolcrib.infra.search.relevance import Relevance, corrected, read_question, stem

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.infra.search import Hit, Row
    from toolcrib.infra.search.database import OpenDatabase
    from toolcrib.infra.search.relevance import Idea

T = TypeVar("T")

MAX_CORRECTIONS = 3


class Index:
    """The index of all tools for lists and searches, derived from documents: it can be discarded and recreated.

    It is a SQLite database in a file, which processes share, or in memory without a path. Rows without a key belong to
    this process and are in a second database in memory. Where SQLite lacks full-text search, everything is in memory
    and searches scan every row. Threads may share an index. A row is enabled if it and its bundle are; an unknown
    bundle is enabled.
    """

    def __init__(self, path: Path | None, *, full_text: bool | None = None) -> None:
        self._full_text = tables.has_full_text_search() if full_text is None else full_text
        self._shared = Database(path if self._full_text else None, full_text=self._full_text)
        self._own = Database(None, full_text=self._full_text)
        self._own_rows: dict[str, Row] = {}
        self._owning = threading.RLock()

    def put(self, rows: Iterable[Row]) -> None:
        """Add or replace these rows, in one transaction."""
        own: dict[str, Row] = {}

        def put_shared(connection: sqlite3.Connection, database: OpenDatabase) -> None:
            tables.put_rows(connection, _with_key(rows, own), database.vocabulary, full_text=database.full_text)

        self._shared.write(put_shared)
        if own:
            with self._owning:
                self.set_own((self._own_rows | own).values())

    def set_own(self, rows: Iterable[Row]) -> None:
        """Replace the process's own rows by these."""
        wanted = {row.id: row for row in rows}
        with self._owning:
            if wanted == self._own_rows:
                return
            gone = self._own_rows.keys() - wanted.keys()
            fresh = [row for id_, row in wanted.items() if self._own_rows.get(id_) != row]

            def put_own(connection: sqlite3.Connection, database: OpenDatabase) -> None:
                tables.remove_rows(connection, gone)
                tables.put_rows(connection, fresh, database.vocabulary, full_text=database.full_text)

            self._own.write(put_own)
            self._own_rows = wanted

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows."""
        gone = set(ids)
        self._shared.write(lambda connection, _: tables.remove_rows(connection, gone))
        self._keep_own(lambda row: row.id not in gone)

    def put_bundle(self, bundle: str, *, enabled: bool) -> None:
        """Set whether a bundle is enabled."""
        if (bundle in self._shared.read(lambda connection, _: queries.bundles_off(connection))) != enabled:
            # Without a change there is no need to wait for a process that fills the index.
            return
        self._shared.write(lambda connection, _: queries.set_bundle_enabled(connection, bundle, enabled=enabled))

    def remove_bundle(self, bundle: str) -> None:
        """Remove a bundle and all its rows."""

        def forget(connection: sqlite3.Connection, _: OpenDatabase) -> None:
            tables.remove_rows(connection, queries.ids_of(connection, bundle))
            queries.set_bundle_enabled(connection, bundle, enabled=True)

        self._shared.write(forget)
        self._keep_own(lambda row: row.bundle != bundle)

    def get(self, id_: str) -> Row | None:
        """The row with that id."""
        own = self._own_rows.get(id_)
        return own if own is not None else self._shared.read(lambda connection, _: queries.row_of(connection, id_))

    def stamps(self, bundle: str) -> dict[str, tuple[str, str]]:
        """For each document of a bundle, by its key, the id of its row and its stamp."""
        return self._shared.read(lambda connection, _: queries.stamps_of(connection, bundle))

    def named(self, slug: str) -> list[Row]:
        """All rows with that slug, of any bundle and version, the newest created first."""
        found = self._both(lambda connection, _: queries.rows_named(connection, slug))
        by_id = sorted(chain.from_iterable(found), key=lambda row: row.id)
        return sorted(by_id, key=lambda row: row.created_at, reverse=True)

    def page(
        self,
        *,
        after: str = "",
        limit: int,
        bundles: Collection[str] | None = None,
        tags: Collection[str] = (),
        any_case: bool = False,
        include_disabled: bool = False,
    ) -> list[Row]:
        """Rows by id, after the id `after`; with all of the tags, as written or in `any_case`, of any of the bundles."""
        found = self._both_without(
            lambda connection, _, off: queries.page_of(
                connection, after=after, limit=limit, bundles=bundles, tags=tags, any_case=any_case, off=off
            ),
            include_disabled=include_disabled,
        )
        return list(islice(merge(*found, key=lambda row: row.id), limit))

    def tags(self) -> set[str]:
        """Every tag of a row."""
        return set().union(*self._both(lambda connection, _: queries.tags_of(connection)))

    def search(self, text: str, *, after: Hit | None = None, limit: int, include_disabled: bool = False) -> list[Hit]:
        """Hits for typed text, after the hit `after`: by tier, then distance, then newest, then id."""
        query = read_query(text)
        if query is None:
            return []
        search = queries.search_rows if self._full_text else queries.scan_words
        found = self._both_without(
            lambda connection, database, off: search(
                connection, query, database.learn_words(connection), after=after, limit=limit, off=off
            ),
            include_disabled=include_disabled,
        )
        return list(islice(merge(*found, key=order), limit))

    def ask(self, question: str, *, limit: int, include_disabled: bool = False) -> list[Hit]:
        """Hits for a question in plain words, the most relevant first."""
        ideas = read_question(question)
        frequencies = self._frequencies(ideas)
        if any(_is_unknown(idea, frequencies) for idea in ideas):
            ideas = [self._correct(idea) if _is_unknown(idea, frequencies) else idea for idea in ideas]
            frequencies = self._frequencies(ideas)
        relevance = Relevance(ideas, frequencies, frequencies[tables.ANY])

        def answer(connection: sqlite3.Connection, _: OpenDatabase, off: Collection[str] | None) -> list[Hit]:
            if self._full_text:
                return queries.ask_rows(connection, relevance, frequencies, limit=limit, off=off)
            return queries.scan_texts(connection, relevance, limit=limit, off=off)

        found = self._both_without(answer, include_disabled=include_disabled)
        return sorted(chain.from_iterable(found), key=by_relevance)[:limit]

    def count(self) -> int:
        """The number of rows with a key."""
        return self._shared.read(lambda connection, _: queries.count_of(connection))

    def incarnation(self) -> int:
        """A number that changes whenever the file is created or opened again."""
        return self._shared.incarnation()

    def facts(self) -> Mapping[str, str]:
        """The recorded facts about the index; empty for a new one."""
        return self._shared.read(lambda connection, _: queries.facts_of(connection))

    def note(self, facts: Mapping[str, str], *, incarnation: int | None = None) -> None:
        """Record facts about the index, unless it is another one than the caller knows."""

        def note_facts(connection: sqlite3.Connection, _: OpenDatabase) -> None:
            # Checked inside the transaction: a database opened later is not written to.
            if incarnation in (None, self._shared.opened):
                queries.note_facts(connection, facts)

        self._shared.write(note_facts)

    def close(self) -> None:
        """Close it, and drop the process's own rows."""
        self._shared.close()
        with self._owning:
            self._own.close()
            self._own_rows = {}

    def _keep_own(self, condition: Callable[[Row], bool]) -> None:
        with self._owning:
            self.set_own([row for row in self._own_rows.values() if condition(row)])

    def _both(self, work: Callable[[sqlite3.Connection, OpenDatabase], T]) -> list[T]:
        """Run it on the shared database, and on the one of this process if it has rows."""
        return [database.read(work) for database in ((self._shared, self._own) if self._own_rows else (self._shared,))]

    def _both_without(
        self,
        work: Callable[[sqlite3.Connection, OpenDatabase, Collection[str] | None], T],
        *,
        include_disabled: bool,
    ) -> list[T]:
        """As `_both`, with the disabled bundles, which are read in the same transaction; None if they do not matter."""
        off: list[str] | None = None

        def work_on_shared(connection: sqlite3.Connection, database: OpenDatabase) -> T:
            nonlocal off
            off = None if include_disabled else queries.bundles_off(connection)
            return work(connection, database, off)

        found = [self._shared.read(work_on_shared)]
        if self._own_rows:
            found.append(self._own.read(lambda connection, database: work(connection, database, off)))
        return found

    def _frequencies(self, ideas: Iterable[Idea]) -> Counter[str]:
        stems = {each for idea in ideas for each in idea.stems}
        return sum(self._both(lambda connection, _: queries.count_stems(connection, stems)), Counter())

    def _correct(self, idea: Idea) -> Idea:
        near = self._both(lambda connection, database: database.learn_words(connection).near(idea.word))
        return corrected(idea, chain.from_iterable(islice(words, MAX_CORRECTIONS) for words in near))


def _with_key(rows: Iterable[Row], others: dict[str, Row]) -> Iterator[Row]:
    """The rows with a key; the others are collected in `others`."""
    for row in rows:
        if row.key:
            yield row
        else:
            others[row.id] = row


def _is_unknown(idea: Idea, frequencies: Mapping[str, int]) -> bool:
    """Whether no tool has the word of an idea in any form."""
    return bool(idea.word) and stem(idea.word) not in frequencies
