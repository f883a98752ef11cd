"""From the body of an answer to the value of a tool, and to what of it may be shown."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import orjson

from toolcrib.ground.egress.content import UTF_8, codec_of, decode_text
from toolcrib.ground.secrets.secret import MASK
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Encoding
from toolcrib.pure.documents import MAX_DEPTH, read_json

if TYPE_CHECKING:
    from toolcrib.ground.egress import Response
    from toolcrib.pure.extract import Extract
    from toolcrib.runners.masking import Masking

# orjson rounds integers beyond 64 bit in silence; without so many digits in a row there is none.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_PLAIN_CODECS = frozenset({UTF_8, "ascii"})


class Value(NamedTuple):
    """What an answer says: as it is, for later requests, and without any secret, for everybody."""

    raw: object
    shown: object


def read_value(
    response: Response, encoding: Encoding, extract: Extract | None, max_bytes: int, masking: Masking
) -> Value:
    """What the answer says, or what is taken out of it; without a body there is nothing, whatever is to be taken."""
    if not response.body:
        return Value(nothing(encoding), nothing(encoding))
    source = _read_json(response, max_bytes) if encoding is Encoding.JSON else _read_text(response)
    if extract is None:
        return Value(source, masking.hide_in(source) if _may_tell(response, masking) else source)
    if encoding is Encoding.JSON and not extract.looks_into_json:
        source = _read_text(response)
    raw = extract(source)
    return Value(raw, _extract_hidden(extract, source, masking) if _may_tell(response, masking) else raw)


def _extract_hidden(extract: Extract, source: object, masking: Masking) -> object:
    """What is taken out of the answer once it is hidden: an expression could cut a secret into pieces nobody knows."""
    try:
        return masking.hide_in(extract(masking.hide_in(source)))
    except ToolError:
        return MASK


def _may_tell(response: Response, masking: Masking) -> bool:
    """Whether the server may have repeated a secret."""
    if not masking:
        return False
    return not is_plain(response) or masking.is_in(response.body.decode("utf-8", "replace"))


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
            if _is_all(body, value):
                return value
    try:
        return read_json(_read_text(response), place="the answer", max_bytes=max_bytes * 4)
    except ToolError as problem:
        raise _invalid(response, problem.message.removeprefix("the answer: ")) from None


def _is_utf_8(response: Response) -> bool:
    return codec_of(response.headers.get("content-type", "")) in _PLAIN_CODECS


def _is_all(body: bytes, value: object) -> bool:
    """Whether the value is all that the body says, and not nested deeper than what comes after it can follow.

    Of two equal names orjson keeps the last. Every text stands between two quotation marks, so that a value with fewer
    texts than its body has marks for may have lost one to another.
    """
    if not isinstance(value, dict | list):
        return True
    return 2 * _texts(value, 1) == body.count(b'"') - body.count(b'\\"')


def _texts(value: dict[str, object] | list[object], depth: int) -> float:
    """How many texts a value holds, names and all; not a number for one that is too deep."""
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
