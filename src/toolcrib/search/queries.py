"""What was typed, and how well a tool fits it.

A tool fits as PREFIX if its slug, name or display name begins with what was typed; as WORD if every word that was typed is
one of its words, in whichever text; as FUZZY if every word that was typed is, begins or nearly is one of its words.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.search.nouns import Hit, Tier
from toolcrib.search.words import MAX_WORD, moment, words_in_order

MAX_LETTERS = 200
MAX_WORDS = 16

TIERS = (Tier.PREFIX, Tier.WORD, Tier.FUZZY)


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed: its words, and all of it squeezed into one."""

    words: tuple[str, ...]
    squeezed: str


def read_query(text: str) -> Query | None:
    """Take apart what was typed, up to a bound; None if there is no word in it."""
    words = words_in_order(text[:MAX_LETTERS])[:MAX_WORDS]
    return Query(tuple(dict.fromkeys(words)), "".join(words)[:MAX_WORD]) if words else None


def order(hit: Hit) -> tuple[int, int, str]:
    """By what hits are sorted: the better tier, then the newer, then the smaller id."""
    return TIERS.index(hit.tier), -moment(hit.modified_at), hit.id


def by_relevance(hit: Hit) -> tuple[float, int, str]:
    """By what the answers to a question are sorted: the more relevant, then the newer, then the smaller id."""
    return -hit.score, -moment(hit.modified_at), hit.id
