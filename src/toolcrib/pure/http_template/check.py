"""Everything that is wrong with the requests of a tool, in words, before anybody calls it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding
from toolcrib.pure.extract import compile_extract, is_json_path
from toolcrib.pure.headers import check_header, check_method
from toolcrib.pure.http_template.address import compile_address
from toolcrib.pure.http_template.call import read_body
from toolcrib.pure.http_template.slots import read_slots, slots_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.model.tool import Http, HttpCall
    from toolcrib.pure.http_template.slots import Slot
    from toolcrib.pure.url import Url


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


def urls_of(http: Http) -> list[Url]:
    """Where the requests go, with something in place of the slots in path and query; only of calls that are right."""
    return [compile_address(call.url, {}).base for call in http.calls]


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
    """Slots that ask for an answer which is not there yet."""
    for name in sorted({slot.name for slot in _slots_of(call)} & later):
        yield f"slots: ${{{name}}} asks for the answer of a call that comes later, or of this one; put {name} before it"


def _slots_of(call: HttpCall) -> Iterator[Slot]:
    for text in (call.url, *call.query.values(), *call.headers.values(), call.body):
        try:
            yield from slots_in(read_slots(text))
        except ToolError:
            continue  # said where it stands


def _check_reach(call: HttpCall, properties: Mapping[str, object]) -> Iterator[str]:
    """Slots that look into a parameter which never has anything in it."""
    for slot in sorted(set(_slots_of(call)), key=str):
        schema = properties.get(slot.name)
        kind = schema.get("type") if slot.steps and isinstance(schema, dict) else None
        wanted = "array" if slot.steps and isinstance(slot.steps[0], int) else "object"
        if isinstance(kind, str) and kind != wanted:
            yield f"slots: {slot} looks for an {wanted}, and {slot.name} is declared as {kind}; correct one of the two"
