"""Texts of others in a text of ours: marked as quotations, with everything visible that is not drawn."""

from __future__ import annotations

import json
import re

from toolcrib.lib.hidden_text import show_hidden

_TICKS = re.compile(r"`{3,}")


def quote(text: str) -> str:
    """The text, every line of it marked as a quotation."""
    return "".join(
        f"> {line}".rstrip() + "\n" for line in show_hidden(text.replace("\r\n", "\n")).strip("\n").split("\n")
    )


def fence(language: str, text: str) -> str:
    """A block of code that no line of its text can close."""
    ticks = "`" * max((len(found) + 1 for found in _TICKS.findall(text)), default=3)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def on_one_line(text: str) -> str:
    """The text where it stands in a line of ours, which it cannot end."""
    return " ".join(show_hidden(text).split())


def to_json(value: object) -> str:
    """The value as JSON for people; what is not drawn stands in escapes."""
    plain = json.dumps(value, indent=2, ensure_ascii=False)
    return plain if show_hidden(plain) == plain else json.dumps(value, indent=2)
