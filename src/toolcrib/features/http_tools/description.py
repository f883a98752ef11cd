"""Read the description of HTTP requests, which documents of bundles and scripts spell differently, into one `Http` run.

| in a bundle's `impl` | in a script's `config` | part of an HttpCall |
|---|---|---|
| `urlTemplate`, `bodyTemplate` | `url`, `body` | `url`, `body` |
| `successCodes`, `timeoutMs`, `errorMode` | `success_codes`, `timeout_ms`, `error_mode` | `success`, `timeout_ms`, `error_mode` |
| `responseEncoding`, `extractExpr` | `response_encoding`, `extract` | `encoding`, `extract` |
| `method`, `query`, `headers`, `retry`, `auth`, `pagination`, `cache` | the same | the same |

A document's body is text; a script's may be any JSON value. A script's headers may be one slot that is a mapping.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.http_tools.request_check import check_http, remark_on_slots
from toolcrib.lib.document_fields import Fields
from toolcrib.lib.http_syntax import read_hosts
from toolcrib.lib.positions import show
from toolcrib.lib.templates import as_text
from toolcrib.model.tool import (
    MAX_ATTEMPTS,
    MAX_NAME,
    METHODS,
    ONCE,
    RETRY_KEYS,
    Backoff,
    Encoding,
    ErrorMode,
    Http,
    HttpCall,
    Method,
    RetryPolicy,
    Spelling,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from toolcrib.lib.positions import Steps

MAX_CALLS = 16
MAX_TIMEOUT_MS = 3_600_000
TIMEOUT_MS = 10_000
MAX_DELAY_SECONDS = 3_600
MAX_MULTIPLIER = 100
STATUSES = range(100, 600)
SCRIPT_SUCCESS = frozenset(range(200, 400))
CALL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Places in the messages of `check_http`.
PLACE = re.compile(
    r"(?:calls\[(\d+)\]\.)?(method|url|query|headers|body|extract|auth|pagination|cache)(?:\.([^:]*))?: "
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """How a spelling names the parts of a request; `renamed` are those that it calls differently than an HttpCall."""

    spelling: Spelling
    renamed: Mapping[str, str]
    encodings: tuple[Encoding, ...]

    def of(self, part: str) -> str:
        """The key of a part."""
        return self.renamed.get(part, part)

    @property
    def requests(self) -> tuple[str, ...]:
        """The keys of one request."""
        return tuple(self.of(part) for part in PARTS)


PARTS = (
    *("method", "url", "query", "headers", "body", "success", "timeout_ms", "encoding", "extract", "error_mode"),
    *("retry", "auth", "pagination", "cache"),
)
DOCUMENT_KEYS = Keys(
    spelling=Spelling.DOLLARS,
    renamed={
        "url": "urlTemplate",
        "body": "bodyTemplate",
        "success": "successCodes",
        "timeout_ms": "timeoutMs",
        "encoding": "responseEncoding",
        "extract": "extractExpr",
        "error_mode": "errorMode",
    },
    encodings=(Encoding.JSON, Encoding.TEXT, Encoding.EVENTS, Encoding.LINES),
)
SCRIPT_KEYS = Keys(
    spelling=Spelling.BRACES,
    renamed={"success": "success_codes", "encoding": "response_encoding"},
    encodings=(Encoding.JSON, Encoding.TEXT, Encoding.DECLARED, Encoding.EVENTS, Encoding.LINES),
)


def read_requests(
    description: Fields, parameters: Mapping[str, object], keys: Keys, secrets: Collection[str] = ()
) -> Http:
    """The requests of a description; what is wrong with them is reported with the keys of the spelling."""
    before = len(description.report.problems)
    calls = _read_calls(description, parameters, keys) if "calls" in description else (_read_call(description, keys),)
    http = Http(
        calls=calls,
        model=description.text("model", may_be_empty=False),
        spelling=keys.spelling,
        hosts=read_hosts(description),
    )
    if len(description.report.problems) == before:
        _check_templates(description, http, parameters, keys, secrets)
    return http


def _check_templates(
    description: Fields, http: Http, parameters: Mapping[str, object], keys: Keys, secrets: Collection[str]
) -> None:
    """Report invalid templates and expressions, with the keys of the description as places."""
    for problem in check_http(http, parameters):
        description.report.refuse(*_in_description(problem, description, keys))
    for remark in remark_on_slots(http, parameters, secrets):
        description.report.warn(*_in_description(remark, description, keys))


def _in_description(problem: str, description: Fields, keys: Keys) -> tuple[Steps, str]:
    """The place of a problem in the description, and its text."""
    place = PLACE.match(problem)
    if place is None:
        return description.at, problem
    number, part, name = place.groups()
    call = ("calls", int(number or 0)) if "calls" in description else ()
    return (*description.at, *call, keys.of(part), *(() if name is None else (name,))), problem[place.end() :]


def _read_calls(description: Fields, parameters: Mapping[str, object], keys: Keys) -> tuple[HttpCall, ...]:
    for name in keys.requests:
        if name in description:
            description.refuse(name, "stands beside calls; write it into each of the calls")
    written = description.items("calls", at_most=MAX_CALLS)
    if description.values["calls"] == []:
        sample = f'[{{"name": "first", "{keys.of("url")}": "https://…"}}]'
        description.refuse("calls", f"holds no call; write {sample}")
    calls = tuple(_read_named_call(description, index, item, keys) for index, item in enumerate(written))
    _refuse_taken_names(description, [call.name for call in calls], parameters)
    return calls


def _refuse_taken_names(description: Fields, names: list[str], parameters: Mapping[str, object]) -> None:
    properties = parameters.get("properties")
    arguments = properties if isinstance(properties, dict) else {}
    for index, name in enumerate(names):
        taken = "an argument" if name in arguments else "an earlier call" if name in names[:index] else ""
        if name and taken:
            at = (*description.at, "calls", index, "name")
            description.report.refuse(at, f"{show(name)} is the name of {taken}; choose another one")


def _read_named_call(description: Fields, index: int, item: object, keys: Keys) -> HttpCall:
    at = (*description.at, "calls", index)
    if not isinstance(item, dict):
        sample = f'{{"name": …, "{keys.of("url")}": …}}'
        description.report.refuse(at, f"must be an object, not {show(item)}; write {sample}")
        return HttpCall(url="")
    call = Fields(description.report, item, at)
    call.require({"name": f'"call{index + 1}"'})
    for name in ("goFunc", "calls"):
        if name in call:
            call.refuse(name, "does not belong into a call; remove it")
    call.warn_of_unknown_keys((*keys.requests, "goFunc", "calls", "name"))
    return _read_call(call, keys, _call_name(call))


def _call_name(call: Fields) -> str:
    name = call.text("name")
    if isinstance(call.values.get("name"), str) and (CALL_NAME.fullmatch(name) is None or len(name) > MAX_NAME):
        call.refuse("name", f"{show(name)} is not a name; use up to {MAX_NAME} letters, digits and '_', no digit first")
    return name


def _read_call(call: Fields, keys: Keys, name: str = "") -> HttpCall:
    is_script = keys.spelling is Spelling.BRACES
    call.require({keys.of("url"): '"https://…"'})
    longest = MAX_TIMEOUT_MS if is_script else TIMEOUT_MS
    return HttpCall(
        url=call.text(keys.of("url")),
        name=name,
        method=_script_method(call) if is_script else call.word("method", Method, Method.GET).value,
        query=call.texts("query"),
        headers=_script_headers(call) if is_script else call.texts("headers"),
        body=call.values.get("body") if is_script else call.text(keys.of("body")),
        success=_success(call, keys.of("success")) or (SCRIPT_SUCCESS if is_script else frozenset()),
        timeout_ms=call.whole(keys.of("timeout_ms"), at_least=1, at_most=MAX_TIMEOUT_MS, default=longest),
        encoding=call.word(keys.of("encoding"), keys.encodings, Encoding.DECLARED if is_script else Encoding.JSON),
        extract=call.text(keys.of("extract")),
        error_mode=call.word(keys.of("error_mode"), ErrorMode, ErrorMode.FAIL),
        # The policy of a script, `retry_policy`, repeats the whole call.
        retry=_retry(call) or (ONCE if is_script else None),
        auth=_auth(call),
        pagination=_object(call, "pagination"),
        cache=_object(call, "cache"),
    )


def _auth(call: Fields) -> Mapping[str, object]:
    auth = _object(call, "auth")
    if not auth and call.part("auth") is not None:
        # Left as it is, the request would be sent without the credentials that its author began to write.
        call.refuse("auth", 'is empty; write {"type": "bearer", "token": "${secret:NAME}"}, or leave it out')
    return auth


def _object(call: Fields, name: str) -> Mapping[str, object]:
    part = call.part(name)
    return {} if part is None else part.values


def _script_method(call: Fields) -> str:
    """The method as the author wrote it, in any case, or a slot that the caller fills."""
    method = call.values.get("method")
    if method is None:
        return Method.GET.value
    if not isinstance(method, str):
        call.refuse("method", f"{show(method)} is refused; use one of {', '.join(METHODS)}")
        return Method.GET.value
    return method if "{" in method else method.upper()


def _script_headers(call: Fields) -> Mapping[str, str] | str:
    headers = call.values.get("headers")
    if isinstance(headers, str) and headers.startswith(("{", "${")):
        return headers
    if headers is None:
        return {}
    if not isinstance(headers, dict):
        call.refuse("headers", "write a mapping of names to values")
        return {}
    return {str(name): as_text(value) for name, value in headers.items()}


def _success(call: Fields, key: str) -> frozenset[int]:
    codes = call.items(key)
    for index, code in enumerate(codes):
        if not _is_status(code):
            text = f"{show(code)} is not a status; write an integer from {STATUSES.start} to {STATUSES.stop - 1}"
            call.report.refuse((*call.at, key, index), text)
    return frozenset(code for code in codes if _is_status(code) and isinstance(code, int))


def _is_status(code: object) -> bool:
    return isinstance(code, int) and code in STATUSES


def _retry(call: Fields) -> RetryPolicy | None:
    written = call.part("retry")
    if written is None:
        return None
    written.warn_of_unknown_keys(RETRY_KEYS)
    written.require({"max_attempts": "3"})
    attempts, backoff, initial, longest, multiplier = RETRY_KEYS
    return RetryPolicy(
        max_attempts=written.whole(attempts, at_least=1, at_most=MAX_ATTEMPTS, default=1),
        backoff=written.word(backoff, Backoff, Backoff.EXPONENTIAL),
        initial_delay=written.number(initial, at_most=MAX_DELAY_SECONDS, default=1),
        max_delay=written.number(longest, at_most=MAX_DELAY_SECONDS, default=60),
        multiplier=written.number(multiplier, at_most=MAX_MULTIPLIER, default=2),
    )
