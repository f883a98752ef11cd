"""The URL of a request: scheme, host and port as the author wrote them, and slots in path and query."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.http_template.slots import Fill, put_in_place, read_slots, slots_in, write, write_if_given
from toolcrib.pure.template import as_url_part
from toolcrib.pure.url import MAX_URL, Url, parse_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.pure.http_template.slots import Fills, Lookup, Pieces, Slot

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
# Scheme, host and port written out by the author, and closed by what follows them.
_AUTHORITY = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_PARTS = re.compile(r"[/\\]")
_DOTS = frozenset({".", ".."})
STAND_IN = "-"


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the path, between two slashes, with a slot in it."""

    fills: Fills

    def write(self, lookup: Lookup) -> str:
        """The part with every slot filled; refuses a value that would lead to another place than its author meant."""
        written = write(self.fills, lookup)
        meant = unquote(written) if "%" in written else written
        # Some servers read an encoded slash like a plain one, so the dots behind it count as well.
        if not meant or not _DOTS.isdisjoint(_PARTS.split(meant)):
            message = 'url: a value leaves a part of the path empty, "." or ".."; give another value'
            raise ToolError(Kind.VALIDATION, message)
        return written


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
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


def compile_address(url: str, fields: Mapping[str, str]) -> Address:
    """Read the slots of a URL and of the values that are added to its query."""
    pieces = _without_fragment(read_slots(url))
    base = _check_grammar(pieces)
    path, query = _split(pieces)
    read = {name: read_slots(value) for name, value in fields.items()}
    slots = (*slots_in(pieces), *(slot for value in read.values() for slot in slots_in(value)))
    added = tuple((f"{as_url_part(name)}=", _field(value)) for name, value in read.items() if value)
    joint = "" if base.target.endswith(("?", "&")) else "&" if "?" in base.target else "?"
    if not slots and added:
        target = base.target + joint + "&".join(name + "".join(map(str, value)) for name, value in added)
        base = Url(scheme=base.scheme, host=base.host, port=base.port, target=target)
    return Address(
        base=base,
        pieces=(*_path(path), *put_in_place(_encoded(query), as_url_part)),
        joint=joint,
        fields=added,
        slots=slots,
    )


def _check_grammar(pieces: Pieces) -> Url:
    """The URL with a stand-in for every slot; refuses one whose scheme, host or port is not written out."""
    head = pieces[0] if pieces and isinstance(pieces[0], str) else ""
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
            raise ToolError(Kind.VALIDATION, "what stands behind # is never sent, so it takes no slots; remove it")
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
