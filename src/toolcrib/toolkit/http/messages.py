"""A request as it came in, and the answer as it goes out."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import orjson

from toolcrib.core.execution import go_on
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping
    from types import CoroutineType

    Scope = MutableMapping[str, object]
    Message = MutableMapping[str, object]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Header = tuple[bytes, bytes]
    T = TypeVar("T")

JSON = b"application/json"
PROBLEM = b"application/problem+json"
NOTHING = b""
MAX_DIGITS = 15
# For what is no page: nothing in it is to be loaded or shown.
NO_PAGE = b"default-src 'none'; frame-ancestors 'none'"

# What two of would let two readers of one request read it differently.
SINGLE = (
    b"host",
    b"authorization",
    b"origin",
    b"content-type",
    b"content-length",
    b"if-match",
    b"if-none-match",
    b"last-event-id",
)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

_PREFIX = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


class Request:
    """What a client sent. `words` are the free parts of its path, `caller` is who it was found to come from.

    `id` is the client's own where it sent a usable one. `call_id` begins with it and is never the same twice, because a
    client may use its own again.
    """

    __slots__ = ("_receive", "caller", "headers", "id", "is_call", "is_own_id", "method", "scope", "words")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.method = str(scope["method"])
        self.words: tuple[str, ...] = ()
        self.caller = ""
        self.is_call = False
        self._receive = receive
        given: list[Header] = scope["headers"]  # type: ignore[assignment]  # ASGI says so
        self.headers = dict(given)
        own = self.headers.get(b"x-request-id", NOTHING)
        self.is_own_id = REQUEST_ID.fullmatch(own) is not None
        self.id = own.decode() if self.is_own_id else _new_id()

    @property
    def call_id(self) -> str:
        """How the journal names a call that this request makes."""
        return f"{self.id}.{_new_id()}" if self.is_own_id else self.id

    def header(self, name: bytes) -> str:
        """A header by its name in small letters; empty if it is not there."""
        return self.headers.get(name, NOTHING).decode("latin-1")

    def has(self, name: bytes) -> bool:
        """Whether a header is there."""
        return name in self.headers

    def check_headers(self) -> None:
        """Refuse a header that stands twice and may stand only once."""
        given: list[Header] = self.scope["headers"]  # type: ignore[assignment]  # ASGI says so
        if len(given) == len(self.headers):
            return
        names = [name for name, _ in given]
        for name in SINGLE:
            if names.count(name) > 1:
                raise Refusal(400, Kind.VALIDATION, f"the header {name.decode()} stands more than once; send it once")

    async def body(self, limit: int) -> bytes:
        """All of the body, as far as it is no larger than the limit."""
        announced = self.header(b"content-length")
        if announced.isdecimal() and (len(announced) > MAX_DIGITS or int(announced) > limit):
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, Kind.VALIDATION, "the connection closed before the body was complete")
            chunk: bytes = message.get("body", NOTHING)  # type: ignore[assignment]  # ASGI says so
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if not message.get("more_body", False):
                return NOTHING.join((*chunks, chunk)) if chunks else chunk
            chunks.append(chunk)

    async def gone(self) -> None:
        """Wait until the client is gone; to be asked once the body has been read."""
        while (await self._receive())["type"] != "http.disconnect":  # noqa: ASYNC110 - there is no event to wait for
            # A server that has nothing to tell may answer at once, and others must get their turn.
            await asyncio.sleep(0)


class Answer(NamedTuple):
    """What a client is sent; `policy` is what a browser may do with it. A `stream` is sent piece by piece in place of a body."""

    status: int = 200
    body: bytes = NOTHING
    content_type: bytes = JSON
    headers: tuple[Header, ...] = ()
    policy: bytes = NO_PAGE
    stream: AsyncGenerator[bytes, None] | None = None


def answer_json(value: object, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """An answer that is JSON."""
    return Answer(status=status, body=to_bytes(value), headers=headers)


def to_bytes(value: object) -> bytes:
    """JSON, also of what its quick writer refuses: integers beyond 64 bit, halves of characters, what only has a text."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=str).encode()


async def send_answer(answer: Answer, send: Send, *, more: tuple[Header, ...] = (), with_body: bool = True) -> None:
    """Send the answer; an answer to HEAD says how long its body would be and leaves it out."""
    headers: list[Header] = [*answer.headers, *more, (b"content-security-policy", answer.policy)]
    if answer.stream is not None:
        await _send_stream(answer.stream, send, [*headers, (b"content-type", answer.content_type)], with_body=with_body)
        return
    if answer.status not in (204, 304):
        headers += ((b"content-type", answer.content_type), (b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body if with_body else NOTHING})


async def _send_stream(
    stream: AsyncGenerator[bytes, None], send: Send, headers: list[Header], *, with_body: bool
) -> None:
    # Also who breaks off must be seen to have left.
    async with aclosing(stream):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if with_body:
            async for piece in stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": NOTHING})


def _new_id() -> str:
    # A counter behind random letters of the process, as ids of calls are.
    return f"{_PREFIX}-{next(_NUMBERS)}"


def _too_large(limit: int) -> Refusal:
    message = f"the body is larger than {limit} bytes; send less, or raise http.body_bytes in toolcrib.toml"
    return Refusal(413, Kind.LIMIT_EXCEEDED, message, details={"limit": limit})


# MERGED toolcrib.faces.http.marks

# Entity tags: whether what a client knows is still so.

# At least one quoted text, weak or not, with commas between them.
_TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')
_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e]*")')
ANY = "*"


def etag_header(etag: str) -> Header:
    """The header that names what is answered."""
    return (b"etag", etag.encode())


def wanted_mark(request: Request, current: Callable[[], str]) -> str:
    """The tag that must still hold for a change to be made; empty where the client demands nothing.

    `current` reads the tag of now, where the client names several or any; it raises where there is nothing to change.
    """
    if request.has(b"if-none-match"):
        _refuse_present(request, current)
    if not request.has(b"if-match"):
        return ""
    given = request.header(b"if-match").strip()
    tags = [] if given == ANY else _read(given, "If-Match")
    strong = [tag for is_weak, tag in tags if not is_weak]
    if len(strong) == 1 == len(tags):
        return strong[0]
    now = _now(request, current)
    if given == ANY or now in strong:
        return now
    raise Refusal(412, Kind.CONFLICT, "it has changed since; read it again", details={"etag": now})


def unchanged(request: Request, etag: str) -> Answer | None:
    """The answer to a client that knows it already; None for one that does not."""
    if not request.has(b"if-none-match"):
        return None
    given = request.header(b"if-none-match").strip()
    if given == ANY or any(tag == etag for _, tag in _read(given, "If-None-Match")):
        return Answer(status=304, headers=(etag_header(etag),))
    return None


def _refuse_present(request: Request, current: Callable[[], str]) -> None:
    """Keep a PUT that is to make something new (`If-None-Match: *`) from changing what is there.

    Looking before the write is enough: a tool that is there is never changed, and two who make one bundle at once would
    each have to have thought of the same id.
    """
    if request.method != "PUT" or request.header(b"if-none-match").strip() != ANY:
        message = (
            "If-None-Match is for reading, or * for a PUT of what is new; to change only what you know, send If-Match"
        )
        raise Refusal(400, Kind.VALIDATION, message)
    if request.has(b"if-match"):
        message = "If-Match wants it to be there, If-None-Match: * wants it not to be; send one of the two"
        raise Refusal(400, Kind.VALIDATION, message)
    try:
        now = current()
    except ToolError as problem:
        if problem.kind is not Kind.NOT_FOUND:
            raise
        return
    raise Refusal(412, Kind.CONFLICT, "If-None-Match: it is there already", details={"etag": now})


def _now(request: Request, current: Callable[[], str]) -> str:
    try:
        return current()
    except ToolError as problem:
        if problem.kind is not Kind.NOT_FOUND or request.method != "PUT":
            raise
        raise Refusal(412, Kind.CONFLICT, f"If-Match: {problem.message}", details={"etag": ""}) from problem


def _read(given: str, name: str) -> list[tuple[bool, str]]:
    if not _TAGS.fullmatch(given):
        message = f'{name}: write tags as answers give them, such as "…", or *'
        raise Refusal(400, Kind.VALIDATION, message)
    return [(bool(weak), tag) for weak, tag in _TAG.findall(given)]


# MERGED toolcrib.faces.http.leaving

# Work that is stopped when the client that asked for it goes away.


async def until_gone(request: Request, work: Coroutine[object, object, T]) -> T:
    """What the work comes to; raises CANCELLED if the client did not wait for it.

    The first step is taken at once: what ends there needs nobody who watches the client.
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
        raise ToolError(Kind.CANCELLED, "the client went away, and the call was stopped") from None
    finally:
        watch.end()


class _Watch:
    """Cancels the task that it was made in when the client is gone."""

    def __init__(self, request: Request) -> None:
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._has_struck = False
        self._watching = asyncio.ensure_future(request.gone())
        self._watching.add_done_callback(self._strike)

    def end(self) -> bool:
        """Watch no longer; True if the task was cancelled from here and by nobody else, which is taken back."""
        self._watching.remove_done_callback(self._strike)
        self._watching.cancel()
        if not self._has_struck:
            return False
        self._has_struck = False
        return self._task.uncancel() == 0

    def _strike(self, watching: asyncio.Future[None]) -> None:
        if watching.cancelled() or watching.exception() is not None:
            return
        self._has_struck = True
        self._task.cancel()
