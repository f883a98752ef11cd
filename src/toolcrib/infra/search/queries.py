"""Queries on the tables of an index: lookups, pages, searches for typed words, and questions in plain words.

For a question the full-text index first selects the rows with most of its words, then each of these is scored. If a
question matches few rows all of them are ranked; if it matches many, those with several of its words are preferred.
"""

from __future__ import annotations

import json
from collections import Counter
from heapq import merge, nsmallest
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcrib.infra.search import (
    BEGINNING,
    MAX_SLIPS,
    TIERS,
    WORDS_DISTANCE,
    Hit,
    SearchQuery,
    Tier,
    by_relevance,
    moment,
    order,
)
from toolcrib.infra.search.relevance import Document
from toolcrib.infra.search.tables import ANY, bound, place_behind, read_body

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Self

    from toolcrib.infra.search import Row, Vocabulary
    from toolcrib.infra.search.relevance import Relevance

# How many words with a common prefix are queried one by one.
MAX_BEGINNING = 64
# Over how many words slips are distributed in every way.
MAX_SPREAD = 5
# How many distances of fuzzy hits are queried without a look at their rows.
MAX_QUERIED = 2
# How many fuzzy hits are judged one by one.
MAX_JUDGED = 50
# How many rows are ranked, and how many of them are scored.
MAX_RANKED = 2_500
MAX_CLOSE = 100
# Among more rows: how many of them are scored, how many words of a question are queried, how many of them together at
# most, and which are rare enough to count alone.
MAX_CLOSE_OF_MANY = 50
MAX_WORDS = 4
MAX_TOGETHER = 3
RARE = 50
# A word in every twentieth row says little.
COMMON = 20


def _is_on(place: str) -> str:
    """The condition that a row and its bundle are enabled; `:off` lists the disabled bundles, or is NULL for any row."""
    return f"""(:off IS NULL OR EXISTS (
        SELECT 1 FROM rows AS it WHERE it.place = {place} AND it.enabled AND it.bundle NOT IN (SELECT value FROM json_each(:off))
    ))"""  # noqa: S608 - put together from words of our own


# Read along the full-text index, which yields places in order and stops with the last row of the page.
MATCHED = f"""
FROM words CROSS JOIN rows ON rows.place = words.rowid
WHERE words MATCH :match AND words.rowid >= :first AND {_is_on("words.rowid")}
ORDER BY words.rowid LIMIT :limit
"""
SEARCH = f"SELECT rows.id, rows.modified_at {MATCHED}"
PLACES = f"""
SELECT rowid FROM words WHERE words MATCH :match AND {_is_on("words.rowid")} ORDER BY rowid LIMIT :limit
"""  # noqa: S608 - put together from words of our own
WITH_WORDS = """
SELECT rows.id, rows.modified_at, words.listed FROM rows CROSS JOIN words ON words.rowid = rows.place
WHERE rows.place IN (SELECT value FROM json_each(?))
"""
RANKED = f"""
SELECT rowid, NULL FROM texts WHERE texts MATCH :match AND {_is_on("texts.rowid")} ORDER BY bm25(texts, 2, 1, 1, 0.5) LIMIT :limit
"""  # noqa: S608 - put together from words of our own
NEWEST = f"""
SELECT rowid, NULL FROM texts WHERE texts MATCH :match AND {_is_on("texts.rowid")} ORDER BY rowid LIMIT :limit
"""  # noqa: S608 - put together from words of our own
SCANNED_WORDS = f"""
SELECT rows.id, rows.modified_at, words.listed FROM rows JOIN words ON words.rowid = rows.place WHERE {_is_on("rows.place")}
"""  # noqa: S608 - put together from words of our own
SCANNED_TEXTS = f"""
SELECT rows.id, rows.modified_at, texts.* FROM rows JOIN texts ON texts.rowid = rows.place WHERE {_is_on("rows.place")}
"""  # noqa: S608 - put together from words of our own
ALL = f"SELECT body FROM rows WHERE id > :after AND {_is_on('rows.place')} ORDER BY id LIMIT :limit"  # noqa: S608 - our own words
OF_BUNDLE = f"""
SELECT id, body FROM rows WHERE bundle = :bundle AND id > :after AND {_is_on("rows.place")} ORDER BY id LIMIT :limit
"""  # noqa: S608 - our own words
TAGGED = f"""
SELECT tags.id, rows.body FROM tags CROSS JOIN rows ON rows.id = tags.id
WHERE tags.tag = :tag AND tags.id > :after
    AND (:bundles IS NULL OR tags.bundle IN (SELECT value FROM json_each(:bundles)))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:others) AS other
        WHERE NOT EXISTS (
            SELECT 1 FROM json_each(other.value) AS spelling JOIN tags AS too ON too.tag = spelling.value AND too.id = tags.id
        )
    )
    AND {_is_on("rows.place")}
ORDER BY tags.id LIMIT :limit
"""  # noqa: S608 - our own words


def row_of(connection: sqlite3.Connection, id_: str) -> Row | None:
    """The row with that id."""
    found = connection.execute("SELECT body FROM rows WHERE id = ?", (bound(id_),)).fetchone()
    return read_body(found[0]) if found else None


def rows_named(connection: sqlite3.Connection, slug: str) -> list[Row]:
    """All rows with that slug."""
    return [read_body(body) for (body,) in connection.execute("SELECT body FROM rows WHERE slug = ?", (bound(slug),))]


def bundles_off(connection: sqlite3.Connection) -> list[str]:
    """The disabled bundles."""
    return [bundle for (bundle,) in connection.execute("SELECT bundle FROM bundles_off")]


def set_bundle_enabled(connection: sqlite3.Connection, bundle: str, *, enabled: bool) -> None:
    """Set whether a bundle is enabled; an unknown one is."""
    statement = (
        "DELETE FROM bundles_off WHERE bundle = ?" if enabled else "INSERT OR IGNORE INTO bundles_off VALUES (?)"
    )
    connection.execute(statement, (bound(bundle),))


def ids_of(connection: sqlite3.Connection, bundle: str) -> list[str]:
    """The ids of the rows of a bundle."""
    return [id_ for (id_,) in connection.execute("SELECT id FROM rows WHERE bundle = ?", (bound(bundle),))]


def count_of(connection: sqlite3.Connection) -> int:
    """The number of rows."""
    return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])


def facts_of(connection: sqlite3.Connection) -> dict[str, str]:
    """The recorded facts about the index."""
    return dict(connection.execute("SELECT name, value FROM facts").fetchall())


def note_facts(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Record facts about the index."""
    noted = ((bound(name), bound(value)) for name, value in facts.items())
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", noted)


def stamps_of(connection: sqlite3.Connection, bundle: str) -> dict[str, tuple[str, str]]:
    """For each document of a bundle, by its key, the id of its row and its stamp."""
    found = connection.execute("SELECT key, id, stamp FROM rows WHERE bundle = ? AND key != ''", (bound(bundle),))
    return {key: (id_, stamp) for key, id_, stamp in found}


def tags_of(connection: sqlite3.Connection) -> set[str]:
    """Every tag of a row."""
    return {tag for (tag,) in connection.execute("SELECT DISTINCT tag FROM tags")}


def page_of(
    connection: sqlite3.Connection,
    *,
    after: str,
    limit: int,
    bundles: Collection[str] | None,
    tags: Collection[str],
    any_case: bool,
    off: Collection[str] | None,
) -> list[Row]:
    """Rows by id; without disabled rows and bundles, unless `off` is None."""
    wanted = {"after": bound(after), "limit": limit, "off": disabled_bundles(connection, off)}
    if tags:
        wanted["bundles"] = listed(bundles)
        return _tagged(connection, [_spellings(connection, tag, any_case=any_case) for tag in set(tags)], wanted)
    if bundles is None:
        return [read_body(body) for (body,) in connection.execute(ALL, wanted)]
    # One query per bundle: a small one is found without reading the others.
    walks = [connection.execute(OF_BUNDLE, wanted | {"bundle": bound(bundle)}) for bundle in set(bundles)]
    return [read_body(body) for _, body in islice(merge(*walks), limit)]


def _tagged(connection: sqlite3.Connection, tags: list[list[str]], wanted: dict[str, Any]) -> list[Row]:
    """The rows with all of the tags, each in any of its spellings."""
    # Read along the rarest tag, which has few rows.
    rarest, *others = sorted(tags, key=lambda spellings: sum(_count_tag(connection, tag) for tag in spellings))
    wanted["others"] = json.dumps(others, ensure_ascii=False)
    walks = [connection.execute(TAGGED, wanted | {"tag": tag}) for tag in rarest]
    # A row may have a tag in two spellings.
    rows = (next(same) for _, same in groupby(merge(*walks), key=itemgetter(0)))
    return [read_body(body) for _, body in islice(rows, wanted["limit"])]


def _spellings(connection: sqlite3.Connection, tag: str, *, any_case: bool) -> list[str]:
    """The tag itself, or as rows spell it, in capitals or not."""
    if not any_case:
        return [bound(tag)]
    found = connection.execute("SELECT tag FROM spellings WHERE folded = ?", (bound(tag.casefold()),))
    return [spelling for (spelling,) in found]


def _count_tag(connection: sqlite3.Connection, tag: str) -> int:
    """The number of rows with a tag, up to a bound."""
    found = connection.execute("SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ? LIMIT 1000)", (tag,))
    return int(found.fetchone()[0])


def search_rows(
    connection: sqlite3.Connection,
    query: SearchQuery,
    vocabulary: Vocabulary,
    *,
    after: Hit | None,
    limit: int,
    off: Collection[str] | None,
) -> list[Hit]:
    """The best hits of a search; without disabled rows and bundles, unless `off` is None."""
    disabled = disabled_bundles(connection, off)
    better: list[str] = []
    matches: list[tuple[Tier, int, str]] = []
    # A tier that the vocabulary shows to be empty is neither queried nor excluded from the next one.
    if vocabulary.has_name(query.squeezed):
        better.append(_quote(BEGINNING + query.squeezed))
        matches.append((Tier.PREFIX, 0, better[0]))
    if all(map(vocabulary.has, query.words)):
        words = _all_of(map(_quote, query.words))
        matches.append((Tier.WORD, 0, _without(words, better)))
        better.append(words)
    hits = _match_rows(connection, matches, after=after, limit=limit, disabled=disabled)
    if len(hits) < limit:
        fuzzy = _Fuzzy(query, vocabulary, better)
        hits += fuzzy.search(connection, after=after, limit=limit - len(hits), disabled=disabled)
    return hits


def _match_rows(
    connection: sqlite3.Connection,
    matches: Iterable[tuple[Tier, int, str]],
    *,
    after: Hit | None,
    limit: int,
    disabled: str | None,
) -> list[Hit]:
    """The rows of these full-text queries, which come best first, one after the other."""
    hits: list[Hit] = []
    start = (0, 0) if after is None else order(after)[:2]
    first = 0 if after is None else place_behind(connection, moment(after.modified_at), bound(after.id))
    for tier, distance, match in matches:
        position = (TIERS.index(tier), distance)
        if position < start:
            continue
        wanted = {
            "match": match,
            "first": first if position == start else 0,
            "limit": limit - len(hits),
            "off": disabled,
        }
        found = connection.execute(SEARCH, wanted)
        hits += (Hit(id=id_, tier=tier, modified_at=modified_at, distance=distance) for id_, modified_at in found)
        if len(hits) >= limit:
            break
    return hits


def disabled_bundles(connection: sqlite3.Connection, bundles: Collection[str] | None) -> str | None:
    """The disabled bundles as a value for `:off`; NULL if no row can be disabled."""
    if bundles is None:
        return None
    if not bundles and not connection.execute("SELECT EXISTS (SELECT 1 FROM rows WHERE enabled = 0)").fetchone()[0]:
        return None
    return listed(bundles)


def listed(names: Collection[str] | None) -> str | None:
    """Names as one value for SQLite."""
    return None if names is None else json.dumps([bound(name) for name in names], ensure_ascii=False)


class _Fuzzy:
    """The fuzzy hits of a query; `better` are the rows of the better tiers."""

    def __init__(self, query: SearchQuery, vocabulary: Vocabulary, better: list[str]) -> None:
        self._query = query
        self._better = better
        self._names, self._near = _nearby(query, vocabulary)
        self._words = [
            _Neighbours.of(word, near, vocabulary) for word, near in zip(query.words, self._near, strict=True)
        ]

    def search(
        self, connection: sqlite3.Connection, *, after: Hit | None, limit: int, disabled: str | None
    ) -> list[Hit]:
        """The best hits: of few distances each is queried; of many, all rows are judged if they are few."""
        nearest = list(islice(self._matches(), MAX_QUERIED + 1))
        if len(nearest) <= MAX_QUERIED:
            return _match_rows(connection, nearest, after=after, limit=limit, disabled=disabled)
        everything = " OR ".join(filter(None, (_any_of(self._names), self._any_words())))
        wanted = {"match": _without(f"({everything})", self._better), "limit": MAX_JUDGED + 1, "off": disabled}
        places = [place for (place,) in connection.execute(PLACES, wanted)]
        if len(places) > MAX_JUDGED:
            return _match_rows(connection, self._matches(), after=after, limit=limit, disabled=disabled)
        found = connection.execute(WITH_WORDS, (json.dumps(places),))
        hits = [
            Hit(id=id_, tier=Tier.FUZZY, modified_at=modified_at, distance=judged[1])
            for id_, modified_at, words in found
            if (judged := judge(words, self._query, self._names, self._near)) is not None
        ]
        return nsmallest(limit, (hit for hit in hits if after is None or order(hit) > order(after)), key=order)

    def _any_words(self) -> str:
        """The rows that have every word with any number of slips; empty if there is none."""
        known = all(any(word) for word in self._words)
        return _all_of(word.any_of_them for word in self._words) if known else ""

    def _matches(self) -> Iterator[tuple[Tier, int, str]]:
        """The query for each distance, smallest first; no row is returned twice."""
        better = self._better.copy()
        for distance, match in self._matches_with_nearer():
            yield Tier.FUZZY, distance, _without(f"({match})", better)
            better.append(f"({match})")

    def _matches_with_nearer(self) -> Iterator[tuple[int, str]]:
        for slips in (1, 2):
            if near := _any_of(other for other, distance in self._names.items() if distance == slips):
                yield slips, near
        everything = self._any_words()
        if not everything:
            return
        apart = _slips_apart(len(self._words))
        for slips in range(apart):
            if ways := [_all_of(way) for way in _spread(self._words, slips)]:
                yield WORDS_DISTANCE + slips, " OR ".join(ways)
        if sum(word.most for word in self._words) >= apart:
            yield WORDS_DISTANCE + MAX_SLIPS, everything


def _nearby(query: SearchQuery, vocabulary: Vocabulary) -> tuple[dict[str, int], list[dict[str, int]]]:
    """The marks of names that are near what was typed, or begin with what is, and the words near each word, with their distances."""
    near = {text: vocabulary.near(text) for text in {query.squeezed, *query.words}}
    names = {BEGINNING + other: far for other, far in near[query.squeezed].items() if vocabulary.has_name(other)}
    return names, [near[word] for word in query.words]


def _slips_apart(words: int) -> int:
    """How many slips in so many words are told apart: many words have too many combinations to query."""
    return MAX_SLIPS if words <= MAX_SPREAD else 1


class _Neighbours(NamedTuple):
    """The rows that have a word, as full-text expressions: exactly or as a prefix, or with one or two slips."""

    exact: str
    one: str
    two: str

    @classmethod
    def of(cls, word: str, near: Mapping[str, int], vocabulary: Vocabulary) -> Self:
        longer = vocabulary.beginning(word, MAX_BEGINNING + 1)
        named = [BEGINNING + word] if vocabulary.has_name(word) else []
        # A word with this prefix is not a slip.
        slips = {other: distance for other, distance in near.items() if not other.startswith(word)}
        return cls(
            # A few words are faster than a prefix, for which FTS5 collects all rows before it returns the first one.
            exact=f"{_quote(word)}*" if len(longer) > MAX_BEGINNING else _any_of(named + longer),
            one=_any_of(other for other, distance in slips.items() if distance == 1),
            two=_any_of(other for other, distance in slips.items() if distance == 2),  # noqa: PLR2004 - as it says
        )

    @property
    def most(self) -> int:
        """The most slips with which a row may have it."""
        return 2 if self.two else int(bool(self.one))

    @property
    def any_of_them(self) -> str:
        """The rows that have it with any number of slips."""
        return f"({' OR '.join(filter(None, self))})"


def _spread(words: list[_Neighbours], slips: int) -> Iterator[list[str]]:
    """Every way to distribute so many slips over the words."""
    if not words:
        if slips == 0:
            yield []
        return
    first, *rest = words
    for number in range(min(slips, 2) + 1):
        if first[number]:
            yield from ([first[number], *others] for others in _spread(rest, slips - number))


def _quote(word: str) -> str:
    return f'"{word}"'


def _without(match: str, better: list[str]) -> str:
    """The rows of a match that are not among the better ones."""
    return f"{match} NOT ({' OR '.join(better)})" if better else match


def _any_of(words: Iterable[str]) -> str:
    quoted = " OR ".join(map(_quote, words))
    return f"({quoted})" if quoted else ""


def _all_of(expressions: Iterable[str]) -> str:
    return f"({' AND '.join(expressions)})"


def scan_words(
    connection: sqlite3.Connection,
    query: SearchQuery,
    vocabulary: Vocabulary,
    *,
    after: Hit | None,
    limit: int,
    off: Collection[str] | None,
) -> list[Hit]:
    """The same hits as `search_rows`, found without full-text search by scanning every row."""
    names, near = _nearby(query, vocabulary)
    rows = connection.execute(SCANNED_WORDS, {"off": disabled_bundles(connection, off)})
    judged = ((id_, modified_at, judge(words, query, names, near)) for id_, modified_at, words in rows)
    hits = (
        Hit(id=id_, tier=found[0], modified_at=modified_at, distance=found[1])
        for id_, modified_at, found in judged
        if found is not None
    )
    return nsmallest(limit, (hit for hit in hits if after is None or order(hit) > order(after)), key=order)


def judge(
    listed: str, query: SearchQuery, names: Mapping[str, int], near: list[dict[str, int]]
) -> tuple[Tier, int] | None:
    """The tier and the distance of a row with the words of this list; None if it is not a hit."""
    words = set(listed.split())
    if BEGINNING + query.squeezed in words:
        return Tier.PREFIX, 0
    if words.issuperset(query.words):
        return Tier.WORD, 0
    if (distance := min((names[word] for word in words & names.keys()), default=0)) > 0:
        return Tier.FUZZY, distance
    slips = 0
    spaced = f" {listed}"
    for word, others in zip(query.words, near, strict=True):
        if f" {word}" in spaced:
            continue
        distance = min((others[other] for other in words & others.keys()), default=0)
        if distance == 0:
            return None
        slips += distance
    return Tier.FUZZY, WORDS_DISTANCE + (slips if slips < _slips_apart(len(query.words)) else MAX_SLIPS)


def count_stems(connection: sqlite3.Connection, stems: Iterable[str]) -> Counter[str]:
    """How many rows have each of the stems; ANY counts all rows."""
    found = connection.execute(
        "SELECT stem, rows FROM stems WHERE rows > 0 AND stem IN (SELECT value FROM json_each(?))",
        (listed({*stems, ANY}),),
    )
    return Counter(dict(found.fetchall()))


def ask_rows(
    connection: sqlite3.Connection,
    relevance: Relevance,
    frequencies: Mapping[str, int],
    *,
    limit: int,
    off: Collection[str] | None,
) -> list[Hit]:
    """The rows that answer a question best; without disabled rows and bundles, unless `off` is None."""
    ideas = [idea for idea in relevance.ideas if idea]
    concerned = sum(frequencies[each] for idea in ideas for each in idea)
    if min(concerned, frequencies[ANY]) <= MAX_RANKED:
        statement, enough = RANKED, MAX_CLOSE
        matches = iter([_one_of(each for idea in ideas for each in idea)])
    else:
        statement, enough = NEWEST, MAX_CLOSE_OF_MANY
        matches = _matches(_telling_words(ideas, frequencies), frequencies)
    wanted = {"limit": enough, "off": disabled_bundles(connection, off)}
    places: dict[int, None] = {}
    for match in filter(None, matches):
        places.update(connection.execute(statement, wanted | {"match": match}))
        if len(places) >= enough:
            break
    hits = [_hit(connection, place, relevance) for place in islice(places, enough)]
    return sorted(hits, key=by_relevance)[:limit]


def scan_texts(
    connection: sqlite3.Connection, relevance: Relevance, *, limit: int, off: Collection[str] | None
) -> list[Hit]:
    """As `ask_rows`, without full-text search, by scanning every row."""
    rows = connection.execute(SCANNED_TEXTS, {"off": disabled_bundles(connection, off)})
    hits = (_scored(id_, modified_at, fields, relevance) for id_, modified_at, *fields in rows)
    return nsmallest(limit, (hit for hit in hits if hit.score), key=by_relevance)


def _hit(connection: sqlite3.Connection, place: int, relevance: Relevance) -> Hit:
    id_, modified_at = connection.execute("SELECT id, modified_at FROM rows WHERE place = ?", (place,)).fetchone()
    fields = connection.execute("SELECT * FROM texts WHERE rowid = ?", (place,)).fetchone()
    return _scored(id_, modified_at, fields, relevance)


def _scored(id_: str, modified_at: str, fields: Iterable[str], relevance: Relevance) -> Hit:
    score = relevance.score(Document(*(field.split() for field in fields)))
    return Hit(id=id_, tier=Tier.RELEVANCE, modified_at=modified_at, score=score)


def _telling_words(ideas: Iterable[Mapping[str, float]], frequencies: Mapping[str, int]) -> list[str]:
    """The rarest words of the question, one per idea, without common ones unless there are no others."""
    words = {max(idea, key=lambda each: (idea[each], -frequencies[each])) for idea in ideas}
    in_order = sorted(words, key=lambda word: (frequencies[word], word))
    telling = [word for word in in_order if frequencies[word] * COMMON <= frequencies[ANY]]
    return (telling if len(telling) > 1 else in_order)[:MAX_WORDS]


def _matches(words: list[str], frequencies: Mapping[str, int]) -> Iterator[str]:
    """The full-text queries, in order: rare words, three words, two in a name, two anywhere, any."""
    yield _one_of(word for word in words if frequencies[word] <= RARE)
    for number in range(min(len(words), MAX_TOGETHER), 1, -1):
        match = _so_many_of(number, words)
        if number == 2:  # noqa: PLR2004 - pairs are many, so that those in a name come first
            yield f"name : ({match})"
        yield match
    yield _one_of(words)


def _so_many_of(number: int, words: list[str]) -> str:
    if number == 1:
        return _one_of(words)
    if number == len(words):
        return " AND ".join(f'"{word}"' for word in words)
    first, *others = words
    return f'("{first}" AND ({_so_many_of(number - 1, others)})) OR ({_so_many_of(number, others)})'


def _one_of(words: Iterable[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)
