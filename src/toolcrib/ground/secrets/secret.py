"""A text that shows itself to nobody who does not ask for it by name."""

from __future__ import annotations

import hmac
import re
from typing import NoReturn

from toolcrib.model.errors import Kind, ToolError

MASK = "***"
MAX_BYTES = 64_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Secret:
    """A secret: masked wherever it is printed, formatted or written down; only `reveal` gives the text."""

    # Neither fields nor a dictionary: what turns objects into JSON must find nothing to write.
    __slots__ = ("_text", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._text = value

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, {MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = (text.encode("utf-8", "surrogatepass") for text in (self._text, other.reveal()))
        # How long the comparison takes tells nothing about how much of it is the same.
        return hmac.compare_digest(mine, theirs)

    __hash__ = None  # type: ignore[assignment]  # a key of a dictionary is compared in whatever time it takes

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied; hand on its name")


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a secret."""
    if not NAME.fullmatch(name):
        # Never quoted: whoever mixes the two up has written the secret itself.
        message = "this cannot be the name of a secret; write letters, digits and '_', at most 64 and no digit first"
        raise ToolError(Kind.VALIDATION, message)


def check_value(name: str, value: str) -> None:
    """Refuse what cannot be a secret, without quoting it."""
    if problem := _problem_of(value):
        raise ToolError(Kind.VALIDATION, f"secret {name}: {problem}")


def _problem_of(value: str) -> str:
    if not value:
        return "there is nothing in it; give at least one letter"
    if "\0" in value:
        return "it holds a NUL; write it as text, such as base64"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is not UTF-8; write it as text, such as base64"
    return f"it has {size} bytes, and {MAX_BYTES} are the most" if size > MAX_BYTES else ""
