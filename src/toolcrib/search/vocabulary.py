"""Every word that some tool has, and which of them a word nearly is."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# From how many letters on a word may have one slip, and from how many two; a swap of neighbours counts as one.
ONE_SLIP, TWO_SLIPS = 4, 8
# A word that is nearly more words than this is nearly the first of them only.
MAX_NEAR = 200
# From how many new words on it is quicker to sort all of them than to put each in its place.
MANY_NEW = 100


class Vocabulary:
    """Words, by their lengths and by the letters at their ends.

    A word is nearly another one if a slip of the typist lies between them, in long words two; one of its ends is right. What
    has a digit in it is nearly nothing: numbers are not nearly others.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._in_order: list[str] = []
        self._by_end: defaultdict[tuple[int, str], list[str]] = defaultdict(list)

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def add(self, words: Iterable[str]) -> None:
        """Know these words too."""
        fresh = {word for word in words if word not in self._known}
        self._known |= fresh
        for word in fresh:
            if word.isalpha():
                for end in _ends(word):
                    self._by_end[len(word), end].append(word)
        # A new list each time: another thread may be looking at the old one.
        in_order = self._in_order.copy()
        if len(fresh) < MANY_NEW:
            for word in fresh:
                insort(in_order, word)
        else:
            in_order = sorted(chain(in_order, fresh))
        self._in_order = in_order

    def beginning(self, start: str, limit: int) -> list[str]:
        """The first so many of the known words that begin so."""
        in_order = self._in_order
        first = bisect_left(in_order, start)
        return [word for word in in_order[first : first + limit] if word.startswith(start)]

    def near(self, word: str) -> list[str]:
        """The known words that it nearly is, the nearest first."""
        slips = _slips(word)
        if not slips:
            return []
        from rapidfuzz.distance import OSA
        from rapidfuzz.process import extract

        distances: dict[str, int] = {}
        for length in range(len(word) - slips, len(word) + slips + 1):
            for end in _ends(word):
                found = extract(
                    word, self._by_end.get((length, end), ()), scorer=OSA.distance, score_cutoff=slips, limit=None
                )
                distances.update((other, round(distance)) for other, distance, _ in found if other != word)
        return sorted(distances, key=lambda other: (distances[other], other))[:MAX_NEAR]


def _slips(word: str) -> int:
    if len(word) < ONE_SLIP or not word.isalpha():
        return 0
    return 1 if len(word) < TWO_SLIPS else 2


def _ends(word: str) -> tuple[str, str]:
    return f"{word[0]}-", f"-{word[-1]}"
