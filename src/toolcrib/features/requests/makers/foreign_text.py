"""What a program prints while it works: told line by line, and its end kept."""

from __future__ import annotations

import asyncio
import json
import os
import re
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from toolcrib.lib.presentation import HIDDEN, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# MERGED toolcrib.makers.quoting

# Texts of others in a text of ours: marked as quotations, with everything visible that is not drawn.

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


MAX_LINES = 200
MAX_LINE_LETTERS = 300
# More than is shown, so that a secret at the cut is whole when it is looked for.
KEPT_BYTES = 64 * 1024
_LONGEST_LINE_BYTES = 8 * 1024
_READ_BYTES = 64 * 1024
# As much as a pipe can be made to hold.
_LAST_READS = 16
_OPEN = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def hear(self, data: bytes) -> None:
        """Take in what comes next."""
        self._kept += data
        del self._kept[:-KEPT_BYTES]

    def show(self, letters: int, hide: Callable[[str], str]) -> str:
        """Its last letters, fit to be shown; hidden before it is cut, so that no half of a secret is left."""
        return hide(drop_hidden(self._kept.decode("utf-8", "replace"))).strip()[-letters:]


class Lines:
    """The lines of a stream, each told once it is whole; so many of them, and so much of each."""

    def __init__(self, say: Callable[[str], None], hide: Callable[[str], str]) -> None:
        self._say = say
        self._hide = hide
        self._begun = bytearray()
        self._told = 0

    def hear(self, data: bytes) -> None:
        """Take in what comes next."""
        for line in data.splitlines(keepends=True):
            if self._told > MAX_LINES:
                return
            room = _LONGEST_LINE_BYTES - len(self._begun)
            self._begun += line[:room]
            if line.endswith((b"\n", b"\r")):
                self.finish()

    def finish(self) -> None:
        """Tell the line that was begun."""
        text = self._hide(drop_hidden(self._begun.decode("utf-8", "replace"))).strip()[:MAX_LINE_LETTERS]
        self._begun.clear()
        if not text or self._told > MAX_LINES:
            return
        self._told += 1
        self._say(text if self._told <= MAX_LINES else "it prints more, which is not shown")


class Pipe:
    """A pipe with a name in a folder, for a program that opens it; whatever comes through is heard in the running loop."""

    def __init__(self, folder: Path, hear: Callable[[bytes], None]) -> None:
        self.path = folder / f".printing-{os.urandom(8).hex()}"
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        os.mkfifo(self.path, 0o600)
        # For writing too: nobody who opens it waits for us, and it does not end before we do.
        self._descriptor = os.open(self.path, _OPEN)
        self._loop.add_reader(self._descriptor, self._take)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Hear what is left in it, and let go of it."""
        self._loop.remove_reader(self._descriptor)
        for _ in range(_LAST_READS):
            if not self._take():
                break
        os.close(self._descriptor)
        with suppress(OSError):  # the program has removed it
            self.path.unlink()

    def _take(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        self._hear(data)
        return True
