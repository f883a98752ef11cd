"""Bridge a client on standard input and output to the `/mcp` endpoint of a remote server.

Each message is one POST, and what the server answers is passed on as it arrives: progress, questions, the result. On the older
wire changes come in a stream of their own, and an answer that is cut off is resumed.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from toolcrib.client.connection import MAX_ANSWER_BYTES, TOKEN_VARIABLE, Connection, error_of, is_problem
from toolcrib.infra.plain_code import run_async
from toolcrib.interfaces.mcp.header_values import NAMED, argument_headers, encode, header_rules
from toolcrib.interfaces.mcp.messages import (
    Code,
    Notification,
    ProtocolError,
    Request,
    failed,
    write_error,
)
from toolcrib.interfaces.mcp.stdio_handshake import Handshake, take_stdio
from toolcrib.interfaces.mcp.stdio_transport import DRAIN_SECONDS, MAX_RUNNING, Lines, Reader, Writer, read_line
from toolcrib.interfaces.mcp.versions import VERSION_KEY
from toolcrib.lib.server_sent_events import EventReader
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli import ExitCode, WrongUseError, log_on_stderr

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolcrib.infra.egress import Response
    from toolcrib.interfaces.mcp.header_values import HeaderRule
    from toolcrib.interfaces.mcp.messages import Message, Params

PATH = "/mcp"
# How long the server may take for an answer that is not a stream, and how long a stream may be silent.
SECONDS = 600.0
QUIET_SECONDS = 60.0
RESUME_TRIES = 10
LISTEN = "subscriptions/listen"
REFUSED = 400
UNAUTHORIZED = 401
FORBIDDEN = 403
MAX_EVENT_ID = 2_000
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def bridge_server(url: str, token: str | None) -> ExitCode:
    """Bridge the client on standard input and output to the server at the URL until the client closes its end."""
    try:
        connection = Connection(url, token)
    except ToolError as problem:
        if problem.kind is Kind.VALIDATION:
            raise WrongUseError(f"--url: {problem.message}") from problem
        raise
    handshake = take_stdio()
    with log_on_stderr():
        run_async(_bridge(connection, handshake))
    return ExitCode.DONE


async def _bridge(connection: Connection, handshake: Handshake) -> None:
    bridge = Bridge(connection, handshake)
    for one in (signal.SIGTERM, signal.SIGHUP):
        # Only the main thread can handle signals.
        with suppress(RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(one, bridge.stop)
    try:
        await bridge.run()
    finally:
        await connection.close()


class Bridge:
    """One client here and one server elsewhere; the session of the older wire is the server's."""

    def __init__(self, connection: Connection, handshake: Handshake) -> None:
        self._connection = connection
        self._handshake = handshake
        self._writer = Writer(handshake.target, self.stop)
        self._running: dict[object, asyncio.Task[None]] = {}
        self._over = asyncio.Event()
        # Every message after an `initialize` waits until that was answered.
        self._order = asyncio.Lock()
        self._session: dict[str, str] = {}
        self._listening: asyncio.Task[None] | None = None
        self._subscriptions: set[object] = set()
        self._rules: dict[str, tuple[HeaderRule, ...]] = {}

    async def run(self) -> None:
        """Pass messages on until the client closes its end, and answer what it asked before that."""
        loop, feed = asyncio.get_running_loop(), Lines(self._receive).feed
        Reader(self._handshake.source, loop, feed, self._over.set, self._writer.wait_for_room).start()
        await self._over.wait()
        # Streams without an end are cancelled.
        for endless in (self._listening, *map(self._running.get, self._subscriptions)):
            if endless is not None:
                endless.cancel()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=DRAIN_SECONDS)
        for task in tuple(self._running.values()):
            task.cancel()
        await asyncio.to_thread(self._writer.close)

    def stop(self) -> None:
        """End at once."""
        for task in tuple(self._running.values()):
            task.cancel()
        self._over.set()

    def _receive(self, line: bytes | None) -> None:
        """Take one line; None for one that was too long."""
        message = read_line(line, self._writer)
        if line is None or message is None:
            return
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            request_id = message.params.get("requestId")
            # In Python True is 1 and False is 0, which are ids of other requests.
            if (
                isinstance(request_id, str | int)
                and not isinstance(request_id, bool)
                and (cancelled := self._running.get(request_id))
            ):
                # The server sees it as the end of the request.
                cancelled.cancel()
        key = message.id if isinstance(message, Request) else object()
        if len(self._running) >= MAX_RUNNING or key in self._running:
            if isinstance(message, Request):
                refusal = ProtocolError(Code.INVALID_REQUEST, "too many requests, or one with this id, are under way")
                self._writer.answer(write_error(message.id, refusal))
            return
        task = asyncio.get_running_loop().create_task(self._pass_on(line, message))
        self._running[key] = task
        if isinstance(message, Request) and message.method == LISTEN:
            self._subscriptions.add(key)
        task.add_done_callback(lambda _: self._forget(key))

    def _forget(self, key: object) -> None:
        self._running.pop(key, None)
        self._subscriptions.discard(key)

    async def _pass_on(self, line: bytes, message: Message) -> None:
        request_id = message.id if isinstance(message, Request) else None
        try:
            if isinstance(message, Request) and message.method == "initialize":
                async with self._order:
                    self._session = {}
                    await self._exchange(line, message, {})
            else:
                async with self._order:
                    headers = self._headers(message) or self._session
                await self._exchange(line, message, headers)
        except ToolError as problem:
            if request_id is not None:
                self._writer.answer(write_error(request_id, failed(problem)))
        if isinstance(message, Notification) and message.method == "notifications/initialized":
            self._listen()

    async def _exchange(self, line: bytes, message: Message, headers: dict[str, str]) -> None:
        """Send a message, and pass on what the server answers as it comes."""
        wanted = message.id if isinstance(message, Request) else None
        cut = Cut()
        try:
            if await self._converse("POST", headers, line, cut, message):
                return
        except ToolError:
            # Only a stream of the older wire can be resumed, and only one of which an event was seen.
            if not cut.event_id or "MCP-Session-Id" not in headers:
                raise
        if wanted is None:
            return
        for _ in range(RESUME_TRIES):
            if not cut.event_id or "MCP-Session-Id" not in headers:
                break
            await asyncio.sleep(cut.retry_seconds)
            with suppress(ToolError):
                if await self._converse("GET", {**headers, "Last-Event-ID": cut.event_id}, None, cut, message):
                    return
        reason = (
            f"{self._connection.url} ended the answer before the result; what it did is unknown, make the request again"
        )
        raise ToolError(Kind.TRANSIENT, reason, partial_side_effects=True)

    async def _converse(
        self, method: str, headers: dict[str, str], body: bytes | None, cut: Cut, message: Message | None
    ) -> bool:
        """Pass on the messages of one answer; whether the one that was asked for is among them, or nothing was asked for."""
        wanted = message.id if isinstance(message, Request) else None
        is_answered = wanted is None
        asking = self._connection.stream(method, PATH, {**ACCEPT, **headers}, body, SECONDS)
        async with asking as (response, pieces):
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            if not is_stream:
                answer = await self._read_whole(response, pieces)
                if message is None:
                    raise ToolError(Kind.PERMANENT, f"{self._connection.url} has no stream of changes")
                if answer:
                    self._note(message, response, answer)
                    self._writer.answer(answer)
                return True
            async for found in _read_events(_in_time(pieces, QUIET_SECONDS), cut):
                one = self._check(found, response)
                if wanted is not None and _answers(one, wanted):
                    is_answered = True
                    self._note(message, response, found)
                if "id" in one:
                    self._writer.answer(_one_line(found))
                else:
                    self._writer.notify(_one_line(found))
        return is_answered

    async def _read_whole(self, response: Response, pieces: AsyncIterator[bytes]) -> bytes:
        """An answer of one message; empty where there is none. Raises for one that is not part of the protocol."""
        body = bytearray()
        async for piece in _in_time(pieces, SECONDS):
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                reason = f"{self._connection.url} answers with more than {MAX_ANSWER_BYTES} bytes"
                raise ToolError(Kind.LIMIT_EXCEEDED, reason)
        if not body and response.status < REFUSED:
            return b""
        self._check(bytes(body), response)
        return _one_line(bytes(body))

    def _listen(self) -> None:
        """Open the stream of changes, which the older wire has apart from the answers."""
        if self._listening is not None:
            self._listening.cancel()
        if "MCP-Session-Id" in self._session:
            self._listening = asyncio.create_task(self._stream_changes(dict(self._session)))

    async def _stream_changes(self, headers: dict[str, str]) -> None:
        cut = Cut()
        while True:
            resumed = {"Last-Event-ID": cut.event_id} if cut.event_id else {}
            try:
                await self._converse("GET", {**headers, **resumed}, None, cut, None)
            except ToolError as problem:
                if problem.kind not in {Kind.TRANSIENT, Kind.TIMEOUT}:
                    return
            await asyncio.sleep(cut.retry_seconds)

    def _note(self, message: Message | None, response: Response, answer: bytes) -> None:
        """Remember what later messages need of an answer."""
        if not isinstance(message, Request):
            return
        result = orjson.loads(answer).get("result")
        # What is of another shape is passed on all the same: the client judges it.
        if isinstance(result, dict) and message.method == "initialize":
            self._note_session(response, result.get("protocolVersion"))
        elif isinstance(result, dict) and message.method == "tools/list":
            self._note_tools(result.get("tools"))

    def _note_session(self, response: Response, version: object) -> None:
        if isinstance(version, str):
            self._session = {"MCP-Protocol-Version": encode(version)}
            if session := response.headers.get("mcp-session-id"):
                self._session["MCP-Session-Id"] = session

    def _note_tools(self, tools: object) -> None:
        """Remember which arguments the tools of a list want repeated in headers."""
        for tool in tools if isinstance(tools, list) else ():
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str) and (rules := header_rules(tool.get("inputSchema", {}))):
                self._rules[name] = rules

    def _headers(self, message: Message) -> dict[str, str]:
        """What a stateless request repeats in its headers; nothing for a message of the older wire."""
        if not isinstance(message, Request) or not isinstance(version := message.meta.get(VERSION_KEY), str):
            return {}
        headers = {"MCP-Protocol-Version": encode(version), "Mcp-Method": encode(message.method)}
        named = message.params.get(NAMED.get(message.method, ""))
        if not isinstance(named, str):
            return headers
        rules = self._rules.get(named, ()) if message.method == "tools/call" else ()
        return headers | {"Mcp-Name": encode(named)} | argument_headers(rules, message.params.get("arguments"))

    def _check(self, raw: bytes, response: Response) -> Params:
        """A message of the protocol; raises for any other answer, with what the server says."""
        with suppress(ValueError):
            found = orjson.loads(raw)
            if isinstance(found, dict) and found.get("jsonrpc") == "2.0":
                return found
            if isinstance(found, dict) and response.status in {UNAUTHORIZED, FORBIDDEN}:
                cure = f"put a token that may do it into the variable {TOKEN_VARIABLE}"
                raise ToolError(Kind.AUTH, f"{self._connection.url}: {found.get('detail')!s:.500}; {cure}")
            if isinstance(found, dict) and response.status >= REFUSED and is_problem(found):
                raise error_of(found)
        why = f"{self._connection.url} answers with status {response.status}"
        if response.status == UNAUTHORIZED:
            raise ToolError(Kind.AUTH, f"{why}; put a token that it knows into the variable {TOKEN_VARIABLE}")
        if "location" in response.headers:
            raise ToolError(
                Kind.PERMANENT, f"{why} and sends its clients elsewhere; give that URL, if it is the server"
            )
        raise ToolError(Kind.PERMANENT, f"{why} and not as a server of this protocol; is this the URL of crib serve?")


class Cut:
    """Where a stream was cut off: the last event received, and when to reconnect."""

    def __init__(self) -> None:
        self.event_id = ""
        self.retry_seconds = 1.0

    def note(self, event_id: str) -> None:
        """Note the id of an event; one that is too long is passed over, and one that no header can hold is none."""
        if len(event_id) <= MAX_EVENT_ID:
            self.event_id = event_id if event_id.isascii() else ""


async def _read_events(pieces: AsyncIterator[bytes], cut: Cut) -> AsyncIterator[bytes]:
    """The messages of a stream as they arrive; an empty event has only an id."""
    reader = EventReader(MAX_ANSWER_BYTES)
    async for piece in pieces:
        try:
            events = reader.feed(piece)
        except ValueError as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the server sent {problem}") from None
        if reader.retry_seconds is not None:
            cut.retry_seconds = reader.retry_seconds
        for event in events:
            if event.data:
                yield event.data.encode()
            # Only what was passed on has been seen.
            cut.note(event.id)
        cut.note(reader.last_id)


async def _in_time(pieces: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """The pieces; raises TIMEOUT if none arrives for so many seconds."""
    while True:
        try:
            async with asyncio.timeout(seconds):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ToolError(Kind.TIMEOUT, f"the server was silent for {seconds:g} s", retryable=True) from None
        yield piece


def _answers(message: Params, request_id: object) -> bool:
    return message.get("id") == request_id and "method" not in message


def _one_line(raw: bytes) -> bytes:
    """A message as one line; a line break within JSON is white space between its parts."""
    return b" ".join(raw.splitlines())
