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

# Written with escapes, because JavaScript reads them too: the web page has the same table, which `make docs` writes.
# Letters and marks of scripts with joiners, without those that are hidden themselves, and symbols that emoji are made of.
_SCRIPTS = (
    r"\u0600-\u061b\u061d-\u0dff\u0f00-\u109f\u1700-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uaaff\uabc0-\uabff"
    r"\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
_SYMBOLS = r"\xa9\xae\u203c\u2049\u2100-\u214f\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# A joiner may follow these at the end of a word too.
_VIRAMAS = r"\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0f84\u1039\u17d2"
_JOINED = rf"[{_SCRIPTS}{_SYMBOLS}]"
_JOINER = r"[\u200c\u200d]"
# England, Scotland and Wales.
_FLAG = (
    r"\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)"
    r"\U000e007f"
)
# C0, C1 and format characters, except newline, carriage return and tab, which are harmless.
_ALWAYS = (
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\uf8ff"
    r"\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_ALONE = rf"(?<![{_VIRAMAS}])(?:(?<!{_JOINED})(?<![{_SYMBOLS}]\ufe0f){_JOINER}|{_JOINER}(?!{_JOINED}))"
_SELECTOR = rf"(?<![0-9#*{_SYMBOLS}])[\ufe0e\ufe0f]"
# Only what the group matches is hidden.
PATTERN = f"{_FLAG}|({_ALWAYS}|{_ALONE}|{_SELECTOR})"
_FOUND = re.compile(PATTERN)
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
    for found in _FOUND.finditer(text):
        if found[1]:
            yield HiddenCharacter(found.start(), found[1])


def _escape(character: str) -> str:
    number = ord(character)
    if number < _SMALL:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _BASIC else f"\\U{number:08x}"
