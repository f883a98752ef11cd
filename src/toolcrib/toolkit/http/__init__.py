"""Requests and responses of endpoints, and the cancellation of work whose client disconnects.

The JSON body of a request is read strictly: no duplicate keys, no NaN, bounded depth, size and number of keys.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from starlette.requests import Request as StarletteRequest

from toolcrib.core.execution import go_on
from toolcrib.lib.documents import MAX_KEYS, has_too_many_keys, read_json, read_jsonc, read_plain, write_json
from toolcrib.model.call import Scope as AccessScope
from toolcrib.model.errors import Cure, Kind, Reader, ToolError
from toolcrib.toolkit.http.contract import Body, QueryReader
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from types import CoroutineType

    from starlette.types import Receive, Scope, Send

    from toolcrib.model.bundle import Page
    from toolcrib.toolkit.http.contract import Query, RawBody

    Header = tuple[bytes, bytes]
    T = TypeVar("T")


JSON = b"application/json"
PROBLEM = b"application/problem+json"
NOTHING = b""
MAX_DIGITS = 15
# Responses that never have a body.
BODILESS = frozenset({204, 304})
# For responses that are not a page: a browser loads and shows nothing of them.
NO_PAGE = b"default-src 'none'; frame-ancestors 'none'"

# Headers that must not be repeated: a proxy and this server might use different ones.
SINGLE = (
    b"host",
    b"authorization",
    b"origin",
    b"content-type",
    b"content-length",
    b"if-match",
    b"if-none-match",
    b"last-event-id",
    b"mcp-protocol-version",
    b"mcp-session-id",
    b"mcp-method",
    b"mcp-name",
    b"toolcrib-session",
    b"toolcrib-mode",
    b"toolcrib-confirmation",
)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

# Keys of the ASGI scope: the request for the inner layers; route, caller and id for the log and the metrics.
REQUEST, ROUTE, CALLER, ID = "toolcrib.request", "toolcrib.route", "toolcrib.caller", "toolcrib.request_id"
HOLDER = "toolcrib.holder"

_PREFIX = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


NO_QUERY = QueryReader(()).read(NOTHING)


EVERY_SCOPE = frozenset(AccessScope)


class Request(StarletteRequest):
    """A request. `caller` is the authenticated caller, `scopes` are those of its token, and `holder` is the owner of the token.

    `metadata_url` is the OAuth resource metadata; `fields` are the headers by their names in lower case. The endpoint sets
    `query` and `takes`, the body that it expects. `id` is the X-Request-Id of the client, if valid. `call_id` begins with it
    and is unique, because a client may reuse its id. `always` are headers of every response to the request.
    """

    caller: str = ""
    holder: str = ""
    metadata_url: bytes = b""
    scopes: frozenset[AccessScope] = frozenset()
    is_call: bool = False
    is_answered: bool = False
    query: Query = NO_QUERY
    takes: Body | RawBody | None = None
    always: tuple[Header, ...] = ()
    body_setting: str = "server.body_bytes"
    _whole: bytes | None = None

    def __init__(self, scope: Scope, receive: Receive, max_body: int) -> None:
        super().__init__(scope, receive)
        self.max_body = max_body
        self.fields: dict[bytes, bytes] = dict(scope["headers"])
        own = self.fields.get(b"x-request-id")
        self.is_own_id = own is not None and REQUEST_ID.fullmatch(own) is not None
        self.id = own.decode() if own is not None and self.is_own_id else _new_id()

    @property
    def reader(self) -> Reader:
        """Who reads the response: a caller with all scopes is an administrator, any other a client."""
        return Reader.ADMINISTRATOR if self.scopes == EVERY_SCOPE else Reader.CLIENT

    @property
    def call_id(self) -> str:
        """The unique id of a call made by this request, for the journal."""
        return f"{self.id}.{_new_id()}" if self.is_own_id else self.id

    def header(self, name: bytes) -> str:
        """A header by its lower-case name; empty if it is absent."""
        return self.fields.get(name, NOTHING).decode("latin-1")

    def has(self, name: bytes) -> bool:
        """Whether a header is present."""
        return name in self.fields

    def check_headers(self) -> None:
        """Refuse a repeated header that may occur only once."""
        given: list[Header] = self.scope["headers"]
        if len(given) == len(self.fields):
            return
        names = [name for name, _ in given]
        for name in SINGLE:
            if names.count(name) > 1:
                raise Refusal(400, Kind.VALIDATION, f"the header {name.decode()} is repeated; send it once")

    async def body(self) -> bytes:
        """The whole body, up to the size limit; Starlette's own method has no limit."""
        if self._whole is not None:
            return self._whole
        limit = self.max_body
        announced = self.fields.get(b"content-length", NOTHING)
        if announced.isdigit() and (len(announced) > MAX_DIGITS or int(announced) > limit):
            raise self._too_large()
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, Kind.VALIDATION, "the connection closed before the body was complete")
            chunk: bytes = message.get("body", NOTHING)
            size += len(chunk)
            if size > limit:
                raise self._too_large()
            if not message.get("more_body", False):
                self._whole = NOTHING.join((*chunks, chunk)) if chunks else chunk
                return self._whole
            chunks.append(chunk)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The bounded body, for methods of Starlette that read a stream."""
        yield await self.body()

    async def gone(self) -> None:
        """Wait until the client disconnects; call it after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":  # noqa: ASYNC110 - there is no event to wait for
            # A test server may answer at once, and other tasks must get their turn.
            await asyncio.sleep(0)

    def _too_large(self) -> Refusal:
        limit = self.max_body
        cure = Cure(f"send less, or raise {self.body_setting} in toolcrib.toml", "send less")
        return Refusal(
            413, Kind.LIMIT_EXCEEDED, f"the body is larger than {limit} bytes", cure=cure, details={"limit": limit}
        )


class Answer(NamedTuple):
    """A response; `policy` is its Content-Security-Policy. A `stream` is sent chunk by chunk instead of a body."""

    status: int = 200
    body: bytes = NOTHING
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()
    policy: bytes = NO_PAGE
    stream: AsyncGenerator[bytes, None] | None = None


def answer_json(value: object, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """A JSON response."""
    return Answer(status=status, body=write_json(value), headers=headers)


def answer_page(key: str, items: list[dict[str, object]], page: Page[Any], **more: object) -> Answer:
    """A response with a page of a listing; says so if the index is incomplete."""
    indexing = {"indexing": True} if page.indexing else {}
    return answer_json({key: items, "nextPageToken": page.next_token or None, **indexing, **more})


async def respond(request: Request, answer: Answer, send: Send) -> None:
    """Send the response; for HEAD the headers only, with the length of the body."""
    request.is_answered = True
    status, body, content_type, more, policy, stream = answer
    with_body = request.scope["method"] != "HEAD"
    headers: list[Header] = [*more, *request.always, (b"content-security-policy", policy)]
    if stream is not None:
        await _send_stream(stream, send, [*headers, (b"content-type", content_type)], with_body=with_body)
        return
    if status not in BODILESS:
        headers += ((b"content-type", content_type), (b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if with_body else NOTHING})


async def _send_stream(
    stream: AsyncGenerator[bytes, None], send: Send, headers: list[Header], *, with_body: bool
) -> None:
    # Starlette's StreamingResponse does not close the generator when sending is cancelled; ours has clean-up to do.
    async with aclosing(stream):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if with_body:
            async for piece in stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": NOTHING})


def _new_id() -> str:
    # A counter with a random prefix per process, as for call ids.
    return f"{_PREFIX}-{next(_NUMBERS)}"


async def until_gone(request: Request, work: Coroutine[object, object, T]) -> T:
    """Run the work and return its result; cancel it and raise CANCELLED if the client disconnects.

    Its first step runs inline: work that finishes there needs no watcher.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    watch = _Watch(request)
    try:
        return cast("T", await go_on(cast("CoroutineType[object, object, object]", work), waits_for))
    except asyncio.CancelledError:
        if not watch.end():
            raise
        raise ToolError(Kind.CANCELLED, "the client disconnected, and the call was cancelled") from None
    finally:
        watch.end()


class _Watch:
    """Cancels the task that created it when the client disconnects."""

    def __init__(self, request: Request) -> None:
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._has_struck = False
        self._is_over = False
        self._watching = asyncio.ensure_future(request.gone())
        self._watching.add_done_callback(self._strike)

    def end(self) -> bool:
        """Stop watching; True if only this watcher cancelled the task, and the cancellation is undone."""
        # Not by removing the callback: it may be scheduled already, and would cancel what follows.
        self._is_over = True
        self._watching.cancel()
        if not self._has_struck:
            return False
        self._has_struck = False
        return self._task.uncancel() == 0

    def _strike(self, watching: asyncio.Future[None]) -> None:
        if watching.cancelled() or watching.exception() is not None or self._is_over:
            return
        self._has_struck = True
        self._task.cancel()


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
    if not isinstance(rule, Body):
        raise TypeError("the endpoint takes no JSON")
    if not rule.optional:
        _check_type(request)
    raw = await request.body()
    if rule.optional:
        if not raw:
            return {}
        _check_type(request)
    read = read_jsonc if rule.comments else read_json
    if len(raw) <= READ_AT_ONCE:
        found = _read_now(raw, request.max_body, read)
    else:
        work = partial(_read_now, raw, request.max_body, read)
        found = await asyncio.get_running_loop().run_in_executor(_readers(), work)
    return found if rule.keys is None else only_keys(found, rule.keys)


async def read_raw(request: Request, limit: int, setting: str) -> bytes:
    """The bytes of a body of the endpoint's media type, up to its own limit, which `setting` configures."""
    rule = request.takes
    if rule is None or isinstance(rule, Body):
        raise TypeError("the endpoint takes no raw body")
    if request.header(b"content-type").partition(";")[0].strip().lower() != rule.media_type:
        given = request.header(b"content-type")[:80]
        message = f"the body is of type {given!r}; send {rule.media_type} with that Content-Type"
        raise Refusal(415, Kind.VALIDATION, message, headers=((b"accept-post", rule.media_type.encode()),))
    _refuse_compressed(request)
    request.max_body, request.body_setting = limit, setting
    return await request.body()


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
    if b"content-encoding" in request.fields:
        _refuse_compressed(request)


def _refuse_compressed(request: Request) -> None:
    if request.fields.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, Kind.VALIDATION, "the body is compressed; send it uncompressed, without Content-Encoding")


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
