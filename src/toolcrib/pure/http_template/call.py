"""One request, made ready when its tool is loaded and written at each call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.headers import check_header, check_method
from toolcrib.pure.http_template.address import compile_address
from toolcrib.pure.http_template.body import compile_body
from toolcrib.pure.http_template.slots import put_in_place, read_slots, slots_in, write
from toolcrib.pure.template import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import HttpCall
    from toolcrib.pure.http_template.address import Address
    from toolcrib.pure.http_template.body import Body
    from toolcrib.pure.http_template.slots import Fills, Lookup, Slot
    from toolcrib.pure.url import Url

CONTENT_TYPE = "content-type"
BODILESS = frozenset({"GET", "HEAD"})


class Written(NamedTuple):
    """A request with nothing left to fill."""

    url: Url
    headers: dict[str, str]
    body: bytes | None


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


def read_body(call: HttpCall) -> Body | None:
    """The body of a request; refuses one that is not sent, and one whose type a value would choose."""
    if call.body and call.method in BODILESS:
        raise ToolError(Kind.VALIDATION, f"{call.method} sends none; leave it empty, or use POST, PUT, PATCH or DELETE")
    content_type = content_type_of(call.headers)
    if content_type is not None and slots_in(read_slots(content_type)):
        raise ToolError(Kind.VALIDATION, "Content-Type says how values are written into it; write it without slots")
    return compile_body(call.body, content_type)


def content_type_of(headers: Mapping[str, str]) -> str | None:
    """What the author says that the body is."""
    return next((value for name, value in headers.items() if name.lower() == CONTENT_TYPE), None)
