"""Find invisible characters, which a model or a terminal interprets but a person does not see, and escape them.

Zero-width, bidirectional, tag, private-use and control characters, fillers and lone surrogates are hidden. Those that scripts
and emoji need are not: joiners between letters of such scripts, variation selectors after a symbol, and the three flags that
are spelled with tags.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# C0, C1 and format characters, except newline, carriage return and tab, which are harmless.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_JOINERS = frozenset("\u200c\u200d")
_SELECTORS = frozenset("\ufe0e\ufe0f")
# England, Scotland and Wales.
_TAG_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_SMALL = 0x100
_BASIC = 0x1_0000


class HiddenCharacter(NamedTuple):
    """An invisible character, and its offset."""

    offset: int
    character: str

    def __str__(self) -> str:
        name = unicodedata.name(self.character, "control character")
        return f"U+{ord(self.character):04X} ({name.lower()}) at {self.offset}"


def find_hidden(text: str) -> list[HiddenCharacter]:
    """Every hidden character of the text."""
    return list(_find(text))


def show_hidden(text: str) -> str:
    """The text with every hidden character written as an escape sequence of Python."""
    shown: list[str] = []
    end = 0
    for offset, character in _find(text):
        shown += (text[end:offset], _escape(character))
        end = offset + 1
    return "".join((*shown, text[end:])) if shown else text


def drop_hidden(text: str) -> str:
    """The text without its hidden characters."""
    hidden = {offset for offset, _ in _find(text)}
    return "".join(letter for offset, letter in enumerate(text) if offset not in hidden) if hidden else text


def show_hidden_in(value: object) -> object:
    """A JSON value with the hidden characters of every string and key escaped."""
    if isinstance(value, str):
        return show_hidden(value)
    if isinstance(value, dict):
        return {
            show_hidden(key) if isinstance(key, str) else key: show_hidden_in(member) for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [show_hidden_in(item) for item in value]
    return value


def _find(text: str) -> Iterator[HiddenCharacter]:
    if text.isascii() and text.isprintable():
        return
    in_flags = {offset for found in _TAG_FLAG.finditer(text) for offset in range(*found.span())}
    for found in _HIDDEN.finditer(text):
        offset, character = found.start(), found[0]
        if character in _JOINERS and _joins(text, offset):
            continue
        if character in _SELECTORS and offset and unicodedata.category(text[offset - 1]) in {"So", "Sm", "Nd", "Po"}:
            continue
        if offset in in_flags:
            continue
        yield HiddenCharacter(offset, character)


def _joins(text: str, offset: int) -> bool:
    """Whether a joiner is between two non-ASCII letters, marks or symbols, as some scripts and emoji need it."""
    neighbours = text[max(0, offset - 1) : offset] + text[offset + 1 : offset + 2]
    return len(neighbours) == 2 and all(  # noqa: PLR2004 - one on each side
        not letter.isascii()
        and (
            unicodedata.category(letter)[0] in "LM"
            or unicodedata.category(letter) in {"So", "Sk"}
            or letter in _SELECTORS
        )
        for letter in neighbours
    )


def _escape(character: str) -> str:
    number = ord(character)
    if number < _SMALL:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _BASIC else f"\\U{number:08x}"
