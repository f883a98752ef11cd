"""Turn an HTTP response into a value or an error, and decide whether and when to retry."""

from __future__ import annotations

import math
import random
import re
import time
from typing import TYPE_CHECKING, NamedTuple

import orjson

from toolcrib.features.http_tools.streamed_response import STREAMED, read_items, take_out
from toolcrib.infra.egress import UTF_8, codec_of, decode_text, describe_binary, is_json, read_media_type, text_of
from toolcrib.infra.secrets.secret import MASK
from toolcrib.lib.documents import MAX_DEPTH, read_json
from toolcrib.lib.http_syntax import read_retry_after
from toolcrib.model.errors import NO_CURE, RETRY_AFTER, Kind, ToolError, cure_of
from toolcrib.model.tool import REPEAT_IDEMPOTENT, REPEATABLE_METHODS, Encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.http_tools.extraction import Extract
    from toolcrib.infra.egress import Request, Response
    from toolcrib.infra.secrets.secret import VariableMasking
    from toolcrib.model.tool import RetryPolicy

# How much of the body of an error is in its details, and how much in its message.
BODY_LETTERS = 2_000
SAID_LETTERS = 500
MARKUP = frozenset({"text/html", "application/xhtml+xml", "text/css", "text/javascript"})
# What a status means, for a model to read; the phrase that a server sends with it may be anything.
REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    412: "Precondition Failed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    423: "Locked",
    428: "Precondition Required",
    429: "Too Many Requests",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
SERVER_ERRORS = range(500, 600)
REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429
UNAUTHORISED = frozenset({401, 403})
# A longer Retry-After is left to the next call.
MAX_WAIT_SECONDS = 60.0
VOICE = "voice"

# orjson silently rounds integers beyond 64 bits; a shorter run of digits cannot be one.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_PLAIN_CODECS = frozenset({UTF_8, "ascii"})


class Value(NamedTuple):
    """The value of a response: raw for later requests, and masked for the caller."""

    raw: object
    shown: object


def read_value(
    response: Response, encoding: Encoding, extract: Extract | None, max_bytes: int, masking: VariableMasking
) -> Value:
    """The value of a response, or what the expression extracts; an empty body has no value."""
    if encoding in STREAMED:
        items = read_items(response, encoding, extract, max_bytes)
        found = take_out(items, extract)
        # Whether the body as a whole tells a secret says nothing here: its items may hold one in pieces.
        if not masking:
            return Value(found, found)
        # As for a whole response: an expression could split a secret.
        hidden = masking.hide_in(items)
        return Value(found, masking.hide_in(take_out(hidden if isinstance(hidden, list) else [], extract)))
    if not response.body:
        return Value(nothing(encoding), nothing(encoding))
    if encoding is Encoding.DECLARED and extract is not None:
        encoding = Encoding.JSON if extract.looks_into_json else Encoding.TEXT
    source = _READERS[encoding](response, max_bytes)
    if extract is None:
        return Value(source, masking.hide_in(source) if _may_tell(response, masking) else source)
    if encoding is Encoding.JSON and not extract.looks_into_json:
        source = _read_text(response)
    raw = extract(source)
    return Value(raw, _extract_hidden(extract, source, masking) if _may_tell(response, masking) else raw)


def nothing(encoding: Encoding) -> str | None:
    """The value of an empty response."""
    return "" if encoding is Encoding.TEXT else None


def is_plain(response: Response) -> bool:
    """Whether the strings of the response are in its body verbatim, in UTF-8 without escapes."""
    return b"\\" not in response.body and _is_utf_8(response)


def explain_status(request: Request, response: Response, hide: Callable[[str], str]) -> ToolError:
    """The error for a response whose status is not a success; `hide` removes secrets from it."""
    status, origin = response.status, response.url.origin
    again = status in {REQUEST_TIMEOUT, TOO_MANY_REQUESTS} or status in SERVER_ERRORS
    details: dict[str, object] = {"origin": origin, "status": status}
    told = f"{status} {REASONS.get(status, '')}".strip()
    if body := _body(response, hide):
        details["body"] = body[:BODY_LETTERS]
        told += _excerpt(response, body)
    wait = read_retry_after(response.headers.get("retry-after", ""), time.time())
    if wait is not None:
        details[RETRY_AFTER] = wait
    return ToolError(
        _kind_of(status, again=again),
        f"{origin}: the server answered {request.method} with status {told}",
        cure=cure_of(f"try again in {math.ceil(wait)} s") if again and wait else NO_CURE,
        retryable=again,
        partial_side_effects=request.has_effects,
        details=details,
    )


class Retries:
    """The retries of one request: as its author says, else as its method allows, at most `max_retries`."""

    def __init__(self, method: str, policy: RetryPolicy | None, max_retries: int) -> None:
        self._policy = policy or REPEAT_IDEMPOTENT
        self._attempts = min(self._policy.max_attempts, 1 + max_retries)
        self._always = policy is not None or method in REPEATABLE_METHODS

    def pause_after(self, attempt: int, error: ToolError, *, mode: str, left: float) -> float | None:
        """Seconds to wait before the next attempt; None for no retry. `left` are the seconds until the deadline."""
        if attempt >= self._attempts or mode == VOICE or not error.retryable:
            return None
        # Safe only if nothing was sent.
        if not self._always and error.partial_side_effects:
            return None
        pause = self._policy.delay_after(attempt)
        if self._policy.jitter:
            pause = random.uniform(0, pause)  # noqa: S311 - spreads callers out, keeps no secret
        asked = error.retry_after
        if asked is not None:
            pause = max(pause, asked)
            if asked > MAX_WAIT_SECONDS:
                return None
        return pause if pause < left else None


def _extract_hidden(extract: Extract, source: object, masking: VariableMasking) -> object:
    """Extract from the masked response: an expression could split a secret."""
    try:
        return masking.hide_in(extract(masking.hide_in(source)))
    except ToolError:
        return MASK


def _may_tell(response: Response, masking: VariableMasking) -> bool:
    """Whether the response may contain a secret."""
    if not masking:
        return False
    return not is_plain(response) or masking.is_in(response.body.decode("utf-8", "replace"))


def _read_declared(response: Response, max_bytes: int) -> object:
    """JSON where the response says so, else its text, else a sentence about its size."""
    if is_json(read_media_type(response.headers.get("content-type", ""))):
        return _read_json(response, max_bytes)
    text = text_of(response)
    return describe_binary(response) if text is None else text


def _read_text(response: Response, _max_bytes: int = 0) -> str:
    text = decode_text(response.body, response.headers.get("content-type", ""))
    if text is None:
        raise _invalid(response, "it is not text in the character set that it declares")
    return text


def _read_json(response: Response, max_bytes: int) -> object:
    body = response.body
    if not _LONG_NUMBER.search(body) and _is_utf_8(response):
        try:
            value: object = orjson.loads(body)
        except orjson.JSONDecodeError:
            pass  # the slow way knows more about what is wrong, and takes a byte order mark
        else:
            if _is_all(body, value):
                return value
    try:
        return read_json(_read_text(response), place="the answer", max_bytes=max_bytes * 4)
    except ToolError as problem:
        raise _invalid(response, problem.message.removeprefix("the answer: ")) from None


_READERS: dict[Encoding, Callable[[Response, int], object]] = {
    Encoding.JSON: _read_json,
    Encoding.TEXT: _read_text,
    Encoding.DECLARED: _read_declared,
}


def _is_utf_8(response: Response) -> bool:
    return codec_of(response.headers.get("content-type", "")) in _PLAIN_CODECS


def _is_all(body: bytes, value: object) -> bool:
    """Whether the value has everything that is in the body, and is not nested too deeply for later steps.

    Of two equal names orjson keeps the last. Every text stands between two quotation marks, so that a value with fewer
    texts than its body has marks for may have lost one to another.
    """
    if not isinstance(value, dict | list):
        return True
    return 2 * _texts(value, 1) == body.count(b'"') - body.count(b'\\"')


def _texts(value: dict[str, object] | list[object], depth: int) -> float:
    """Count the strings of a value, keys included; NaN if it is too deep."""
    if depth > MAX_DEPTH:
        return math.nan
    found: float = len(value) if isinstance(value, dict) else 0
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str):
            found += 1
        elif isinstance(item, dict | list):
            found += _texts(item, depth + 1)
    return found


def _invalid(response: Response, reason: str) -> ToolError:
    origin = response.url.origin
    details = {"origin": origin, "status": response.status}
    return ToolError(Kind.OUTPUT_INVALID, f"{origin}: the answer cannot be used: {reason}", details=details)


def _kind_of(status: int, *, again: bool) -> Kind:
    if status == TOO_MANY_REQUESTS:
        return Kind.RATE_LIMIT
    if status in UNAUTHORISED:
        return Kind.AUTH
    return Kind.TRANSIENT if again else Kind.PERMANENT


def _body(response: Response, hide: Callable[[str], str]) -> str:
    """The response body; masked before it is cut, so that no part of a secret is left."""
    text = (text_of(response) if response.body else "") or ""
    return hide(text)


def _excerpt(response: Response, body: str) -> str:
    """What the server says of an error, on one line, for the model to read; pages for browsers say nothing to it."""
    if read_media_type(response.headers.get("content-type", "")) in MARKUP:
        return ""
    line = "".join(letter if letter.isprintable() else " " for letter in body[:BODY_LETTERS])
    said = " ".join(line.split())
    return f": {said[:SAID_LETTERS]}{'…' if len(said) > SAID_LETTERS else ''}" if said else ""
