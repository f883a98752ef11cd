"""Compile the request templates of a tool, fill them at each call, and report all their problems."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.http_tools.extraction import compile_extract, is_json_path
from toolcrib.features.http_tools.placeholders import (
    Fill,
    Slot,
    compile_address,
    put_in_place,
    read_slots,
    slots_in,
    write,
)
from toolcrib.lib.http_syntax import check_header, check_method
from toolcrib.lib.templates import as_json, as_json_letters, as_text, as_url_part
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.features.http_tools.placeholders import Address, Fills, Lookup, Pieces
    from toolcrib.lib.http_syntax import Url
    from toolcrib.model.tool import Http, HttpCall

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
FORM_TYPE = "application/x-www-form-urlencoded"
LINES_TYPES = frozenset({"application/ndjson", "application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
XML_TYPES = frozenset({"application/xml", "text/xml"})
CONTENT_TYPE = "content-type"
BODILESS = frozenset({"GET", "HEAD"})

# Characters that XML 1.0 cannot represent.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_QUOTES = re.compile(r'\\.|(")', re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTemplate:
    """A request as its author wrote it; `fixed` are the headers without slots, `headers` those with."""

    method: str
    address: Address
    fixed: dict[str, str]
    headers: tuple[tuple[str, Fills], ...]
    body: Body | None
    slots: frozenset[Slot]

    def write(self, lookup: Lookup) -> Written:
        """The request with every slot filled; raises ToolError that says which part of it cannot be."""
        part = "url"
        try:
            url = self.address.write(lookup)
            headers = self.fixed.copy()
            for name, fills in self.headers:
                part = f"headers.{name}"
                headers[name] = write(fills, lookup)
            part = "body"
            body = None if self.body is None else self.body.write(lookup)
        except ToolError as error:
            message = error.message if error.message.startswith(part) else f"{part}: {error.message}"
            raise ToolError(error.kind, message, details=error.details) from None
        return Written(url, headers, body)

    def settle(self, known: Mapping[str, object]) -> CallTemplate:
        """The same request with the headers filled in which nothing stands but these values, the same for every call."""
        settled = {
            name: write(fills, lambda slot: slot.reach(known[slot.name]))
            for name, fills in self.headers
            if all(isinstance(piece, str) or piece.slot.name in known for piece in fills)
        }
        headers = tuple((name, fills) for name, fills in self.headers if name not in settled)
        return replace(self, fixed=self.fixed | settled, headers=headers)

    def headers_with(self, names: frozenset[str]) -> frozenset[str]:
        """The headers in which one of the names stands."""
        return frozenset(
            header
            for header, fills in self.headers
            if any(not isinstance(piece, str) and piece.slot.name in names for piece in fills)
        )


def compile_call(call: HttpCall) -> CallTemplate:
    """Read the slots of a request; raises ToolError for the first thing that is wrong with it."""
    check_method(call.method)
    address = compile_address(call.url, call.query)
    read = {name: read_slots(value) for name, value in call.headers.items()}
    fixed = {name: "".join(map(str, pieces)) for name, pieces in read.items() if not slots_in(pieces)}
    for name, pieces in read.items():
        check_header(name, "".join(piece for piece in pieces if isinstance(piece, str)))
    body = read_body(call)
    if body is not None and content_type_of(call.headers) is None:
        fixed["Content-Type"] = body.content_type
    slots = {slot for pieces in read.values() for slot in slots_in(pieces)}
    return CallTemplate(
        method=call.method,
        address=address,
        fixed=fixed,
        headers=tuple((name, put_in_place(pieces, as_text)) for name, pieces in read.items() if name not in fixed),
        body=body,
        slots=frozenset(slots.union(address.slots, () if body is None else body.slots)),
    )


class Written(NamedTuple):
    """A request with all slots filled."""

    url: Url
    headers: dict[str, str]
    body: bytes | None


def check_http(http: Http, parameters: Mapping[str, object]) -> list[str]:
    """The problems of all requests, each with its place: `url: …`, `headers.X: …`, `slots: …`, `calls[1].extract: …`."""
    problems = [] if http.calls else ["calls: holds none; write at least one"]
    several = len(http.calls) > 1
    properties = parameters.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    for index, call in enumerate(http.calls):
        later = {other.name for other in http.calls[index:]} - {""}
        place = f"calls[{index}]." if several else ""
        found = (*_check_call(call), *_check_order(call, later), *_check_reach(call, declared))
        problems += [f"{place}{problem}" for problem in found]
    return problems


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """What is sent, and the type it is sent as where its author named none."""

    fills: Fills
    content_type: str
    slots: tuple[Slot, ...]

    def write(self, lookup: Lookup) -> bytes:
        """The body with every slot filled."""
        try:
            return write(self.fills, lookup).encode()
        except UnicodeEncodeError as error:
            message = f"holds half of a surrogate pair (character {error.start}); give the whole character"
            raise ToolError(Kind.VALIDATION, message) from None


def compile_body(text: str, content_type: str | None) -> Body | None:
    """Read the slots of a body; without a type of its author's, what reads as JSON is JSON and the rest is text."""
    if not text:
        return None
    pieces = read_slots(text)
    if content_type is None:
        fills, content_type = _guess(pieces)
    else:
        fills = _in_type(content_type.partition(";")[0].strip().lower(), pieces)
    return Body(fills=fills, content_type=content_type, slots=slots_in(pieces))


def as_xml(value: object) -> str:
    """Escape a string for XML."""
    import html

    text = as_text(value)
    if found := _NO_XML.search(text):
        raise ToolError(Kind.VALIDATION, f"character {found.start()} of a value cannot stand in XML; leave it out")
    return html.escape(text)


def read_body(call: HttpCall) -> Body | None:
    """The body of a request; refuses one that is not sent, and one whose type a value would choose."""
    if call.body and call.method in BODILESS:
        raise ToolError(Kind.VALIDATION, f"{call.method} sends none; leave it empty, or use POST, PUT, PATCH or DELETE")
    content_type = content_type_of(call.headers)
    if content_type is not None and slots_in(read_slots(content_type)):
        raise ToolError(Kind.VALIDATION, "Content-Type says how values are written into it; write it without slots")
    return compile_body(call.body, content_type)


def content_type_of(headers: Mapping[str, str]) -> str | None:
    """The Content-Type of the author."""
    return next((value for name, value in headers.items() if name.lower() == CONTENT_TYPE), None)


def _guess(pieces: Pieces) -> tuple[Fills, str]:
    """JSON if it can be; what begins like JSON and cannot is a mistake, and no text."""
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
    written = [_in_json(tuple(line)) if any(_is_told(piece) for piece in line) else () for line in lines]
    return tuple(piece for index, line in enumerate(written) for piece in (("\n", *line) if index else line))


def _is_told(piece: str | Slot) -> bool:
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
        # The quotes around a slot that is alone go: its value brings its own, or needs none.
        literal = piece[1:] if is_alone else piece
        quotes = [found for found in _QUOTES.finditer(piece) if found[1]]
        is_inside = is_inside != (len(quotes) % 2 == 1)
        opens = is_inside and bool(quotes) and quotes[-1].end() == len(piece)
        is_alone = opens and _closes_at_once(pieces[index + 1 :])
        yield literal[:-1] if is_alone else literal


def _closes_at_once(rest: Pieces) -> bool:
    """Whether a slot comes next, and right behind it the quote that ends the string."""
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


def _check_call(call: HttpCall) -> Iterator[str]:
    yield from _refusals("method", lambda: check_method(call.method))
    yield from _refusals("url", lambda: compile_address(call.url, {}))
    for name, value in call.query.items():
        yield from _refusals(f"query.{name}", partial(_check_field, name, value))
    yield from _check_headers(call.headers)
    yield from _refusals("body", lambda: read_body(call))
    yield from _check_extract(call)


def _refusals(part: str, read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except ToolError as refusal:
        yield f"{part}: {refusal.message}"


def _check_field(name: str, value: str) -> None:
    read_slots(value)
    _refuse_slots(name)


def _check_headers(headers: Mapping[str, str]) -> Iterator[str]:
    known: set[str] = set()
    for name, value in headers.items():
        yield from _refusals(f"headers.{name[:40]}", partial(_check_header, name, value))
        if name.lower() in known:
            yield f"headers.{name[:40]}: stands twice, and the case of letters does not count; remove one"
        known.add(name.lower())


def _check_header(name: str, value: str) -> None:
    _refuse_slots(name)
    check_header(name, "".join(piece for piece in read_slots(value) if isinstance(piece, str)))


def _refuse_slots(name: str) -> None:
    if slots_in(read_slots(name)):
        raise ToolError(Kind.VALIDATION, "a name takes no slots; write it out")


def _check_extract(call: HttpCall) -> Iterator[str]:
    if not call.extract:
        return
    yield from _refusals("extract", lambda: compile_extract(call.extract))
    if call.encoding is Encoding.TEXT and is_json_path(call.extract):
        yield "extract: a JSONPath looks into JSON, and the answer is read as text; read it as json, or write a pattern"


def _check_order(call: HttpCall, later: set[str]) -> Iterator[str]:
    """Slots that refer to a response that comes later."""
    for name in sorted({slot.name for slot in _slots_of(call)} & later):
        yield f"slots: ${{{name}}} asks for the answer of a call that comes later, or of this one; put {name} before it"


def _slots_of(call: HttpCall) -> Iterator[Slot]:
    for text in (call.url, *call.query.values(), *call.headers.values(), call.body):
        try:
            yield from slots_in(read_slots(text))
        except ToolError:
            continue  # said where it stands


def _check_reach(call: HttpCall, properties: Mapping[str, object]) -> Iterator[str]:
    """Slots with a path into a parameter that is not an object or array."""
    for slot in sorted(set(_slots_of(call)), key=str):
        schema = properties.get(slot.name)
        kind = schema.get("type") if slot.steps and isinstance(schema, dict) else None
        wanted = "array" if slot.steps and isinstance(slot.steps[0], int) else "object"
        if isinstance(kind, str) and kind != wanted:
            yield f"slots: {slot} looks for an {wanted}, and {slot.name} is declared as {kind}; correct one of the two"
