"""Mask secrets in the chunks of a stream, also a secret that is split over several chunks.

A possible beginning of a secret is held back until the following chunk shows that it is none. Pieces of one text are held back
character by character; any other chunk is held back whole, and each of its strings continues in the string at the same path of
the next chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Path = tuple[object, ...]

# The longest escape of one character: `&#x0000a0;`.
LONGEST_ESCAPE = 10
HEAD = 4
# The maximum of chunks that are held back; beyond it, a possible beginning of a secret is masked.
MAX_HELD = 256

_QUOTED = re.compile(r"%[0-7][0-9a-fA-F]|(?:%[89a-fA-F][0-9a-fA-F])+")
# A character that several escapes spell may be cut between them; half of it reads as something else.
_QUOTED_CUT = re.compile(
    r"(?:%[cCdD][0-9a-fA-F]|%[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F])?|%[fF][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){0,2})"
    r"(?:%[0-9a-fA-F]?)?$|%[0-9a-fA-F]?$"
)
_ESCAPED = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[\"'/\\bfnrt]"
)
_ESCAPED_CUT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?$|\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?$"
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,7});")
_ENTITY_CUT = re.compile(r"&(?:#?[xX]?[A-Za-z0-9]{0,8})?$")
_BLANKS = re.compile(r"\s+")


class Masks(Protocol):
    """The interface of `Masking`, which knows the secrets and masks them in complete values."""

    def beginnings(self) -> Beginnings:
        """Finds the beginnings of secrets."""

    def hide(self, text: str) -> str:
        """The text, masked."""

    def hide_in(self, value: object) -> object:
        """A JSON value, masked."""


class ChunkMask:
    """Masks the chunks of one stream: `feed` each, and `flush` after the last.

    Chunks that are pieces of one text may come out in other pieces.
    """

    def __init__(self, masking: Masks, mask: str, *, is_one_text: bool) -> None:
        self._is_one_text = is_one_text
        self._masking = masking
        self._mask = mask
        self._beginnings = masking.beginnings()
        self._text = ""
        self._values: list[object] = []

    def feed(self, value: object) -> list[object]:
        """Take the next chunk; returns the chunks that can be shown now."""
        self._beginnings = self._masking.beginnings()
        if isinstance(value, str) and self._is_one_text:
            shown = self._release_values()
            self._text += value
            held = self._held_from(self._text)
            ready, self._text = self._text[:held], self._text[held:]
            return [*shown, *([self._masking.hide(ready)] if ready else [])]
        shown = self._release_text()
        self._values.append(value)
        texts = map("".join, self._texts().values())
        if not any(self._held_from(text) < len(text) for text in texts):
            return [*shown, *self._release_values()]
        if len(self._values) < MAX_HELD:
            return shown
        return [*shown, *self._release_values(close=True)]

    def hide_split(self, values: list[object]) -> list[object]:
        """A list whose items may be the pieces of a stream, with what is split over them masked; its length stays."""
        self._values = values
        return self._take_values()

    def flush(self) -> list[object]:
        """The chunks that are still held back; the stream has ended, so they contain no secret."""
        return [*self._release_text(), *self._release_values()]

    def _release_text(self) -> list[object]:
        text, self._text = self._text, ""
        return [self._masking.hide(text)] if text else []

    def _release_values(self, *, close: bool = False) -> list[object]:
        """The values that were held back, masked; with `close` the beginning of a secret is masked too."""
        return [self._masking.hide_in(value) for value in self._take_values(close=close)]

    def _take_values(self, *, close: bool = False) -> list[object]:
        """The values that were held back, with the secrets that are split over them masked."""
        values, texts = self._values, self._texts()
        self._values = []
        split: dict[Path, str] = {}
        for path, parts in texts.items():
            text = "".join(parts)
            whole = self._masking.hide(text)
            if whole == text and not close:
                continue
            if close and self._held_from(text) < len(text):
                split[path] = self._mask
            elif len(parts) > 1 and whole != "".join(map(self._masking.hide, parts)):
                split[path] = whole
        return [_replaced(value, split) for value in values] if split else values

    def _texts(self) -> dict[Path, list[str]]:
        """The strings in the held values by their path."""
        texts: dict[Path, list[str]] = {}
        for value in self._values:
            for path, text in _leaves(value):
                texts.setdefault(path, []).append(text)
        return texts

    def _held_from(self, text: str) -> int:
        """The position of the first possible beginning of a secret; the length of the text if there is none."""
        # A complete secret may overlap with what is held back, so twice its length is searched.
        tail = text[-2 * LONGEST_ESCAPE * self._beginnings.longest :]
        before = len(text) - len(tail)
        found = list(_read(tail))
        held = min(starts[self._beginnings.first(read)] for read, starts in found)
        if held < len(tail):
            for read, starts in found:
                for first, last in self._beginnings.complete(read):
                    if starts[first] < held < starts[last]:
                        held = starts[first]
        return before + held


class Beginnings:
    """Finds prefixes of many texts at the end of a text."""

    def __init__(self, spelled: tuple[str, ...]) -> None:
        self.spelled = spelled
        self.longest = max(map(len, spelled), default=1)
        self._sorted = sorted(spelled)
        self._heads = {text[:length] for text in spelled for length in range(1, HEAD + 1)}

    def first(self, text: str) -> int:
        """The position from which the text is a proper prefix of one; the length of the text if there is none."""
        for place in range(max(0, len(text) - self.longest + 1), len(text)):
            if text[place : place + HEAD] in self._heads:
                rest = text[place:]
                at = bisect_left(self._sorted, rest)
                # A complete one may itself be the beginning of a longer one.
                if any(known.startswith(rest) and known != rest for known in self._sorted[at : at + 2]):
                    return place
        return len(text)

    def complete(self, text: str) -> Iterator[tuple[int, int]]:
        """The start and end of each occurrence in the text."""
        for known in self.spelled:
            place = text.find(known)
            while place >= 0:
                yield place, place + len(known)
                place = text.find(known, place + len(known))


def _read(text: str) -> Iterator[tuple[str, list[int] | range]]:
    """Every decoding of a text, with the position in the text of each of its characters, and of its end."""
    yield text, range(len(text) + 1)
    if "%" in text:
        yield _decode(text, _QUOTED, _QUOTED_CUT, _unquote)
    if "\\" in text:
        yield _decode(text, _ESCAPED, _ESCAPED_CUT, _unescape)
    if "&" in text:
        yield _decode(text, _ENTITY, _ENTITY_CUT, _without_entity)
    if "\n" in text or "\r" in text:
        yield _decode(text, _BLANKS, _BLANKS, lambda _: "")


def _decode(
    text: str, escape: re.Pattern[str], cut: re.Pattern[str], decode: Callable[[str], str]
) -> tuple[str, list[int]]:
    """The text with its escapes decoded; one that is cut off at the end is left out."""
    unfinished = cut.search(text) if cut is not escape else None
    end = len(text) if unfinished is None else unfinished.start()
    letters: list[str] = []
    starts: list[int] = []
    place = 0
    for found in escape.finditer(text, 0, end):
        starts += range(place, found.start())
        letters.append(text[place : found.start()])
        decoded = decode(found[0])
        starts += [found.start()] * len(decoded)
        letters.append(decoded)
        place = found.end()
    starts += range(place, end)
    letters.append(text[place:end])
    return "".join(letters), [*starts, end]


def _unquote(escape: str) -> str:
    return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")


def _unescape(escape: str) -> str:
    import json

    plain = escape.replace("\\x", "\\u00") if escape[1] == "x" else escape
    return "'" if escape[1] == "'" else str(json.loads(f'"{plain}"'))


def _without_entity(escape: str) -> str:
    import html

    return html.unescape(escape)


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every string in a JSON value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, (*path, name))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))


def _replaced(value: object, split: dict[Path, str], path: Path = ()) -> object:
    """The value with the text of a path put into the first string there; the strings that follow it become empty."""
    if isinstance(value, str) and path in split:
        text, split[path] = split[path], ""
        return text
    if isinstance(value, dict):
        return {name: _replaced(part, split, (*path, name)) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(part, split, (*path, number)) for number, part in enumerate(value)]
    return value
