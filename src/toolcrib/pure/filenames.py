"""Slugs and versions as names of files: lower-case ASCII, one for each, so that no file system takes two for the same."""

from __future__ import annotations

import hashlib
import re
import string
import sys

LONGEST = 96
HASH_LETTERS = 32

# Before a letter `_` means the capital, before a 0 and up to the next `_` the number of any other letter. Two may meet, three
# never: they stand before the hash of what was cut short.
CUT = "___"

_PLAIN = frozenset(string.ascii_lowercase + string.digits + ".-")
_CAPITALS = frozenset(string.ascii_uppercase)
_ESCAPE = re.compile(r"_0([0-9a-f]{1,6})_|_([a-z])|([a-z0-9.-])")


def to_filename(text: str) -> str:
    """The spelling on disk; what would be too long for a file system keeps its beginning and gets a hash."""
    spelled = "".join(map(_spell, text))
    if text.startswith((".", "-")):  # such names are hidden, or taken for an option
        spelled = _number(text[0]) + spelled[1:]
    if len(spelled) <= LONGEST:
        return spelled
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    return f"{spelled[: LONGEST - HASH_LETTERS - len(CUT)]}{CUT}{digest}"


def from_filename(name: str) -> str | None:
    """What was spelled so; None for what nothing is spelled as, and for what was cut short."""
    pieces = list(_ESCAPE.finditer(name))
    if "".join(piece[0] for piece in pieces) != name:
        return None
    text = "".join(_read(piece) for piece in pieces)
    return text if text and to_filename(text) == name else None


def _spell(letter: str) -> str:
    if letter in _PLAIN:
        return letter
    return f"_{letter.lower()}" if letter in _CAPITALS else _number(letter)


def _number(letter: str) -> str:
    return f"_0{ord(letter):x}_"


def _read(piece: re.Match[str]) -> str:
    if piece[1] is not None:
        number = int(piece[1], 16)
        return chr(number) if number <= sys.maxunicode else ""
    return piece[2].upper() if piece[2] is not None else piece[3]
