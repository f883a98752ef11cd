"""What a search for typed words asks the tables of an index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.search.nouns import Hit, Tier
from toolcrib.search.places import place_behind
from toolcrib.search.queries import TIERS, Query
from toolcrib.search.shelf import BEGINNING, bound
from toolcrib.search.words import moment

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from toolcrib.search.vocabulary import Vocabulary

# How many words that begin alike are looked for one by one.
MAX_BEGINNING = 64


def is_on(place: str) -> str:
    """The condition that a row is switched on, and its bundle too; `:off` lists those that are not, or is NULL for any row."""
    return f"""(:off IS NULL OR EXISTS (
        SELECT 1 FROM rows AS it WHERE it.place = {place} AND it.enabled AND it.bundle NOT IN (SELECT value FROM json_each(:off))
    ))"""  # noqa: S608 - put together from words of our own


# Read along the full-text index, which gives places in their order and stops with the last row of the page.
SEARCH = f"""
SELECT rows.id, rows.modified_at FROM words CROSS JOIN rows ON rows.place = words.rowid
WHERE words MATCH :match AND words.rowid >= :first AND {is_on("words.rowid")}
ORDER BY words.rowid LIMIT :limit
"""  # noqa: S608 - put together from words of our own


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
