"""The search index. Here: its rows, hits and words: split text into words, and find similar words.

Text is split at punctuation, dashes and underscores, and at inner capitals: `readFile`, `read_file` and `read-file` are
the words `read` and `file`, and unsplit the word `readfile`. Case and accents are ignored. In scripts without spaces
every character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class Tier(StrEnum):
    """How well a tool matches typed text, best first; RELEVANCE is for answers to a question."""

    PREFIX = "prefix"
    WORD = "word"
    FUZZY = "fuzzy"
    RELEVANCE = "relevance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A tool in the index.

    `id` is its own, `bundle` that of its bundle. `enabled` is its own switch. Times are RFC 3339 in UTC with
    milliseconds, so that they sort as text. `key` and `stamp` are those of its document in the store; both are empty
    for a tool of this process alone. `parameters` are names with their descriptions. A broken document has a `problem`.
    """

    id: str
    bundle: str
    slug: str
    version: str
    name: str = ""
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    enabled: bool = True
    created_at: str = ""
    modified_at: str = ""
    key: str = ""
    stamp: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A tool that was found, by its id. `distance` orders the fuzzy tier: see SearchQuery.

    A search continues after (tier, distance, modified_at, id) of its last hit.
    """

    id: str
    tier: Tier
    modified_at: str = ""
    score: float = 0.0
    distance: int = 0


# Splitting text into words, and finding similar ones.

MAX_WORD = 64
# How much of one field of a tool is indexed.
MAX_FIELD = 20_000
MAX_LETTERS = 200
MAX_WORDS = 16
# The last millisecond that can be ordered.
END_OF_TIME = 2**42 - 1

# From how many letters on a word may have one slip, and from how many two; a swap of neighbours counts as one.
ONE_SLIP, TWO_SLIPS = 3, 8
# Up to how many letters one at an end is enough.
SHORT = 4
# The distance of a hit whose words all fit, and how many slips in its words are told apart.
WORDS_DISTANCE, MAX_SLIPS = 3, 3
# How many similar words are considered.
MAX_NEAR = 200
# From how many new words on it is faster to sort all of them than to insert each one.
MANY_NEW = 100
# Sorts after every character of a word.
LAST = "\U0010ffff"
# Marks a name, or a prefix of one, among the words; it cannot be part of a word.
BEGINNING = "§"

TIERS = (Tier.PREFIX, Tier.WORD, Tier.FUZZY)

_RUN = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[-_]")
_SIGN = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_ACCENT = re.compile("[\u0300-\u036f]")


def words_in_order(text: str) -> list[str]:
    """The words of a text, in order."""
    return [word for run in _runs(text) for word in _parts(run)]


def words_of(text: str) -> set[str]:
    """The words of a text, and compound words also unsplit."""
    return {word for run in set(_runs(text)) for word in _whole_and_parts(run)}


def squeezed(text: str) -> str:
    """The words of a text, joined."""
    return "".join(words_in_order(text))[:MAX_WORD]


def names_of(row: Row) -> set[str]:
    """The names of a tool, squeezed."""
    return {squeezed(name) for name in {row.slug, row.name, row.display_name}} - {""}


def plain_words_of(row: Row) -> set[str]:
    """Every word of the texts of a tool."""
    return words_of("\n".join(text[:MAX_FIELD] for text in texts_of(row)))


def texts_of(row: Row) -> Iterable[str]:
    """Every searched text of a tool."""
    yield from (row.slug, row.name, row.display_name, row.description, *row.tags)
    for name, description in row.parameters:
        yield from (name, description)


@lru_cache(maxsize=4_096)
def moment(time: str) -> int:
    """A time in milliseconds; 0 if it is invalid."""
    try:
        read = datetime.fromisoformat(time)
        return min(max(0, round((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1_000)), END_OF_TIME)
    except (ValueError, OverflowError):
        return 0


def _runs(text: str) -> list[str]:
    """Runs of letters and digits with dashes and underscores between them."""
    return _RUN.findall(_plain(text))


@lru_cache(maxsize=65_536)
def _parts(run: str) -> tuple[str, ...]:
    parts = (part.casefold()[:MAX_WORD] for part in _CAPITAL.split(run))
    if run.isascii():
        return tuple(part for part in parts if part)
    return tuple(word for part in parts for word in _SIGN.split(part) if word)


@lru_cache(maxsize=65_536)
def _whole_and_parts(run: str) -> tuple[str, ...]:
    parts = _parts(run)
    return parts if len(parts) == 1 else (*parts, "".join(parts)[:MAX_WORD])


def _plain(text: str) -> str:
    """The text without accents, in compatibility form."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What was typed: its words, and all of it squeezed into one.

    A tool is a PREFIX hit if its slug, name or display name begins with what was typed; a WORD hit if every typed word is one
    of its words, in any text; a FUZZY hit if every typed word is, begins or nearly is one of its words, or if all of it is
    nearly one of its names, or a word that one begins with. The distance of a FUZZY hit is the number of slips between what
    was typed and such a name (1 or 2); else WORDS_DISTANCE, plus the slips in all words together, of which more than
    MAX_SLIPS count alike.
    """

    words: tuple[str, ...]
    squeezed: str


def read_query(text: str) -> SearchQuery | None:
    """Parse typed text, up to a bound; None if it has no word."""
    words = words_in_order(text[:MAX_LETTERS])[:MAX_WORDS]
    return SearchQuery(tuple(dict.fromkeys(words)), "".join(words)[:MAX_WORD]) if words else None


def order(hit: Hit) -> tuple[int, int, int, str]:
    """The sort key of hits: the better tier, then the smaller distance, then the newer, then the smaller id."""
    return TIERS.index(hit.tier), hit.distance, -moment(hit.modified_at), hit.id


def by_relevance(hit: Hit) -> tuple[float, int, str]:
    """The sort key of answers: the more relevant, then the newer, then the smaller id."""
    return -hit.score, -moment(hit.modified_at), hit.id


class Vocabulary:
    """Words and names, by their lengths and by the characters at their ends.

    Names are added with the mark BEGINNING. They are kept apart: most tools have a name of their own, and rows whose name
    begins with a text are found by that text alone, without the names.

    A word is near another one if one slip of the typist lies between them, in long words two, and one of its ends is right:
    its first or last character, in a word of more than SHORT two of them. A number is near no other: neither a word without
    letters, nor one whose digits are others.
    """

    def __init__(self) -> None:
        # Without the mark, so that a name is in memory once.
        self._known_words: set[str] = set()
        self._known_names: set[str] = set()
        self._words: list[str] = []
        self._names: list[str] = []
        self._by_end: defaultdict[tuple[int, str], list[str]] = defaultdict(list)

    def __contains__(self, word: object) -> bool:
        """Whether it was added, as it is: a name has its mark."""
        if isinstance(word, str) and word.startswith(BEGINNING):
            return word[1:] in self._known_names
        return word in self._known_words

    def add(self, words: Iterable[str]) -> None:
        """Add words, and names with their mark."""
        plain: set[str] = set()
        names: set[str] = set()
        for word in words:
            if word.startswith(BEGINNING):
                names.add(word[1:])
            else:
                plain.add(word)
        plain -= self._known_words
        names -= self._known_names
        for word in chain(plain, names - plain):
            if not (word.isdigit() or self.has(word)):
                for end in chain(_ends(word, 1), _ends(word, 2)):
                    self._by_end[len(word), end].append(word)
        self._words = _with_more(self._words, plain)
        self._names = _with_more(self._names, names)
        self._known_words |= plain
        self._known_names |= names

    def has(self, word: str) -> bool:
        """Whether a row may have this word; if not, no row has it."""
        return word in self._known_words or word in self._known_names

    def has_name(self, start: str) -> bool:
        """Whether a row may have a name with this prefix; if not, no row has one."""
        names = self._names
        first = bisect_left(names, start)
        return first < len(names) and names[first].startswith(start)

    def beginning(self, start: str, limit: int) -> list[str]:
        """The first `limit` known words with this prefix, without names."""
        words = self._words
        first = bisect_left(words, start)
        return words[first : bisect_left(words, start + LAST, first, min(first + limit, len(words)))]

    def near(self, word: str) -> dict[str, int]:
        """The known words near this one with their distances, nearest first."""
        slips = _slips(word)
        if not slips:
            return {}
        from rapidfuzz.distance import OSA
        from rapidfuzz.process import extract

        digits, ends = _digits(word), _ends(word, 1 if len(word) <= SHORT else 2)
        distances: dict[str, int] = {}
        for length in range(len(word) - slips, len(word) + slips + 1):
            for end in ends:
                found = extract(
                    word, self._by_end.get((length, end), ()), scorer=OSA.distance, score_cutoff=slips, limit=None
                )
                distances.update(
                    (other, round(distance))
                    for other, distance, _ in found
                    if other != word and _is_same_number(digits, _digits(other))
                )
        nearest = sorted(distances, key=lambda other: (distances[other], other))[:MAX_NEAR]
        return {other: distances[other] for other in nearest}


def _with_more(words: list[str], fresh: Collection[str]) -> list[str]:
    """Sorted words with more; a new list, as another thread may be reading the old one."""
    if not fresh:
        return words
    if len(fresh) >= MANY_NEW:
        return sorted(chain(words, fresh))
    more = words.copy()
    for word in fresh:
        insort(more, word)
    return more


def _slips(word: str) -> int:
    if len(word) < ONE_SLIP or word.isdigit():
        return 0
    return 1 if len(word) < TWO_SLIPS else 2


def _ends(word: str, size: int) -> tuple[str, str]:
    return f"{word[:size]}-", f"-{word[-size:]}"


def _digits(word: str) -> str:
    return "" if word.isalpha() else "".join(filter(str.isdigit, word))


def _is_same_number(typed: str, known: str) -> bool:
    """Whether the digits may be meant for each other: a slip adds or loses one, and turns none into another."""
    return typed == known or len(typed) != len(known)
