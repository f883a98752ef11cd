"""What a question in plain words asks the tables of an index.

First the full-text index names the rows that have most of the question's words, then each of these is looked at closely. Where a
question concerns few rows all of them are ranked; where it concerns many, those count that have several of its words.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.search.finding import is_on, listed, switched_off
from toolcrib.search.nouns import Hit, Tier
from toolcrib.search.queries import by_relevance
from toolcrib.search.relevance import Document
from toolcrib.search.shelf import ANY

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from toolcrib.search.relevance import Relevance

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

RANKED = f"""
SELECT rowid, NULL FROM texts WHERE texts MATCH :match AND {is_on("texts.rowid")} ORDER BY bm25(texts, 2, 1, 1, 0.5) LIMIT :limit
"""  # noqa: S608 - put together from words of our own
NEWEST = f"""
SELECT rowid, NULL FROM texts WHERE texts MATCH :match AND {is_on("texts.rowid")} ORDER BY rowid LIMIT :limit
"""  # noqa: S608 - put together from words of our own


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


def _hit(connection: sqlite3.Connection, place: int, relevance: Relevance) -> Hit:
    id_, modified_at = connection.execute("SELECT id, modified_at FROM rows WHERE place = ?", (place,)).fetchone()
    fields = connection.execute("SELECT * FROM texts WHERE rowid = ?", (place,)).fetchone()
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
