"""Report all problems of a tool's requests at once: grammar, slots, order, expressions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.http_tools.address import compile_address
from toolcrib.features.http_tools.extraction import compile_extract, is_json_path
from toolcrib.features.http_tools.pages import compile_pagination
from toolcrib.features.http_tools.request_template import compile_mapping, compile_method, read_body
from toolcrib.features.http_tools.response_cache import compile_cache
from toolcrib.features.http_tools.slot_values import PLATFORM
from toolcrib.features.http_tools.slots import SlotSource, reader_of, slots_in
from toolcrib.lib.http_auth.declaration import check_auth, headers_written
from toolcrib.lib.http_syntax import check_header
from toolcrib.lib.names import near_misses
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from toolcrib.features.http_tools.slots import Read, Slot
    from toolcrib.model.tool import Http, HttpCall


def check_http(http: Http, parameters: Mapping[str, object]) -> list[str]:
    """The problems of all requests, each with its place: `url: …`, `headers.X: …`, `calls[1].extract: …`."""
    problems = [] if http.calls else ["calls: holds none; write at least one"]
    read = reader_of(http.spelling)
    for index, call in enumerate(http.calls):
        later = {other.name for other in http.calls[index:]} - {""}
        found = (
            *_check_call(call, http, read),
            *_check_order(call, later, read),
            *_check_reach(call, _declared(parameters), read),
            *_check_names(call, parameters, {other.name for other in http.calls} - {""}, read),
        )
        problems += [f"{_place(http, index)}{problem}" for problem in found]
    return problems


def remark_on_slots(http: Http, parameters: Mapping[str, object], secrets: Collection[str] = ()) -> list[str]:
    """Bare names that mean a secret and look like a typing error, each with its place and the likely name."""
    read = reader_of(http.spelling)
    answers = {call.name for call in http.calls} - {""}
    known = {*_declared(parameters), *PLATFORM, *answers}
    remarks = []
    for index, call in enumerate(http.calls):
        for part, slot in _slots_of(call, read):
            if slot.source is not SlotSource.ANY or slot.name in known or slot.name in secrets:
                continue
            for _, meant in near_misses([slot.name], {*known, *secrets}):
                cure = f"did you mean {meant}? Write ${{secret:{slot.name}}} if it is a secret"
                remarks.append(f"{_place(http, index)}{part}: {slot} is not a parameter, so it means a secret; {cure}")
    return remarks


def _place(http: Http, index: int) -> str:
    return f"calls[{index}]." if len(http.calls) > 1 else ""


def _declared(parameters: Mapping[str, object]) -> Mapping[str, object]:
    properties = parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _check_call(call: HttpCall, http: Http, read: Read) -> Iterator[str]:
    yield from _refusals("method", lambda: compile_method(call.method, read))
    yield from _refusals("url", lambda: compile_address(call.url, {}, http.spelling))
    for name, value in call.query.items():
        yield from _refusals(f"query.{name}", partial(_check_field, name, value, read))
    yield from _check_headers(call, read)
    yield from _refusals("body", lambda: read_body(call, http.spelling))
    yield from _check_extract(call)
    if call.auth:
        yield from _check_auth(call)
    yield from _refusals("pagination", lambda: compile_pagination(call.pagination))
    yield from _refusals("cache", lambda: compile_cache(call.cache, call.method))
    if call.pagination and call.encoding in {Encoding.TEXT, Encoding.EVENTS, Encoding.LINES}:
        yield "pagination: pages are read as JSON, and the answer is read as text; read it as json"


def _check_auth(call: HttpCall) -> Iterator[str]:
    """Problems of the credentials, and headers that they would overwrite."""
    scheme = call.url.partition(":")[0].lower()
    yield from check_auth(call.auth, is_host_fixed=scheme in {"http", "https"}, scheme=scheme)
    if not isinstance(call.headers, Mapping):
        yield "headers: a caller could bring credentials of its own; write the headers out beside auth"
        return
    for name in sorted(call.headers.keys(), key=str.lower):
        if name.lower() in headers_written(call.auth):
            yield f"headers.{name[:40]}: is written by auth; remove it"


def _refusals(part: str, check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except ToolError as refusal:
        yield f"{part}: {refusal.message}"


def _check_field(name: str, value: str, read: Read) -> None:
    read(value)
    _refuse_slots(name, read)


def _check_headers(call: HttpCall, read: Read) -> Iterator[str]:
    if not isinstance(call.headers, Mapping):
        yield from _refusals("headers", lambda: compile_mapping(call.headers, read))
        return
    known: set[str] = set()
    for name, value in call.headers.items():
        yield from _refusals(f"headers.{name[:40]}", partial(_check_header, name, value, read))
        if name.lower() in known:
            yield f"headers.{name[:40]}: stands twice, and the case of letters does not count; remove one"
        known.add(name.lower())


def _check_header(name: str, value: str, read: Read) -> None:
    _refuse_slots(name, read)
    check_header(name, "".join(piece for piece in read(value) if isinstance(piece, str)))


def _refuse_slots(name: str, read: Read) -> None:
    if slots_in(read(name)):
        raise ToolError(Kind.VALIDATION, "a name takes no slots; write it out")


def _check_extract(call: HttpCall) -> Iterator[str]:
    if not call.extract:
        return
    yield from _refusals("extract", lambda: compile_extract(call.extract))
    if call.encoding is Encoding.TEXT and is_json_path(call.extract):
        yield "extract: a JSONPath looks into JSON, and the answer is read as text; read it as json, or write a pattern"


def _check_order(call: HttpCall, later: set[str], read: Read) -> Iterator[str]:
    """Slots that refer to a response that comes later."""
    for part, slot in _slots_of(call, read):
        if slot.source in {SlotSource.ANY, SlotSource.ANSWER} and slot.name in later:
            cure = f"put {slot.name} before it"
            yield f"{part}: {slot} asks for the answer of a call that comes later, or of this one; {cure}"


def _check_reach(call: HttpCall, declared: Mapping[str, object], read: Read) -> Iterator[str]:
    """Slots with a path into a parameter that is not an object or array."""
    for part, slot in _slots_of(call, read):
        schema = declared.get(slot.name) if slot.source in {SlotSource.ANY, SlotSource.ARGUMENT} else None
        kind = schema.get("type") if slot.steps and isinstance(schema, dict) else None
        wanted = "array" if slot.steps and isinstance(slot.steps[0], int) else "object"
        if isinstance(kind, str) and kind != wanted:
            reason = f"looks for an {wanted}, and {slot.name} is declared as {kind}"
            yield f"{part}: {slot} {reason}; correct one of the two"


def _check_names(
    call: HttpCall, parameters: Mapping[str, object], answers: Collection[str], read: Read
) -> Iterator[str]:
    """Names that no call gives a value to: of the platform, and of arguments where the schema is closed."""
    declared = _declared(parameters)
    is_closed = parameters.get("additionalProperties") is False
    for part, slot in _slots_of(call, read):
        if slot.source is SlotSource.PLATFORM and slot.name not in PLATFORM:
            yield f"{part}: {slot} is not a name of the platform; {_nearest(slot, PLATFORM)}"
        elif slot.source is SlotSource.ANSWER and slot.name not in answers:
            yield f"{part}: {slot} is the name of no call; {_nearest(slot, answers)}"
        elif slot.source is SlotSource.ARGUMENT and is_closed and slot.name not in declared:
            yield f"{part}: {slot} is not a parameter; {_nearest(slot, declared)}"
        elif slot.source is SlotSource.NAME and is_closed and slot.name not in {*declared, *PLATFORM}:
            cure = f"{_nearest(slot, {*declared, *PLATFORM})}, or write {{{{{slot.name}}}}} for the text itself"
            yield f"{part}: {slot} is neither a parameter nor a name of the platform; {cure}"


def _nearest(slot: Slot, known: Collection[str]) -> str:
    near = [meant for _, meant in near_misses([slot.name], known)]
    return f"did you mean {near[0]}?" if near else f"write one of {', '.join(sorted(known)) or 'none: there are none'}"


def _slots_of(call: HttpCall, read: Read) -> Iterator[tuple[str, Slot]]:
    """The part of each slot, and the slot; one that stands several times in a part is told once."""
    for part, texts in _texts_of(call):
        seen: set[Slot] = set()
        for text in texts:
            try:
                found = slots_in(read(text))
            except ToolError:
                continue  # reported where it stands
            yield from ((part, slot) for slot in found if slot not in seen)
            seen.update(found)


def _texts_of(call: HttpCall) -> Iterator[tuple[str, list[str]]]:
    yield "method", [call.method]
    yield "url", [call.url]
    yield from ((f"query.{name}", [value]) for name, value in call.query.items())
    if isinstance(call.headers, Mapping):
        yield from ((f"headers.{name[:40]}", [value]) for name, value in call.headers.items())
    else:
        yield "headers", [call.headers]
    yield "body", [*_strings(call.body)]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
