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
    from collections.abc import Iterator, Mapping

# C0, C1 and format characters, except newline, carriage return and tab, which are harmless.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_JOINERS = frozenset("\u200c\u200d")
# The first word of the names of letters that no joiner ever joins.
_UNJOINED = frozenset(
    (
        *(
            "LATIN",
            "GREEK",
            "COPTIC",
            "CYRILLIC",
            "ARMENIAN",
            "HEBREW",
            "GEORGIAN",
            "CHEROKEE",
            "ETHIOPIC",
            "THAI",
            "LAO",
        ),
        *("CJK", "HANGUL", "HIRAGANA", "KATAKANA", "BOPOMOFO", "FULLWIDTH", "HALFWIDTH", "MATHEMATICAL", "COMBINING"),
    )
)
_SELECTORS = frozenset("\ufe0e\ufe0f")
# Symbols with an emoji form whose category is that of letters or dashes.
_SYMBOLS = frozenset("\u2139\u3030")
# England, Scotland and Wales.
_TAG_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_ARROWS = frozenset("\u2194\u2195")  # of a shaken and a nodding head
_VIRAMA = 9
MAX_DEPTH = 128
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


def escaped_in(value: object) -> dict[str, str]:
    """The strings and keys of a JSON value by their escaped form, where that differs and is no string of the value itself."""
    strings = set(strings_in(value))
    escaped = {show_hidden(text): text for text in strings}
    return {shown: text for shown, text in escaped.items() if shown not in strings}


def restore_hidden(value: object, escaped: Mapping[str, str], depth: int = 0) -> object:
    """A JSON value with the strings and keys that `escaped_in` found as they were, down to the depth that schemas have."""
    if isinstance(value, str):
        return escaped.get(value, value)
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {escaped.get(key, key): restore_hidden(member, escaped, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [restore_hidden(item, escaped, depth + 1) for item in value]
    return value


def strings_in(value: object) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, dict | list | tuple) else ():
        yield from strings_in(item)
        if isinstance(value, dict):
            yield from strings_in(value[item])


def _find(text: str) -> Iterator[HiddenCharacter]:
    if text.isascii() and text.isprintable():
        return
    in_flags = {offset for found in _TAG_FLAG.finditer(text) for offset in range(*found.span())}
    for found in _HIDDEN.finditer(text):
        offset, character = found.start(), found[0]
        if character in _JOINERS and _joins(text, offset):
            continue
        if character in _SELECTORS and offset and _has_emoji_form(text[offset - 1]):
            continue
        if offset in in_flags:
            continue
        yield HiddenCharacter(offset, character)


def _has_emoji_form(character: str) -> bool:
    return unicodedata.category(character) in {"So", "Sm", "Nd", "Po"} or character in _SYMBOLS


def _joins(text: str, offset: int) -> bool:
    """Whether a joiner is between two letters or marks of a script that has joiners, or two symbols, or ends a letter."""
    if offset and unicodedata.combining(text[offset - 1]) == _VIRAMA:
        return True  # as in Malayalam, also at the end of a word
    neighbours = text[max(0, offset - 1) : offset] + text[offset + 1 : offset + 2]
    return len(neighbours) == 2 and all(map(_is_joined, neighbours))  # noqa: PLR2004 - one on each side


def _is_joined(character: str) -> bool:
    category = unicodedata.category(character)
    if category[0] not in "LM":
        return (category in {"So", "Sk"} and not character.isascii()) or character in _ARROWS
    return unicodedata.name(character, "").replace("-", " ").partition(" ")[0] not in _UNJOINED


def _escape(character: str) -> str:
    number = ord(character)
    if number < _SMALL:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _BASIC else f"\\U{number:08x}"
