"""Texts of others in a text of ours: marked as quotations, with everything visible that is not drawn."""

from __future__ import annotations

import json
import re
import unicodedata

from toolcrib.lib.presentation import HIDDEN, UNSEEN

# What breaks a line beside the newline; the other such letters are control characters.
LINE_BREAKS = frozenset({"Zl", "Zp"})
KEPT = frozenset("\n\t")

_TICKS = re.compile(r"`{3,}")


def quote(text: str) -> str:
    """The text, every line of it marked as a quotation."""
    return "".join(f"> {line}".rstrip() + "\n" for line in show_hidden(text).strip("\n").split("\n"))


def fence(language: str, text: str) -> str:
    """A block of code that no line of its text can close."""
    ticks = "`" * max((len(found) + 1 for found in _TICKS.findall(text)), default=3)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def show_hidden(text: str) -> str:
    """The text with everything written out that is not drawn, or that could begin a line without being seen to."""
    return "".join(_spell(letter) if _is_hidden(letter) else letter for letter in text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """The text where it stands in a line of ours, which it cannot end."""
    return " ".join(show_hidden(text).split())


def drop_hidden(text: str) -> str:
    """The text without what a terminal obeys instead of showing it, and without what it does not show."""
    return "".join(letter for letter in text if not _is_hidden(letter))


def to_json(value: object) -> str:
    """The value as JSON for people; what is not drawn stands in escapes."""
    plain = json.dumps(value, indent=2, ensure_ascii=False)
    return plain if show_hidden(plain) == plain else json.dumps(value, indent=2)


def _is_hidden(letter: str) -> bool:
    if letter in KEPT:
        return False
    return unicodedata.category(letter) in HIDDEN | LINE_BREAKS or UNSEEN.match(letter) is not None


def _spell(letter: str) -> str:
    return f"<U+{ord(letter):04X}>"
