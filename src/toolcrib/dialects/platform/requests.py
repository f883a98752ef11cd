"""What a tool of the platform does: the function that it names, or the requests that it makes."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.fields import Fields
from toolcrib.dialects.platform.report import show
from toolcrib.dialects.script.optional import MAX_ATTEMPTS, RETRY_KEYS
from toolcrib.model.limits import Backoff, RetryPolicy
from toolcrib.model.tool import MAX_NAME, Encoding, ErrorMode, Http, HttpCall, Registered

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CALLS = 16
MAX_TIMEOUT_MS = 3_600_000
TIMEOUT_MS = 10_000
MAX_DELAY_SECONDS = 3_600
MAX_MULTIPLIER = 100
STATUSES = range(100, 600)
GO_KEYS = ("goFunc",)
REQUEST_KEYS = (
    *("method", "urlTemplate", "query", "headers", "bodyTemplate", "successCodes", "timeoutMs"),
    *("responseEncoding", "extractExpr", "errorMode", "retry"),
)
CALL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Where the check of the requests finds a problem, and what the document calls that place.
PLACE = re.compile(r"(?:calls\[(\d+)\]\.)?(?:(url|body|extract|method)|(query|headers)\.([^:]*)): ")
NAMES = {"url": "urlTemplate", "body": "bodyTemplate", "extract": "extractExpr"}
NOTHING = Registered(key="")


class ToolType(StrEnum):
    """What performs a tool."""

    GO = "go"
    HTTP = "http"


class Method(StrEnum):
    """The verbs that a request may have."""

    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    OPTIONS = "OPTIONS"


def read_implementation(document: Fields, parameters: Mapping[str, object]) -> Registered | Http:
    """Read `impl`, which must be of the kind that `type` says."""
    impl = document.part("impl")
    if "type" not in document or impl is None:
        return NOTHING
    known = document.values["type"]
    if not isinstance(known, str) or known not in [*ToolType]:
        document.refuse("type", f'{show(known)} is unknown; write "go" or "http"')
        return NOTHING
    return _read_function(impl) if known == ToolType.GO else _read_requests(impl, parameters)


def _read_function(impl: Fields) -> Registered:
    _refuse_keys(impl, (*REQUEST_KEYS, "calls"), 'is for tools of type "http"')
    impl.require({"goFunc": '"the key of a registered function"'})
    impl.warn_of_strangers((*GO_KEYS, *REQUEST_KEYS, "calls", "model"))
    return Registered(key=impl.text("goFunc", may_be_empty=False), model=impl.text("model", may_be_empty=False))


def _read_requests(impl: Fields, parameters: Mapping[str, object]) -> Http:
    _refuse_keys(impl, GO_KEYS, 'is for tools of type "go"')
    impl.warn_of_strangers((*REQUEST_KEYS, *GO_KEYS, "calls", "model"))
    before = len(impl.report.problems)
    calls = _read_calls(impl, parameters) if "calls" in impl else (_read_call(impl),)
    http = Http(calls=calls, model=impl.text("model", may_be_empty=False))
    if len(impl.report.problems) == before:
        _check_templates(impl, http, parameters)
    return http


def _check_templates(impl: Fields, http: Http, parameters: Mapping[str, object]) -> None:
    """Refuse templates and expressions that cannot work, by the names that the document has for them."""
    # Only a tool that makes requests waits for what reads them.
    from toolcrib.pure.http_template import check_http

    for problem in check_http(http, parameters):
        place = PLACE.match(problem)
        if place is None:
            impl.report.refuse(impl.at, problem)
            continue
        number, part, group, name = place.groups()
        call = ("calls", int(number or 0)) if "calls" in impl else ()
        steps = (NAMES.get(part, part),) if part else (group, name)
        impl.report.refuse((*impl.at, *call, *steps), problem[place.end() :])


def _read_calls(impl: Fields, parameters: Mapping[str, object]) -> tuple[HttpCall, ...]:
    _refuse_keys(impl, REQUEST_KEYS, "stands beside calls; write it into each of the calls")
    written = impl.items("calls", at_most=MAX_CALLS)
    if impl.values["calls"] == []:
        impl.refuse("calls", 'holds no call; write [{"name": "first", "urlTemplate": "https://…"}]')
    calls = tuple(_read_named_call(impl, index, item) for index, item in enumerate(written))
    _refuse_taken_names(impl, [call.name for call in calls], parameters)
    return calls


def _refuse_taken_names(impl: Fields, names: list[str], parameters: Mapping[str, object]) -> None:
    properties = parameters.get("properties")
    arguments = properties if isinstance(properties, dict) else {}
    for index, name in enumerate(names):
        taken = "an argument" if name in arguments else "an earlier call" if name in names[:index] else ""
        if name and taken:
            at = (*impl.at, "calls", index, "name")
            impl.report.refuse(at, f"{show(name)} is the name of {taken}; choose another one")


def _read_named_call(impl: Fields, index: int, item: object) -> HttpCall:
    at = (*impl.at, "calls", index)
    if not isinstance(item, dict):
        impl.report.refuse(at, f'must be an object, not {show(item)}; write {{"name": …, "urlTemplate": …}}')
        return HttpCall(url="")
    call = Fields(impl.report, item, at)
    call.require({"name": f'"call{index + 1}"'})
    _refuse_keys(call, (*GO_KEYS, "calls"), "does not belong into a call")
    call.warn_of_strangers((*REQUEST_KEYS, *GO_KEYS, "calls", "name"))
    return _read_call(call, _call_name(call))


def _call_name(call: Fields) -> str:
    name = call.text("name")
    if isinstance(call.values.get("name"), str) and (CALL_NAME.fullmatch(name) is None or len(name) > MAX_NAME):
        call.refuse("name", f"{show(name)} is no name; use up to {MAX_NAME} letters, digits and '_', no digit first")
    return name


def _read_call(call: Fields, name: str = "") -> HttpCall:
    call.require({"urlTemplate": '"https://…"'})
    return HttpCall(
        url=call.text("urlTemplate"),
        name=name,
        method=call.word("method", Method, Method.GET).value,
        query=call.texts("query"),
        headers=call.texts("headers"),
        body=call.text("bodyTemplate"),
        success=_success(call),
        timeout_ms=call.whole("timeoutMs", at_least=1, at_most=MAX_TIMEOUT_MS, default=TIMEOUT_MS),
        encoding=call.word("responseEncoding", Encoding, Encoding.JSON),
        extract=call.text("extractExpr"),
        error_mode=call.word("errorMode", ErrorMode, ErrorMode.FAIL),
        retry=_retry(call),
    )


def _success(call: Fields) -> frozenset[int]:
    codes = call.items("successCodes")
    for index, code in enumerate(codes):
        if not _is_status(code):
            text = f"{show(code)} is no status; write a whole number from {STATUSES.start} to {STATUSES.stop - 1}"
            call.report.refuse((*call.at, "successCodes", index), text)
    return frozenset(code for code in codes if _is_status(code) and isinstance(code, int))


def _is_status(code: object) -> bool:
    return isinstance(code, int) and code in STATUSES


def _retry(call: Fields) -> RetryPolicy | None:
    written = call.part("retry")
    if written is None:
        return None
    written.warn_of_strangers(RETRY_KEYS)
    written.require({"max_attempts": "3"})
    attempts, backoff, initial, longest, multiplier = RETRY_KEYS
    return RetryPolicy(
        max_attempts=written.whole(attempts, at_least=1, at_most=MAX_ATTEMPTS, default=1),
        backoff=written.word(backoff, Backoff, Backoff.EXPONENTIAL),
        initial_delay=written.number(initial, at_most=MAX_DELAY_SECONDS, default=1),
        max_delay=written.number(longest, at_most=MAX_DELAY_SECONDS, default=60),
        multiplier=written.number(multiplier, at_most=MAX_MULTIPLIER, default=2),
    )


def _refuse_keys(fields: Fields, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in fields:
            fields.refuse(name, why if ";" in why else f"{why}; remove it")
