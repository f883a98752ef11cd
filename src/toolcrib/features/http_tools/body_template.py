"""Compile the body of a request: text in which values are written by its media type, or a JSON document."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.http_tools.slots import (
    Fill,
    Slot,
    no_value,
    put_in_place,
    read_slots,
    slots_in,
    sole_slot,
    write,
)
from toolcrib.lib.templates import ABSENT, as_json, as_json_letters, as_text, as_url_part
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.features.http_tools.slots import Fills, Lookup, Pieces, Read

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
FORM_TYPE = "application/x-www-form-urlencoded"
LINES_TYPES = frozenset({"application/ndjson", "application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
XML_TYPES = frozenset({"application/xml", "text/xml"})

# Characters that XML 1.0 cannot represent.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_QUOTES = re.compile(r'\\.|(")', re.DOTALL)


class Content(NamedTuple):
    """The bytes of a body, and what they are."""

    data: bytes
    content_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A text that is sent, and the type it is sent as where its author named none."""

    fills: Fills
    content_type: str
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> Content:
        """The body with every slot filled."""
        return Content(_encode(write(self.fills, lookup)), self.content_type)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentBody:
    """A JSON document that is sent, with slots in its strings.

    A string that is one slot becomes the value itself; a member whose value was left out is left out with it. What comes to
    a text is sent as text, and what comes to null is not sent.
    """

    document: object
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> Content | None:
        """The body with every slot filled."""
        value = _fill(self.document, lookup)
        if value is None or value is ABSENT:
            return None
        if isinstance(value, str):
            return Content(_encode(value), TEXT_TYPE)
        return Content(_encode(json.dumps(value, ensure_ascii=False)), JSON_TYPE)


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"holds half of a surrogate pair (character {error.start}); give the whole character"
        raise ToolError(Kind.VALIDATION, message) from None


def compile_body(text: str, content_type: str | None, read: Read = read_slots) -> Body | None:
    """Read the slots of a body; without a type of its author's, what reads as JSON is JSON and the rest is text."""
    if not text:
        return None
    pieces = read(text)
    if content_type is None:
        fills, content_type = _guess(pieces)
    else:
        fills = _in_type(content_type.partition(";")[0].strip().lower(), pieces)
    return Body(fills=fills, content_type=content_type, slots=slots_in(pieces))


def compile_document(document: object, read: Read) -> DocumentBody:
    """Read the slots of every string in a document; the names of members have none."""
    slots: list[Slot] = []

    def compiled(value: object) -> object:
        if isinstance(value, str):
            pieces = read(value)
            slots.extend(slots_in(pieces))
            return _Text(pieces) if slots_in(pieces) else "".join(map(str, pieces))
        if isinstance(value, dict):
            return {name: compiled(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [compiled(item) for item in value]
        return value

    return DocumentBody(document=compiled(document), slots=tuple(slots))


@dataclass(frozen=True, slots=True)
class _Text:
    """A string of a document with slots in it."""

    pieces: Pieces


def _fill(value: object, lookup: Lookup) -> object:
    if isinstance(value, _Text):
        slot = sole_slot(value.pieces)
        return write(put_in_place(value.pieces, as_text), lookup) if slot is None else lookup(slot)
    if isinstance(value, dict):
        filled = {name: _fill(member, lookup) for name, member in value.items()}
        return {name: member for name, member in filled.items() if member is not ABSENT}
    if isinstance(value, list):
        return [_fill_item(item, lookup) for item in value]
    return value


def _fill_item(item: object, lookup: Lookup) -> object:
    """An item of a list cannot be omitted: the indexes of the others would change."""
    value = _fill(item, lookup)
    if value is ABSENT and isinstance(item, _Text):
        raise no_value(slots_in(item.pieces)[0])
    return value


def as_xml(value: object) -> str:
    """Escape a string for XML."""
    import html

    text = as_text(value)
    if found := _NO_XML.search(text):
        raise ToolError(Kind.VALIDATION, f"character {found.start()} of a value cannot stand in XML; leave it out")
    return html.escape(text)


def _guess(pieces: Pieces) -> tuple[Fills, str]:
    """JSON if it is valid; a text that begins like JSON and is not valid is refused."""
    try:
        return _in_json(pieces), JSON_TYPE
    except ToolError:
        if isinstance(pieces[0], str) and pieces[0].lstrip().startswith(("{", "[")):
            raise
        return put_in_place(pieces, as_text), TEXT_TYPE


def _in_type(media_type: str, pieces: Pieces) -> Fills:
    if media_type in {JSON_TYPE, "text/json"} or media_type.endswith("+json"):
        return _in_json(pieces)
    if media_type in LINES_TYPES or media_type.endswith("+ndjson"):
        return _in_json_lines(pieces)
    if media_type in XML_TYPES or media_type.endswith("+xml"):
        return put_in_place(pieces, as_xml)
    if media_type.startswith("multipart/") and slots_in(pieces):
        cure = "send a form or JSON, or leave the slots out"
        raise ToolError(Kind.VALIDATION, f"multipart takes no slots: a value could bring parts of its own; {cure}")
    return put_in_place(pieces, as_url_part if media_type == FORM_TYPE else as_text)


def _in_json_lines(pieces: Pieces) -> Fills:
    """Each line as JSON of its own; no value breaks a line."""
    lines: list[list[str | Slot]] = [[]]
    for piece in pieces:
        first, *rest = piece.split("\n") if isinstance(piece, str) else [piece]
        lines[-1].append(first)
        lines += [[part] for part in rest]
    written = [_in_json(tuple(line)) if any(_is_significant(piece) for piece in line) else () for line in lines]
    return tuple(piece for index, line in enumerate(written) for piece in (("\n", *line) if index else line))


def _is_significant(piece: str | Slot) -> bool:
    return not isinstance(piece, str) or bool(piece.strip())


def _in_json(pieces: Pieces) -> Fills:
    """Each slot in its place: the whole value where JSON expects one or a string is nothing else, letters inside a string.

    For any values the result is JSON with the members that its author wrote.
    """
    fills = tuple(piece for piece in _place(pieces) if piece)
    _check_json(pieces, fills)
    return fills


def _place(pieces: Pieces) -> Iterator[str | Fill]:
    is_inside = is_alone = False
    for index, piece in enumerate(pieces):
        if isinstance(piece, Slot):
            yield Fill(piece, as_json if is_alone or not is_inside else as_json_letters)
            continue
        # The quotes around a slot that is the whole string are dropped: the value is written with its own, or needs none.
        literal = piece[1:] if is_alone else piece
        quotes = [found for found in _QUOTES.finditer(piece) if found[1]]
        is_inside = is_inside != (len(quotes) % 2 == 1)
        opens = is_inside and bool(quotes) and quotes[-1].end() == len(piece)
        is_alone = opens and _closes_at_once(pieces[index + 1 :])
        yield literal[:-1] if is_alone else literal


def _closes_at_once(rest: Pieces) -> bool:
    """Whether a slot comes next, followed by the quote that ends the string."""
    return len(rest) > 1 and isinstance(rest[0], Slot) and isinstance(rest[1], str) and rest[1].startswith('"')


def _check_json(pieces: Pieces, fills: Fills) -> None:
    """Refuse a body that no values make JSON, and one whose values would choose the names of members."""
    marker = "slot"
    while any(marker in piece for piece in pieces if isinstance(piece, str)):
        marker += "-"

    def refuse_slots_in_names(pairs: list[tuple[str, object]]) -> None:
        if any(marker in name for name, _ in pairs):
            raise ToolError(Kind.VALIDATION, "a slot cannot be the name of a member; write the names out")

    sample = "".join(piece if isinstance(piece, str) else piece.place(marker) for piece in fills)
    try:
        json.loads(sample, object_pairs_hook=refuse_slots_in_names, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        cure = "correct it, or name another Content-Type in headers"
        raise ToolError(Kind.VALIDATION, f"is not JSON for any values of its slots; {cure}") from None


def _refuse_constant(word: str) -> object:
    raise ValueError(word)
