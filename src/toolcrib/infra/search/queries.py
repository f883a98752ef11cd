"""Ask the tables of an index: look-ups, lists, searches for typed words, and questions in plain words.

For a question the full-text index first names the rows that have most of its words, then each of these is looked at closely. Where
a question concerns few rows all of them are ranked; where it concerns many, those count that have several of its words.
"""

from __future__ import annotations

import json
from collections import Counter
from heapq import merge, nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.infra.search.relevance import Document
from toolcrib.infra.search.tables import ANY, BEGINNING, bound, place_behind, read_body
from toolcrib.infra.search.tokens import TIERS, Hit, Query, Tier, by_relevance, moment, order

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from toolcrib.infra.search.relevance import Relevance
    from toolcrib.infra.search.tokens import Row, Vocabulary

# How many words that begin alike are looked for one by one.
MAX_BEGINNING = 64
# How many rows are ranked, and how many of them are looked at closely.
MAX_RANKED = 2_500
MAX_CLOSE = 100
# Among more rows: how many of them are looked at closely, how many words of a question are looked for, how many of them
# together at most, and which are rare enough to count alone.
MAX_CLOSE_OF_MANY = 50
MAX_WORDS = 4
MAX_TOGETHER = 3
RARE = 50
# What every twentieth row has says little.
COMMON = 20


def _is_on(place: str) -> str:
    """The condition that a row is switched on, and its bundle too; `:off` lists those that are not, or is NULL for any row."""
    return f"""(:off IS NULL OR EXISTS (
        SELECT 1 FROM rows AS it WHERE it.place = {place} AND it.enabled AND it.bundle NOT IN (SELECT value FROM json_each(:off))
    ))"""  # noqa: S608 - put together from words of our own


# Read along the full-text index, which gives places in their order and stops with the last row of the page.
SEARCH = f"""
SELECT rows.id, rows.modified_at FROM words CROSS JOIN rows ON rows.place = words.rowid
WHERE words MATCH :match AND words.rowid >= :first AND {_is_on("words.rowid")}
ORDER BY words.rowid LIMIT :limit
"""  # noqa: S608 - put together from words of our own
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
SELECT rows.body FROM tags CROSS JOIN rows ON rows.id = tags.id
WHERE tags.tag = :tag AND tags.id > :after
    AND (:bundles IS NULL OR tags.bundle IN (SELECT value FROM json_each(:bundles)))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:others) AS other
        WHERE NOT EXISTS (SELECT 1 FROM tags AS too WHERE too.tag = other.value AND too.id = tags.id)
    )
    AND {_is_on("rows.place")}
ORDER BY tags.id LIMIT :limit
"""  # noqa: S608 - our own words


def row_of(connection: sqlite3.Connection, id_: str) -> Row | None:
    """The row of that id."""
    found = connection.execute("SELECT body FROM rows WHERE id = ?", (bound(id_),)).fetchone()
    return read_body(found[0]) if found else None


def rows_named(connection: sqlite3.Connection, slug: str) -> list[Row]:
    """All rows of that slug."""
    return [read_body(body) for (body,) in connection.execute("SELECT body FROM rows WHERE slug = ?", (bound(slug),))]


def bundles_off(connection: sqlite3.Connection) -> list[str]:
    """The bundles that are switched off."""
    return [bundle for (bundle,) in connection.execute("SELECT bundle FROM bundles_off")]


def switch_bundle(connection: sqlite3.Connection, bundle: str, *, enabled: bool) -> None:
    """Note whether a bundle is switched on, which is what one counts as that is not noted."""
    statement = (
        "DELETE FROM bundles_off WHERE bundle = ?" if enabled else "INSERT OR IGNORE INTO bundles_off VALUES (?)"
    )
    connection.execute(statement, (bound(bundle),))


def ids_of(connection: sqlite3.Connection, bundle: str) -> list[str]:
    """The ids of the rows of a bundle."""
    return [id_ for (id_,) in connection.execute("SELECT id FROM rows WHERE bundle = ?", (bound(bundle),))]


def count_of(connection: sqlite3.Connection) -> int:
    """How many rows there are."""
    return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])


def facts_of(connection: sqlite3.Connection) -> dict[str, str]:
    """What was noted about the index."""
    return dict(connection.execute("SELECT name, value FROM facts").fetchall())


def note_facts(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Note something about the index."""
    noted = ((bound(name), bound(value)) for name, value in facts.items())
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", noted)


def stamps_of(connection: sqlite3.Connection, bundle: str) -> dict[str, tuple[str, str]]:
    """For each document of a bundle, by its key, the id of its row and its stamp."""
    found = connection.execute("SELECT key, id, stamp FROM rows WHERE bundle = ? AND key != ''", (bound(bundle),))
    return {key: (id_, stamp) for key, id_, stamp in found}


def page_of(
    connection: sqlite3.Connection,
    *,
    after: str,
    limit: int,
    bundles: Collection[str] | None,
    tags: Collection[str],
    off: Collection[str] | None,
) -> list[Row]:
    """Rows in the order of their ids; without those that are switched off, or in a bundle that is, unless `off` is None."""
    wanted = {"after": bound(after), "limit": limit, "off": switched_off(connection, off)}
    if tags:
        # Walk along the rarest tag, whose rows are few.
        rarest, *others = sorted({bound(tag) for tag in tags}, key=lambda tag: _count_tag(connection, tag))
        wanted |= {"tag": rarest, "others": listed(others), "bundles": listed(bundles)}
        return [read_body(body) for (body,) in connection.execute(TAGGED, wanted)]
    if bundles is None:
        return [read_body(body) for (body,) in connection.execute(ALL, wanted)]
    # One walk for each bundle: a small one among many others is found without a look at the others.
    walks = [connection.execute(OF_BUNDLE, wanted | {"bundle": bound(bundle)}) for bundle in set(bundles)]
    return [read_body(body) for _, body in islice(merge(*walks), limit)]


def _count_tag(connection: sqlite3.Connection, tag: str) -> int:
    """How many rows have a tag; beyond a bound it does not matter any more."""
    found = connection.execute("SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ? LIMIT 1000)", (tag,))
    return int(found.fetchone()[0])


def search_rows(
    connection: sqlite3.Connection,
    query: Query,
    vocabulary: Vocabulary,
    *,
    after: Hit | None,
    limit: int,
    off: Collection[str] | None,
) -> list[Hit]:
    """The best hits of a search; without those that are switched off, or in a bundle that is, unless `off` is None."""
    hits: list[Hit] = []
    first = 0 if after is None else place_behind(connection, moment(after.modified_at), bound(after.id))
    for tier in TIERS if after is None else TIERS[TIERS.index(after.tier) :]:
        wanted = {
            "match": _match(tier, query, vocabulary),
            "first": first,
            "limit": limit - len(hits),
            "off": switched_off(connection, off),
        }
        found = connection.execute(SEARCH, wanted)
        hits += (Hit(id=id_, tier=tier, modified_at=modified_at) for id_, modified_at in found)
        if len(hits) >= limit:
            break
        first = 0
    return hits


def switched_off(connection: sqlite3.Connection, bundles: Collection[str] | None) -> str | None:
    """The bundles that are switched off as a value for `:off`; NULL where no row could be switched off."""
    if bundles is None:
        return None
    if not bundles and not connection.execute("SELECT EXISTS (SELECT 1 FROM rows WHERE enabled = 0)").fetchone()[0]:
        return None
    return listed(bundles)


def listed(names: Collection[str] | None) -> str | None:
    """Names as one value for SQLite."""
    return None if names is None else json.dumps([bound(name) for name in names], ensure_ascii=False)


def _match(tier: Tier, query: Query, vocabulary: Vocabulary) -> str:
    """The rows of a tier that belong to no better one."""
    prefix = f'"{BEGINNING}{query.squeezed}"'
    if tier is Tier.PREFIX:
        return prefix
    words = " AND ".join(f'"{word}"' for word in query.words)
    if tier is Tier.WORD:
        return f"({words}) NOT {prefix}"
    likely = " AND ".join(_likely(word, vocabulary) for word in query.words)
    return f"(({likely}) NOT ({words})) NOT {prefix}"


def _likely(word: str, vocabulary: Vocabulary) -> str:
    """The rows with a word that begins so, or that it nearly is."""
    longer = vocabulary.beginning(word, MAX_BEGINNING + 1)
    # Where few words begin so they are quicker: for a beginning all their rows are gathered before the first one is given.
    begins = [f'"{word}"*'] if len(longer) > MAX_BEGINNING else [f'"{other}"' for other in longer]
    near = [f'"{other}"' for other in vocabulary.near(word)]
    return f"({' OR '.join(begins + near)})" if begins or near else f'"{word}"'


def scan_words(
    connection: sqlite3.Connection,
    query: Query,
    vocabulary: Vocabulary,
    *,
    after: Hit | None,
    limit: int,
    off: Collection[str] | None,
) -> list[Hit]:
    """The same hits as `search_rows` gives, found without full-text search by looking at every row."""
    likely = [{word, *vocabulary.near(word)} for word in query.words]
    rows = connection.execute(SCANNED_WORDS, {"off": switched_off(connection, off)})
    tiers = ((id_, modified_at, _tier(set(listed.split()), query, likely)) for id_, modified_at, listed in rows)
    hits = (Hit(id=id_, tier=tier, modified_at=modified_at) for id_, modified_at, tier in tiers if tier is not None)
    return nsmallest(limit, (hit for hit in hits if after is None or order(hit) > order(after)), key=order)


def _tier(words: set[str], query: Query, likely: list[set[str]]) -> Tier | None:
    """How well a row with these words fits; `likely` has for each word of the query those that it nearly is."""
    if BEGINNING + query.squeezed in words:
        return Tier.PREFIX
    if words.issuperset(query.words):
        return Tier.WORD
    for word, others in zip(query.words, likely, strict=True):
        if words.isdisjoint(others) and not any(other.startswith(word) for other in words):
            return None
    return Tier.FUZZY


def count_stems(connection: sqlite3.Connection, stems: Iterable[str]) -> Counter[str]:
    """How many rows have each of the stems; how many there are in all is the number of those that have ANY."""
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
    """The rows that answer a question best, without those that are switched off unless `off` is None."""
    ideas = [idea for idea in relevance.ideas if idea]
    concerned = sum(frequencies[each] for idea in ideas for each in idea)
    if min(concerned, frequencies[ANY]) <= MAX_RANKED:
        statement, enough = RANKED, MAX_CLOSE
        matches = iter([_one_of(each for idea in ideas for each in idea)])
    else:
        statement, enough = NEWEST, MAX_CLOSE_OF_MANY
        matches = _matches(_telling_words(ideas, frequencies), frequencies)
    wanted = {"limit": enough, "off": switched_off(connection, off)}
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
    """The rows that answer a question best, found without full-text search by looking at every row."""
    rows = connection.execute(SCANNED_TEXTS, {"off": switched_off(connection, off)})
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
    """The rarest words of the question, each for its idea, without those that say little unless there are no others."""
    words = {max(idea, key=lambda each: (idea[each], -frequencies[each])) for idea in ideas}
    in_order = sorted(words, key=lambda word: (frequencies[word], word))
    telling = [word for word in in_order if frequencies[word] * COMMON <= frequencies[ANY]]
    return (telling if len(telling) > 1 else in_order)[:MAX_WORDS]


def _matches(words: list[str], frequencies: Mapping[str, int]) -> Iterator[str]:
    """What to look for, one after the other: rare words, three of them, two in a name, two anywhere, any."""
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
