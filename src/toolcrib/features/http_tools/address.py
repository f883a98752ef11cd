"""Write the URL of a request: values fill parts of its path and its query, and change nothing else.

Scheme, host and port are as the author wrote them, without slots; a script may let one slot be the whole URL.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from toolcrib.features.http_tools.slots import (
    Fill,
    no_value,
    put_in_place,
    reader_of,
    slots_in,
    sole_slot,
    write,
    write_if_given,
)
from toolcrib.lib.http_syntax import MAX_URL, Url, parse_url
from toolcrib.lib.templates import ABSENT, as_url_part
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Spelling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.http_tools.slots import Fills, Lookup, Pieces, Slot

STAND_IN = "-"

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
# Scheme, host and port written out by the author, and closed by what follows them.
_AUTHORITY = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_CLOSED_AUTHORITY = re.compile(r"https?://[^/?#]+[/?#]", re.IGNORECASE)
_PARTS = re.compile(r"[/\\]")
_DOTS = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the path, between two slashes, with a slot in it."""

    fills: Fills

    def write(self, lookup: Lookup) -> str:
        """The part with every slot filled; refuses a value that would lead to another place than its author meant."""
        written = write(self.fills, lookup)
        meant = unquote(written) if "%" in written else written
        # Some servers read an encoded slash like a plain one, so the dots after it count as well.
        if not meant or not _DOTS.isdisjoint(_PARTS.split(meant)):
            message = 'url: a value leaves a part of the path empty, "." or ".."; give another value'
            raise ToolError(Kind.VALIDATION, message)
        return written


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestAddress:
    """Where a request goes.

    `base` is the URL with something in place of the slots, or the URL itself where there are none. `pieces` are path and
    query, `joint` is what `fields` follow: named values, each left out while it is empty.
    """

    base: Url
    pieces: tuple[str | Fill | Segment, ...]
    joint: str
    fields: tuple[tuple[str, Fills], ...]
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> Url:
        """The URL with every slot filled; no value changes how many parts the path has, or what the query's names are."""
        base = self.base
        if not self.slots:
            return base
        target = "".join([piece if isinstance(piece, str) else piece.write(lookup) for piece in self.pieces])
        if self.fields:
            given = [name + value for name, fills in self.fields if (value := write_if_given(fills, lookup))]
            target += self.joint + "&".join(given) if given else ""
        if len(target) > MAX_URL:
            raise ToolError(Kind.VALIDATION, f"url: longer than {MAX_URL} characters once it is filled; give less")
        return Url(scheme=base.scheme, host=base.host, port=base.port, target=target)


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeAddress:
    """A URL that is one slot: its value is checked like any other URL, and `fields` are added to its query."""

    slot: Slot
    fields: tuple[tuple[str, Fills], ...]
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> Url:
        """The URL that the value is."""
        value = lookup(self.slot)
        if value is ABSENT:
            raise no_value(self.slot)
        if not isinstance(value, str):
            raise ToolError(Kind.VALIDATION, "the url is not a text; write an http or https URL in full")
        url = parse_url(value)
        given = [name + field for name, fills in self.fields if (field := write_if_given(fills, lookup))]
        return parse_url(str(url) + _joint(url.target) + "&".join(given)) if given else url


def compile_address(
    url: str, fields: Mapping[str, str], spelling: Spelling = Spelling.DOLLARS
) -> RequestAddress | WholeAddress:
    """Read the slots of a URL and of the values that are added to its query."""
    read = reader_of(spelling)
    values = {name: read(value) for name, value in fields.items()}
    added = tuple((f"{as_url_part(name)}=", _field(value)) for name, value in values.items() if value)
    named = tuple(slot for value in values.values() for slot in slots_in(value))
    whole = sole_slot(read(url)) if spelling is Spelling.BRACES else None
    if whole is not None:
        return WholeAddress(slot=whole, fields=added, slots=(whole, *named))
    pieces = _without_fragment(read(url))
    base = _check_grammar(pieces, spelling)
    path, query = _split(pieces)
    slots = (*slots_in(pieces), *named)
    joint = _joint(base.target)
    if not slots and added:
        target = base.target + joint + "&".join(name + "".join(map(str, value)) for name, value in added)
        base = Url(scheme=base.scheme, host=base.host, port=base.port, target=target)
    return RequestAddress(
        base=base,
        pieces=(*_path(path), *put_in_place(_encoded(query), as_url_part)),
        joint=joint,
        fields=added,
        slots=slots,
    )


def _joint(target: str) -> str:
    """The separator between a target and what is added to its query."""
    return "" if target.endswith(("?", "&")) else "&" if "?" in target else "?"


def _check_grammar(pieces: Pieces, spelling: Spelling) -> Url:
    """The URL with a stand-in for every slot; refuses one whose scheme, host or port is not written out."""
    head = pieces[0] if pieces and isinstance(pieces[0], str) else ""
    if spelling is Spelling.BRACES and len(pieces) > 1 and _CLOSED_AUTHORITY.match(head) is None:
        cure = 'write scheme, host and port out, or let the whole url be one slot such as "{url}"'
        raise ToolError(Kind.VALIDATION, f"scheme, host and port take no slots; {cure}")
    if _SCHEME.match(head) is None:
        raise ToolError(Kind.VALIDATION, "must begin with http:// or https://, written out")
    authority = _AUTHORITY.match(head)
    if authority is None or (authority.end() == len(head) and len(pieces) > 1):
        raise ToolError(Kind.VALIDATION, "scheme, host and port take no slots; write them out")
    return parse_url("".join(piece if isinstance(piece, str) else STAND_IN for piece in pieces))


def _without_fragment(pieces: Pieces) -> Pieces:
    """The pieces before a `#`, which is never sent."""
    for index, piece in enumerate(pieces):
        if not isinstance(piece, str) or "#" not in piece:
            continue
        if slots_in(pieces[index:]):
            raise ToolError(Kind.VALIDATION, "what follows # is never sent, so it takes no slots; remove it")
        return (*pieces[:index], piece.partition("#")[0])
    return pieces


def _split(pieces: Pieces) -> tuple[Pieces, Pieces]:
    """Path and query, the path without scheme, host and port, the query with its question mark."""
    head = str(pieces[0])
    authority = _AUTHORITY.match(head)
    rest = (head[authority.end() if authority else 0 :], *pieces[1:])
    for index, piece in enumerate(rest):
        if isinstance(piece, str) and "?" in piece:
            before, mark, after = piece.partition("?")
            return (*rest[:index], before), (mark + after, *rest[index + 1 :])
    return rest, ()


def _path(pieces: Pieces) -> tuple[str | Segment, ...]:
    """The path: its slashes and the parts without slots as one text each, and every part that has one."""
    parts: list[str | Slot] = []
    for piece in _encoded(pieces):
        parts += re.split(r"(/)", piece) if isinstance(piece, str) else [piece]
    path: list[str | Segment] = [] if parts[0] == "" and len(parts) > 1 else ["/"]
    for is_slash, group in groupby(parts, lambda part: part == "/"):
        segment = tuple(group)
        path.append(
            Segment(put_in_place(segment, as_url_part))
            if not is_slash and slots_in(segment)
            else "".join(map(str, segment))
        )
    return tuple(part for part in path if part)


def _encoded(pieces: Pieces) -> Pieces:
    """The literals as they go on the wire: characters beyond ASCII encoded, everything else as written."""
    return tuple(quote(piece, safe=string.punctuation) if isinstance(piece, str) else piece for piece in pieces)


def _field(value: Pieces) -> Fills:
    return tuple(as_url_part(piece) if isinstance(piece, str) else Fill(piece, as_url_part) for piece in value)
