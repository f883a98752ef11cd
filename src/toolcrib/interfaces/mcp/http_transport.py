"""Serve the protocol at `/mcp`: one request in each POST, answered as JSON or as a stream of events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from toolcrib.core.sources import VIEW, current_view
from toolcrib.features.access.view import ToolView, both, view_from_settings
from toolcrib.interfaces.mcp.client_link import Peer
from toolcrib.interfaces.mcp.header_values import check_arguments, check_standard
from toolcrib.interfaces.mcp.messages import (
    Code,
    Notification,
    ProtocolError,
    Request,
    Response,
    UnreadableError,
    read_message,
    write_error,
    write_notification,
    write_result,
)
from toolcrib.interfaces.mcp.resumption import Reader, ResumableStream, ResumableStreams, lost_request
from toolcrib.interfaces.mcp.server import McpServer, RequestCancelledError, log_level_of
from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.interfaces.mcp.subscriptions import LISTS
from toolcrib.interfaces.mcp.versions import (
    ASSUMED,
    STATELESS,
    VERSION_KEY,
    WIRES,
    check_stateless,
    initialize,
    is_stateless_request,
)
from toolcrib.model.call import Scope
from toolcrib.model.errors import Cure, Kind
from toolcrib.toolkit.http import JSON, Answer, until_gone
from toolcrib.toolkit.http.problems import Refusal, challenge, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable
    from typing import Any

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.seals import WireSession
    from toolcrib.model.result import Result
    from toolcrib.toolkit.http import Header
    from toolcrib.toolkit.http import Request as HttpRequest
    from toolcrib.toolkit.http.concurrency import Admission

EVENT_STREAM = b"text/event-stream"
SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
EVENT_HEADER = b"last-event-id"
# Proxies that buffer answers are asked not to.
UNBUFFERED: Header = (b"x-accel-buffering", b"no")
QUIET_SECONDS = 15.0
STILL_HERE = b": still here\n\n"
MAX_QUEUED = 1_000
# A call in a session that takes longer is answered with a stream, which a client that is cut off can resume.
BEGIN_SECONDS = 5.0
# A stream ends by itself before the server would cut it off.
SHARE_OF_TIME = 0.9
LOCAL, LOCAL_CALLER = "local", "mcp:local"
UNKNOWN_TOOL = "(unknown)"
METHOD_NOT_ALLOWED = 405
STATUSES = {
    Code.PARSE: 400,
    Code.INVALID_REQUEST: 400,
    Code.INVALID_PARAMS: 400,
    Code.HEADER_MISMATCH: 400,
    Code.MISSING_CAPABILITY: 400,
    Code.UNSUPPORTED_VERSION: 400,
    Code.METHOD_NOT_FOUND: 404,
}


class CallMetrics(Protocol):
    """Counts calls by their outcome."""

    def note_call(self, tool: str, outcome: str) -> None:
        """Count one call of a tool; the outcome is `ok` or a kind of error."""


class Service(Protocol):
    """What this interface uses of the running server."""

    admission: Admission

    @property
    def metrics(self) -> CallMetrics:
        """What is counted."""


class HttpHost(Protocol):
    """What these endpoints are made from."""

    @property
    def crib(self) -> Crib:
        """The crib that is served."""

    @property
    def service(self) -> Service:
        """The running server."""

    @property
    def ending(self) -> asyncio.Event:
        """Set when the server ends."""


class Events:
    """Messages queued for a client, as events of a stream; those that the client does not read in time are dropped."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self.arrived = asyncio.Event()

    def put(self, message: bytes) -> None:
        """Queue a message."""
        if len(self._waiting) < MAX_QUEUED:
            self._waiting.append(message)
        self.arrived.set()

    def take(self) -> bytes:
        """All that is queued, as events."""
        messages, self._waiting = self._waiting, []
        self.arrived.clear()
        return b"".join(event(message) for message in messages)


class McpEndpoints:
    """The endpoint of the protocol, and the streams that it opens."""

    def __init__(self, host: HttpHost) -> None:
        self._crib = host.crib
        self._metrics = host.service.metrics
        self._max_body = host.crib.settings["server"].body_bytes
        self._stream_seconds = host.crib.settings["server"].total_seconds * SHARE_OF_TIME
        admission = host.service.admission
        self._server = McpServer(
            host.crib,
            admission=lambda: admission,
            note_call=self._note_call,
            ending=host.ending,
            stream_seconds=self._stream_seconds,
        )
        self._ending = host.ending
        self._streams = ResumableStreams()
        # What clients without a token see, beside what every such client of the server does.
        self._local_view = view_from_settings(host.crib.settings.table(McpSettings))
        self._closing: asyncio.Task[None] | None = None

    async def post(self, http: HttpRequest) -> Answer:
        """POST /mcp."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_at_the_end())
        _check_type(http)
        self._limit(http)
        message = None
        is_stateless = False
        try:
            message = read_message(await http.body(), self._max_body)
            if isinstance(message, Request):
                is_stateless = _is_stateless(message, http)
                return await self._answer(message, http, is_stateless=is_stateless)
            return self._take(message, http)
        except UnreadableError as problem:
            return _refuse(problem.id, problem, is_stateless=True)
        except ProtocolError as problem:
            request_id = message.id if isinstance(message, Request) else None
            return _refuse(request_id, problem, is_stateless=is_stateless)

    async def listen(self, http: HttpRequest) -> Answer:
        """GET /mcp: the stream of changes of a session of the older wire."""
        self._limit(http)
        try:
            session = self._session(http)
            if b"text/event-stream" not in http.fields.get(b"accept", b""):
                raise ProtocolError(Code.INVALID_REQUEST, "accept text/event-stream", status=406)
            peer, event_id = self._peer(session, http), _header(http, EVENT_HEADER)
            stream = await self._resume(event_id, peer) if event_id else await self._stream_changes(peer)
        except ProtocolError as problem:
            return _refuse(None, problem, is_stateless=False)
        return await _stream(self._follow(http, stream))

    async def _resume(self, event_id: str, peer: Peer) -> ResumableStream:
        """The rest of a stream; if it is gone, a stream whose error ends the client's wait."""
        stream = self._streams.resume(event_id, peer)
        if stream is not None:
            return stream
        request_id = lost_request(event_id)
        if request_id is not None:
            stream = ResumableStream(peer, request_id)
            lost = ProtocolError(Code.INTERNAL, "the stream of this request is gone; make the request again")
            stream.finish(write_error(request_id, lost))
            return stream
        stream = await self._stream_changes(peer)
        # It is unknown what has changed meanwhile, so every list counts as changed.
        for method in LISTS.values():
            stream.put(write_notification(method))
        return stream

    async def _stream_changes(self, peer: Peer) -> ResumableStream:
        stream = ResumableStream(peer)
        try:
            listener = await self._server.listen_to_all(peer, stream.put)
        except ProtocolError:
            # A client that came back without the id of its last event needs no stream that waits for it.
            if not self._streams.give_up_left_listener(peer):
                raise
            listener = await self._server.listen_to_all(peer, stream.put)
        stream.end = lambda: self._server.changes.remove(listener)
        return stream

    async def _follow(self, http: HttpRequest, stream: ResumableStream) -> AsyncGenerator[bytes, None]:
        """The events of a stream, until it is over or its client is gone."""
        reader = self._streams.open(stream)
        try:
            yield b""
            yield stream.begin()
            end = _first_of(stream.over.wait(), reader.replaced.wait(), self._ending.wait())
            async for piece in self._until(http, reader, end):
                yield piece
            if stream.over.is_set():
                yield reader.take()
        finally:
            self._streams.leave(reader)

    async def end(self, http: HttpRequest) -> Answer:
        """DELETE /mcp: the end of a session."""
        try:
            session = self._session(http)
            self._server.sessions.end(_header(http, SESSION_HEADER), session.caller)
        except ProtocolError as problem:
            return _refuse(None, problem, is_stateless=False)
        self._server.forget(session.id)
        self._streams.close(session.id)
        return Answer(status=204)

    async def _close_at_the_end(self) -> None:
        """Stop what waits for answers of clients when the server ends."""
        await self._ending.wait()
        self._streams.close()
        self._server.close()

    # --- messages ------------------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, http: HttpRequest, *, is_stateless: bool) -> Answer:
        if is_stateless:
            peer = self._stateless_peer(request, http)
        elif request.method == "initialize":
            return self._initialize(request, http)
        else:
            peer = self._peer(self._session(http), http)
        if request.method == "tools/call":
            _require_invoke(http)
        if self._server.may_send(request):
            return await self._converse(request, peer, http)
        result = await until_gone(http, self._server.answer(request, peer, _drop))
        return Answer(body=write_result(request.id, result))

    async def _converse(self, request: Request, peer: Peer, http: HttpRequest) -> Answer:
        """Answer with JSON if nothing is sent before, else with a stream."""
        if not peer.wire.is_stateless:
            return await self._converse_in_session(request, peer, http)
        events = Events()
        work = asyncio.create_task(self._server.answer(request, peer, events.put))
        try:
            await until_gone(http, _first(work, events))
        except BaseException:
            work.cancel()
            raise
        if not events.arrived.is_set():
            return Answer(body=write_result(request.id, _outcome(work)))

        async def stream() -> AsyncGenerator[bytes, None]:
            try:
                yield b""
                async for piece in self._until(http, events, asyncio.shield(work)):
                    yield piece
                if work.done():
                    yield events.take() + event(_write_outcome(request, work))
            finally:
                work.cancel()

        return await _stream(stream())

    async def _converse_in_session(self, request: Request, peer: Peer, http: HttpRequest) -> Answer:
        """Answer with JSON if nothing is sent before, else with a stream, which goes on for a while without its client."""
        stream = ResumableStream(peer, request.id)
        work = asyncio.create_task(self._server.answer(request, peer, stream.put))
        stream.end = work.cancel
        try:
            await until_gone(http, _first(work, stream, BEGIN_SECONDS))
        except BaseException:
            work.cancel()
            raise
        if work.done() and not stream.arrived.is_set():
            return Answer(body=write_result(request.id, _outcome(work)))
        work.add_done_callback(lambda _: stream.finish(_write_outcome(request, work)))
        return await _stream(self._follow(http, stream))

    def _take(self, message: Notification | Response, http: HttpRequest) -> Answer:
        """Take a message that is not answered."""
        version = _header(http, VERSION_HEADER)
        if http.has(SESSION_HEADER) and version != STATELESS.version:
            peer = self._peer(self._session(http), http)
            if isinstance(message, Response):
                if not self._server.questions.answer(message, peer):
                    raise ProtocolError(
                        Code.INVALID_REQUEST, "no question with this id waits for an answer", status=400
                    )
            elif message.method == "notifications/cancelled":
                self._server.running.cancel(peer, message.params)
        elif isinstance(message, Response):
            raise ProtocolError(Code.INVALID_REQUEST, "this wire has no requests of the server", status=400)
        return Answer(status=202)

    def _initialize(self, request: Request, http: HttpRequest) -> Answer:
        wire, capabilities, result = initialize(request.params)
        token = self._server.sessions.open(wire, capabilities, _caller(http))
        return Answer(body=write_result(request.id, result), headers=((SESSION_HEADER, token.encode()),))

    def _limit(self, http: HttpRequest) -> None:
        """Limit a client without a token to what this interface shows such clients."""
        if http.caller == LOCAL and self._local_view is not None:
            view = current_view()
            VIEW.set(both(view if isinstance(view, ToolView) else None, self._local_view))

    # --- who asks ------------------------------------------------------------------------------------------------------

    def _stateless_peer(self, request: Request, http: HttpRequest) -> Peer:
        meta = request.params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str):
            check_standard(request, http.fields, version)
        capabilities = check_stateless(request.params)
        if request.method == "tools/call":
            self._check_arguments(request, http)
        return Peer(caller=_caller(http), wire=STATELESS, capabilities=capabilities, log_level=log_level_of(request))

    def _check_arguments(self, request: Request, http: HttpRequest) -> None:
        served, arguments = self._server.tools.called_by(request), request.params.get("arguments", {})
        if served is not None and served.headers and isinstance(arguments, dict):
            check_arguments(served.headers, arguments, http.scope["headers"])

    def _session(self, http: HttpRequest) -> WireSession:
        version = _header(http, VERSION_HEADER)
        wire = WIRES.get(version or ASSUMED.version)
        if wire is None or wire.is_stateless:
            raise ProtocolError(
                Code.INVALID_REQUEST, "sessions are part of older versions; send a POST", status=METHOD_NOT_ALLOWED
            )
        token = _header(http, SESSION_HEADER)
        if not token:
            message = "send the header Mcp-Session-Id; initialize gives one"
            raise ProtocolError(
                Code.INVALID_REQUEST, message, status=METHOD_NOT_ALLOWED if http.method in {"GET", "DELETE"} else 400
            )
        return self._server.sessions.find(token, _caller(http))

    def _peer(self, session: WireSession, http: HttpRequest) -> Peer:
        return Peer(
            caller=session.caller,
            wire=session.wire,
            capabilities=session.capabilities,
            session=session.id,
            log_level=self._server.state(session.id).log_level,
        )

    # --- streams -------------------------------------------------------------------------------------------------------

    async def _until(
        self, http: HttpRequest, events: Events | Reader, end: Awaitable[Any]
    ) -> AsyncGenerator[bytes, None]:
        """The events until the end comes, the client is gone, or a stream has lasted as long as one may."""
        loop = asyncio.get_running_loop()
        last = loop.time() + self._stream_seconds
        stops: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(end),
            asyncio.ensure_future(http.gone()),
        }
        try:
            while not any(stop.done() for stop in stops) and (left := last - loop.time()) > 0:
                arrived = asyncio.ensure_future(events.arrived.wait())
                awaited: set[asyncio.Future[Any]] = {arrived, *stops}
                await asyncio.wait(awaited, timeout=min(left, QUIET_SECONDS), return_when=asyncio.FIRST_COMPLETED)
                arrived.cancel()
                if piece := events.take():
                    yield piece
                elif not any(stop.done() for stop in stops):
                    yield STILL_HERE
        finally:
            for stop in stops:
                stop.cancel()

    def _note_call(self, tool: str, result: Result) -> None:
        self._metrics.note_call(tool or UNKNOWN_TOOL, "ok" if result.error is None else str(result.error.kind))


async def _first_of(*several: Awaitable[object]) -> None:
    """Wait until one of them is done."""
    awaited = [asyncio.ensure_future(one) for one in several]
    try:
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in awaited:
            waiting.cancel()


async def _first(work: asyncio.Task[object], events: Events | ResumableStream, seconds: float | None = None) -> None:
    """Wait until the work is done, or has sent something, or for so long."""
    arrived = asyncio.ensure_future(events.arrived.wait())
    try:
        await asyncio.wait({work, arrived}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        arrived.cancel()


def event(message: bytes) -> bytes:
    """One event of a stream; JSON has no line ends of its own, so one line of data holds it."""
    return b"event: message\ndata: " + message + b"\n\n"


def _outcome(work: asyncio.Task[object]) -> object:
    try:
        return work.result()
    except asyncio.CancelledError:
        raise RequestCancelledError from None


def _write_outcome(request: Request, work: asyncio.Task[object]) -> bytes:
    try:
        return write_result(request.id, _outcome(work))
    except ProtocolError as problem:
        return write_error(request.id, problem)


async def _stream(stream: AsyncGenerator[bytes, None]) -> Answer:
    """The answer that is a stream, of which the first piece is empty."""
    # A generator that was never begun is closed without its clean-up: for HEAD, and for a client that is gone by now.
    await anext(stream)
    return Answer(content_type=EVENT_STREAM, headers=(UNBUFFERED,), stream=stream)


def _refuse(request_id: object, problem: ProtocolError, *, is_stateless: bool) -> Answer:
    status = problem.status or (STATUSES.get(problem.code, 200) if is_stateless else 200)
    headers: tuple[Header, ...] = ((b"allow", b"POST"),) if status == METHOD_NOT_ALLOWED else ()
    if problem.retry_after is not None:
        headers = (*headers, retry_after(problem.retry_after))
    return Answer(status=status, body=write_error(request_id, problem), content_type=JSON, headers=headers)  # type: ignore[arg-type]  # it was read as an id


def _is_stateless(request: Request, http: HttpRequest) -> bool:
    """Whether a request is one of the stateless wire; one that says nothing of its version is older."""
    version = _header(http, VERSION_HEADER)
    wire = WIRES.get(version)
    # One whose body names another version is held to the rule of the stateless wire that both are the same.
    if wire is not None and request.meta.get(VERSION_KEY, version) == version:
        return wire.is_stateless
    return bool(version) or is_stateless_request(request.params)


def _caller(http: HttpRequest) -> str:
    return LOCAL_CALLER if http.caller == LOCAL else http.caller


def _header(http: HttpRequest, name: bytes) -> str:
    return http.fields.get(name, b"").strip(b" \t").decode("latin-1")


def _check_type(http: HttpRequest) -> None:
    content_type = http.fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if content_type != JSON:
        raise Refusal(415, Kind.VALIDATION, "send JSON with Content-Type: application/json")
    if http.fields.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, Kind.VALIDATION, "the body is compressed; send it as it is, without Content-Encoding")


def _require_invoke(http: HttpRequest) -> None:
    if Scope.INVOKE not in http.scopes:
        cure = Cure("make one that may: crib token create NAME --scope invoke", "ask the operator for one that may")
        wanted = {Scope.INVOKE, *http.scopes} if http.metadata_url else {Scope.INVOKE}
        header = challenge(error="insufficient_scope", scope=" ".join(sorted(wanted)), metadata_url=http.metadata_url)
        raise Refusal(403, Kind.AUTH, "the token may not invoke", cure=cure, headers=(header,))


def _drop(message: bytes) -> None:
    del message
