"""From the body of an answer to the value of a tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from toolcrib.ground.egress.content import decode_text
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding
from toolcrib.pure.documents import MAX_DEPTH, read_json

if TYPE_CHECKING:
    from toolcrib.ground.egress import Response
    from toolcrib.pure.extract import Extract

# orjson rounds integers beyond 64 bit in silence; without so many digits in a row there is none.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_PLAIN_CHARSET = re.compile(r"charset\s*=\s*\"?(?:utf-?8|us-ascii|ascii)", re.IGNORECASE)


def read_value(response: Response, encoding: Encoding, extract: Extract | None, max_bytes: int) -> object:
    """What the answer says, or what is taken out of it; without a body there is nothing, whatever is to be taken."""
    if not response.body:
        return nothing(encoding)
    value = _read_json(response, max_bytes) if encoding is Encoding.JSON else _read_text(response)
    if extract is None:
        return value
    if extract.looks_into_json or encoding is Encoding.TEXT:
        return extract(value)
    return extract(_read_text(response))


def nothing(encoding: Encoding) -> str | None:
    """What stands for no answer."""
    return None if encoding is Encoding.JSON else ""


def is_plain(response: Response) -> bool:
    """Whether the texts of the answer stand in its body letter by letter, in UTF-8 and without escapes."""
    return b"\\" not in response.body and _is_utf_8(response)


def _read_text(response: Response) -> str:
    text = decode_text(response.body, response.headers.get("content-type", ""))
    if text is None:
        raise _invalid(response, "it is no text in the character set that it declares")
    return text


def _read_json(response: Response, max_bytes: int) -> object:
    body = response.body
    if not _LONG_NUMBER.search(body) and _is_utf_8(response):
        try:
            value: object = orjson.loads(body)
        except orjson.JSONDecodeError:
            pass  # the slow way knows more about what is wrong, and takes a byte order mark
        else:
            if not _is_deep(body, value):
                return value
    try:
        return read_json(_read_text(response), place="the answer", max_bytes=max_bytes * 4)
    except ToolError as problem:
        raise _invalid(response, problem.message.removeprefix("the answer: ")) from None


def _is_utf_8(response: Response) -> bool:
    declared = response.headers.get("content-type", "")
    return "charset" not in declared.lower() or _PLAIN_CHARSET.search(declared) is not None


def _is_deep(body: bytes, value: object) -> bool:
    """Whether the value is nested deeper than what comes after it can follow."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
        ]
        if not level:
            return False
    return True


def _invalid(response: Response, reason: str) -> ToolError:
    origin = response.url.origin
    details = {"origin": origin, "status": response.status}
    return ToolError(Kind.OUTPUT_INVALID, f"{origin}: the answer cannot be used: {reason}", details=details)
