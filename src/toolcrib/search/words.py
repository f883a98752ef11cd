"""Text taken apart into words, the same way for what is kept and for what is typed.

Words are told apart by what stands between them, by dashes and underscores, and by capitals inside: `readFile`, `read_file` and
`read-file` are the words `read` and `file`, and unsplit the word `readfile`. Case and accents do not count. Scripts that
write no spaces have a word per sign.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.search.places import END_OF_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.search.nouns import Row

MAX_WORD = 64
# What one field of a tool adds to the index; what stands further back is not searched.
MAX_FIELD = 20_000

_RUN = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[-_]")
_SIGN = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_ACCENT = re.compile("[\u0300-\u036f]")


def words_in_order(text: str) -> list[str]:
    """The words of a text, one after the other."""
    return [word for run in _runs(text) for word in _parts(run)]


def words_of(text: str) -> set[str]:
    """The words of a text, and unsplit those that are made of several."""
    return {word for run in set(_runs(text)) for word in _whole_and_parts(run)}


def squeezed(text: str) -> str:
    """The words of a text without anything between them."""
    return "".join(words_in_order(text))[:MAX_WORD]


def names_of(row: Row) -> set[str]:
    """What a tool is called, squeezed."""
    return {squeezed(name) for name in {row.slug, row.name, row.display_name}} - {""}


def all_words_of(row: Row) -> set[str]:
    """Every word by which a tool is found."""
    return words_of("\n".join(text[:MAX_FIELD] for text in texts_of(row))) | names_of(row)


def texts_of(row: Row) -> Iterable[str]:
    """Every text of a tool that is searched."""
    yield from (row.slug, row.name, row.display_name, row.description, *row.tags)
    for name, description in row.parameters:
        yield from (name, description)


@lru_cache(maxsize=4_096)
def moment(time: str) -> int:
    """A time in milliseconds, by which the newest comes first; 0 for what is none."""
    try:
        read = datetime.fromisoformat(time)
        return min(max(0, round((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1_000)), END_OF_TIME)
    except (ValueError, OverflowError):
        return 0


def _runs(text: str) -> list[str]:
    """What stands between spaces and the like, still in one piece."""
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
    """The text with its letters in their plainest form."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
