"""What a text says to those who read escapes in it: per cent signs, backslashes, entities, broken lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'/\\bfnrt]))")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def readings(text: str) -> Iterator[str]:
    """Each other way to read the text, taken once; none of a text without any escape."""
    for read in (_unquoted, _unescaped, _without_entities):
        other = read(text)
        if other != text:
            yield other


def joined(text: str) -> str:
    """The text on one line and without blanks, as base64 is meant that mail breaks into several lines."""
    return "".join(text.split()) if "\n" in text or "\r" in text else ""


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text) if "%" in text else text


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # Two halves of a surrogate pair become the one letter that they stand for.
    return _ESCAPE.sub(_letter, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _letter(found: re.Match[str]) -> str:
    number = found[1] or found[2]
    return chr(int(number, 16)) if number else _LETTERS.get(found[3], found[3])


def _without_entities(text: str) -> str:
    import html

    return html.unescape(text) if "&" in text else text
