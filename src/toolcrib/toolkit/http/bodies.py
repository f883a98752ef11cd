"""Read the JSON body of a request strictly: no duplicate keys, no NaN, bounded depth, size and number of keys."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.lib.documents import read_json, read_jsonc
from toolcrib.lib.plain_json import MAX_KEYS, has_too_many_keys, read_plain
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.messages import JSON
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.toolkit.http.messages import Request

PLACE = "body"
# A larger body is parsed in a thread, so that it does not block the event loop.
READ_AT_ONCE = 16_384
READERS = 2
SHOWN = 8
YAML = b"application/yaml"
_YAML_TYPE = re.compile(rb'application/(?:x-)?yaml\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_JSON_TYPE = re.compile(rb'application/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)


async def read_body(request: Request) -> dict[str, object]:
    """Parse the body and check it against the endpoint's `Body`; an optional body may be empty, with any content type."""
    rule = request.takes
    if rule is None:
        raise ValueError("the endpoint takes no body")
    if not rule.optional:
        _check_type(request)
    raw = await request.body()
    if rule.optional:
        if not raw:
            return {}
        _check_type(request)
    found = await _read(raw, request.max_body, read_jsonc if rule.comments else read_json)
    return found if rule.keys is None else only_keys(found, rule.keys)


async def read_yaml(request: Request) -> bytes | None:
    """The raw body if its type is YAML, None if it is JSON; any other type is refused."""
    if _YAML_TYPE.fullmatch(request.fields.get(b"content-type", b"")):
        _refuse_compressed(request)
        return await request.body()
    _check_type(request, JSON, YAML)
    return None


def only_keys(found: dict[str, object], known: frozenset[str]) -> dict[str, object]:
    """Refuse an object with other keys than these; return it unchanged."""
    if found.keys() <= known:
        return found
    unknown = [key[:80] for key in sorted(found.keys() - known)[:SHOWN]]
    hint = f"known are {', '.join(sorted(known))}" if known else "it takes none"
    message = f"body: unknown key {', '.join(map(repr, unknown))}; {hint}"
    raise ToolError(Kind.VALIDATION, message, details={"unknown": unknown})


def text_of(body: dict[str, object], key: str) -> str | None:
    """A string of the body; None if it is absent or null."""
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ToolError(Kind.VALIDATION, f"body: {key}: must be a string, not {type(value).__name__}")


def arguments_of(body: dict[str, object]) -> dict[str, object]:
    """The arguments of a call; empty if they are absent."""
    arguments = body.get("args", {})
    if isinstance(arguments, dict):
        return arguments
    raise ToolError(Kind.VALIDATION, 'body: args: must be an object; write {"args": {"name": value, …}}')


def _check_type(request: Request, *known: bytes) -> None:
    content_type = request.fields.get(b"content-type", b"")
    if content_type != JSON and not _JSON_TYPE.fullmatch(content_type):
        types = b", ".join(known or (JSON,))
        cure = "send JSON with Content-Type: application/json" if not known else f"send one of {types.decode()}"
        message = f"the body is of type {request.header(b'content-type')[:80]!r}; {cure}"
        raise Refusal(415, Kind.VALIDATION, message, headers=((b"accept-post", types),))
    _refuse_compressed(request)


def _refuse_compressed(request: Request) -> None:
    if request.fields.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, Kind.VALIDATION, "the body is compressed; send it uncompressed, without Content-Encoding")


async def _read(raw: bytes, limit: int, read: Callable[..., object]) -> dict[str, object]:
    if len(raw) <= READ_AT_ONCE:
        return _read_now(raw, limit, read)
    return await asyncio.get_running_loop().run_in_executor(_readers(), _read_now, raw, limit, read)


@cache
def _readers() -> ThreadPoolExecutor:
    """Threads for parsing alone: those of the loop may all be blocked by slow servers."""
    return ThreadPoolExecutor(READERS, "toolcrib-body")


def _read_now(raw: bytes, limit: int, read: Callable[..., object]) -> dict[str, object]:
    found = read_plain(raw) or read(raw, place=PLACE, max_bytes=limit)
    if not isinstance(found, dict):
        raise ToolError(Kind.VALIDATION, "body: must be a JSON object; write {…}")
    if has_too_many_keys(raw, found):
        message = f"body: its objects have more than {MAX_KEYS} keys; send fewer, or a list"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": MAX_KEYS})
    return found
