"""Compile the request templates of a tool, and fill them at each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.http_tools.address import compile_address
from toolcrib.features.http_tools.body_template import Body, compile_body, compile_document
from toolcrib.features.http_tools.slots import put_in_place, reader_of, slots_in, sole_slot, write
from toolcrib.lib.http_syntax import check_header, check_method
from toolcrib.lib.templates import ABSENT, as_text
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import READING_METHODS, Spelling

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.http_tools.address import RequestAddress, WholeAddress
    from toolcrib.features.http_tools.body_template import DocumentBody
    from toolcrib.features.http_tools.slots import Fills, Lookup, Read, Slot
    from toolcrib.lib.http_syntax import Url
    from toolcrib.model.tool import HttpCall

CONTENT_TYPE = "content-type"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTemplate:
    """A request as its author wrote it; `fixed` are the headers without slots, `headers` those with.

    `method` has slots only in a script. `mapping` is a slot whose value holds all headers. A `lenient` request leaves a
    header out that was not given. `place` stands before the name of a part in messages.
    """

    method: str | Slot
    address: RequestAddress | WholeAddress
    fixed: dict[str, str]
    headers: tuple[tuple[str, Fills], ...]
    mapping: Slot | None
    body: Body | DocumentBody | None
    slots: frozenset[Slot]
    lenient: bool = False
    place: str = ""

    def write(self, lookup: Lookup) -> Written:
        """The request with every slot filled; raises ToolError that says which part of it cannot be."""
        part = "url"
        try:
            url = self.address.write(lookup)
            part = "method"
            method = self.method if isinstance(self.method, str) else _method(self.method, lookup)
            part = "headers"
            headers = self.fixed.copy() if self.mapping is None else _headers(self.mapping, lookup)
            for name, fills in self.headers:
                part = f"headers.{name}"
                if not self.lenient or _is_given(fills, lookup):
                    headers[name] = write(fills, lookup)
            part = "body"
            body = None if self.body is None else self.body.write(lookup)
            if body is not None and content_type_of(headers) is None:
                headers["Content-Type"] = body.content_type
        except ToolError as error:
            prefix = "" if error.reason.startswith(part) else f"{part}: "
            raise error.replace(reason=f"{self.place}{prefix}{error.reason}") from None
        return Written(method, url, headers, None if body is None else body.data)

    def settle(self, known: Lookup) -> CallTemplate:
        """The same request with the headers filled in whose values `known` gives, the same for every call."""
        settled = {
            name: write(fills, known)
            for name, fills in self.headers
            if all(isinstance(piece, str) or known(piece.slot) is not ABSENT for piece in fills)
        }
        headers = tuple((name, fills) for name, fills in self.headers if name not in settled)
        return replace(self, fixed=self.fixed | settled, headers=headers)

    def headers_with(self, is_meant: Callable[[Slot], bool]) -> frozenset[str]:
        """The headers in which such a slot stands."""
        return frozenset(
            header
            for header, fills in self.headers
            if any(not isinstance(piece, str) and is_meant(piece.slot) for piece in fills)
        )


def compile_call(call: HttpCall, spelling: Spelling = Spelling.DOLLARS, place: str = "") -> CallTemplate:
    """Read the slots of a request; raises ToolError for the first thing that is wrong with it."""
    read = reader_of(spelling)
    method = compile_method(call.method, read)
    address = compile_address(call.url, call.query, spelling)
    mapping = compile_mapping(call.headers, read)
    written = call.headers if isinstance(call.headers, Mapping) else {}
    pieces_of = {name: read(value) for name, value in written.items()}
    fixed = {name: "".join(map(str, pieces)) for name, pieces in pieces_of.items() if not slots_in(pieces)}
    for name, pieces in pieces_of.items():
        check_header(name, "".join(piece for piece in pieces if isinstance(piece, str)))
    body = read_body(call, spelling)
    if isinstance(body, Body) and mapping is None and content_type_of(written) is None:
        fixed["Content-Type"] = body.content_type
    slots = {slot for pieces in pieces_of.values() for slot in slots_in(pieces)}
    others = (*address.slots, *(() if mapping is None else (mapping,)), *(() if body is None else body.slots))
    return CallTemplate(
        method=method,
        address=address,
        fixed=fixed,
        headers=tuple((name, put_in_place(pieces, as_text)) for name, pieces in pieces_of.items() if name not in fixed),
        mapping=mapping,
        body=body,
        slots=frozenset(slots.union(others, () if isinstance(method, str) else (method,))),
        lenient=spelling is Spelling.BRACES,
        place=place,
    )


def compile_method(method: str, read: Read) -> str | Slot:
    """The method; of a script it may be one slot."""
    slot = sole_slot(read(method))
    if slot is None:
        check_method(method)
        return method
    return slot


def _method(slot: Slot, lookup: Lookup) -> str:
    value = lookup(slot)
    method = "GET" if value is ABSENT or value is None else as_text(value).upper()
    check_method(method)
    return method


def _is_given(fills: Fills, lookup: Lookup) -> bool:
    """Whether there is a value for a header that is one slot."""
    first = fills[0]
    return len(fills) > 1 or isinstance(first, str) or lookup(first.slot) is not ABSENT


def compile_mapping(headers: Mapping[str, str] | str, read: Read) -> Slot | None:
    """The slot that gives all headers, where there is one."""
    if not isinstance(headers, str):
        return None
    slot = sole_slot(read(headers))
    if slot is None:
        raise ToolError(Kind.VALIDATION, "write a mapping of names to values")
    return slot


def _headers(slot: Slot, lookup: Lookup) -> dict[str, str]:
    value = lookup(slot)
    if value is ABSENT or value is None:
        return {}
    if not isinstance(value, dict):
        raise ToolError(Kind.VALIDATION, "write a mapping of names to values")
    return {str(name): as_text(member) for name, member in value.items()}


class Written(NamedTuple):
    """A request with all slots filled."""

    method: str
    url: Url
    headers: dict[str, str]
    body: bytes | None


def read_body(call: HttpCall, spelling: Spelling = Spelling.DOLLARS) -> Body | DocumentBody | None:
    """The body of a request; refuses one that is not sent, and one whose type a value would choose."""
    read = reader_of(spelling)
    if call.body and spelling is Spelling.DOLLARS and call.method in READING_METHODS:
        raise ToolError(Kind.VALIDATION, f"{call.method} sends none; leave it empty, or use POST, PUT, PATCH or DELETE")
    content_type = content_type_of(call.headers) if isinstance(call.headers, Mapping) else None
    if content_type is not None and slots_in(read(content_type)):
        raise ToolError(Kind.VALIDATION, "Content-Type says how values are written into it; write it without slots")
    if not isinstance(call.body, str) or (spelling is Spelling.BRACES and sole_slot(read(call.body)) is not None):
        return None if call.body is None else compile_document(call.body, read)
    return compile_body(call.body, content_type, read)


def content_type_of(headers: Mapping[str, str]) -> str | None:
    """The Content-Type of the author."""
    return next((value for name, value in headers.items() if name.lower() == CONTENT_TYPE), None)
