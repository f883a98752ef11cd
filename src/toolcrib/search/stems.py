"""Forms of English words brought to one: `translations`, `translated` and `translator` have the stem of `translate`."""

from __future__ import annotations

import re
from functools import lru_cache

# An ending, what stands in its place, and how long the rest must be for it to be one.
_PLURALS = (("sses", "ss", 2), ("ies", "y", 2), ("ches", "ch", 2), ("shes", "sh", 2), ("xes", "x", 2), ("s", "", 3))
_TENSES = (("ying", "y", 2), ("ing", "", 3), ("ied", "y", 2), ("ed", "", 3))
_ENDINGS = (
    ("ization", "", 4),
    ("isation", "", 4),
    ("ations", "", 4),
    ("ation", "", 4),
    ("ator", "", 4),
    ("ative", "", 4),
    ("ize", "", 4),
    ("ise", "", 4),
    ("iz", "", 4),
    ("is", "", 5),
    ("ate", "", 4),
    ("at", "", 4),
    ("ment", "", 4),
    ("ness", "", 4),
    ("able", "", 4),
    ("ible", "", 4),
    ("ively", "", 4),
    ("ally", "", 4),
    ("ly", "", 4),
    ("ity", "", 4),
    ("ion", "", 4),
    ("ive", "", 4),
    ("er", "", 4),
    ("or", "", 4),
    ("al", "", 5),
)
_NO_PLURAL = re.compile(r".*(ss|us|is)")
_DOUBLED = re.compile(r".*([bdgmnprt])\1")
_VOWEL = re.compile(r".*[aeiouy]")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a word; what is short or written in other letters is its own."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - the rules know no shorter words
        return word
    if not _NO_PLURAL.fullmatch(word):
        word = _without(word, _PLURALS)
    shorter = _without(word, _TENSES)
    if shorter != word and _VOWEL.match(shorter):
        word = shorter[:-1] if _DOUBLED.fullmatch(shorter) else shorter
    word = _without(word, _ENDINGS)
    if len(word) > 3 and word.endswith("e"):  # noqa: PLR2004 - see above
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 2 else word  # noqa: PLR2004 - see above


def _without(word: str, endings: tuple[tuple[str, str, int], ...]) -> str:
    for ending, instead, rest in endings:
        if word.endswith(ending) and len(word) - len(ending) >= rest:
            return word[: -len(ending)] + instead
    return word
