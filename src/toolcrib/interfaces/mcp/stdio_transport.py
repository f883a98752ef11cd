"""Serve the protocol over standard input and output, one message in each line."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.core.sources import seen_through
from toolcrib.features.access.view import view_from_settings
from toolcrib.interfaces.mcp.client_link import Peer
from toolcrib.interfaces.mcp.messages import (
    Code,
    Notification,
    ProtocolError,
    Request,
    Response,
    UnreadableError,
    overloaded,
    read_message,
    write_error,
    write_result,
)
from toolcrib.interfaces.mcp.seals import known_capabilities
from toolcrib.interfaces.mcp.server import McpServer, RequestCancelledError, log_level_of
from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.interfaces.mcp.stdio_handshake import MAX_LINE, PIECE, write_all
from toolcrib.interfaces.mcp.versions import (
    ONLY_STATELESS,
    STATELESS,
    check_stateless,
    initialize,
    is_stateless_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.messages import Message
    from toolcrib.interfaces.mcp.stdio_handshake import Handshake
    from toolcrib.interfaces.mcp.subscriptions import Listener

logger = logging.getLogger("toolcrib.mcp")

SESSION = "stdio"
LISTING = frozenset({"tools/list", "resources/list", "prompts/list"})
MAX_RUNNING = 256
# What may wait for a client that does not read; beyond it nothing more is read from the client, and only answers are kept.
MAX_UNREAD = 4_000_000
# How long requests that were read may take after the client has closed its end.
DRAIN_SECONDS = 5.0
WRITE_SECONDS = 5.0


async def serve(crib: Crib, handshake: Handshake) -> None:
    """Serve the crib to one client until it closes its end; the caller closes the crib."""
    connection = Connection(crib, handshake)
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGHUP):
        # Only the main thread can handle signals.
        with suppress(RuntimeError, ValueError):
            loop.add_signal_handler(one, connection.stop)
    await connection.run()


class Connection:
    """One client: its session, the requests that are being answered, and the threads that read and write."""

    def __init__(self, crib: Crib, handshake: Handshake) -> None:
        self._server = McpServer(crib)
        self._caller = f"mcp:{crib.caller}"
        self._view = view_from_settings(crib.settings.table(McpSettings))
        self._handshake = handshake
        self._lines = Lines(self._receive)
        self._writer = Writer(handshake.target, self._lose)
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._wire = handshake.wire
        self._capabilities = known_capabilities(handshake.capabilities)
        self._listening: asyncio.Task[Listener] | None = None

    async def run(self) -> None:
        """Serve until the client closes its end, and answer what it asked before that."""
        loop = asyncio.get_running_loop()
        self._lines.feed(self._handshake.received + (b"\n" if self._handshake.is_over else b""))
        reader = Reader(self._handshake.source, loop, self._lines.feed, self._over.set, self._writer.wait_for_room)
        if self._handshake.is_over:
            self._over.set()
        else:
            reader.start()
        await self._over.wait()
        if self._listening is not None:
            self._listening.cancel()
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN_SECONDS)
        await asyncio.to_thread(self._writer.close)

    def stop(self) -> None:
        """End at once."""
        for task in tuple(self._tasks):
            task.cancel()
        self._over.set()

    def _lose(self) -> None:
        """Stop: the client no longer reads."""
        self.stop()

    def _receive(self, line: bytes | None) -> None:
        """Take one line; None for one that was too long."""
        message = read_line(line, self._writer)
        if message is None:
            return
        # Set for each message: it comes from the thread that reads, which sees everything.
        with seen_through(self._view):
            if isinstance(message, Request):
                self._begin(message)
            else:
                self._take(message)

    def _begin(self, request: Request) -> None:
        if len(self._tasks) >= MAX_RUNNING:
            message = f"{MAX_RUNNING} requests are being answered; wait for one of them"
            self._writer.answer(write_error(request.id, overloaded(message)))
            return
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Request) -> None:
        try:
            if request.method == "initialize" and not is_stateless_request(request.params):
                self._wire, capabilities, result = initialize(request.params)
                self._capabilities = known_capabilities(capabilities)
                self._writer.answer(write_result(request.id, result))
                return
            if self._listening is not None and request.method in LISTING:
                # Changes after this answer must reach the client.
                await asyncio.wait({self._listening})
            answer = await self._server.answer(request, self._peer(request), self._writer.notify)
        except RequestCancelledError:
            return
        except ProtocolError as problem:
            self._writer.answer(write_error(request.id, problem))
        else:
            self._writer.answer(write_result(request.id, answer))

    def _take(self, message: Notification | Response) -> None:
        peer = self._session_peer()
        if isinstance(message, Response):
            if not self._server.questions.answer(message, peer):
                logger.info("the client answered a question that was not open")
        elif message.method == "notifications/cancelled":
            self._server.running.cancel(peer, message.params)
        elif message.method == "notifications/initialized" and self._wire is not None and self._listening is None:
            self._listening = asyncio.create_task(self._server.listen_to_all(peer, self._writer.notify))

    def _peer(self, request: Request) -> Peer:
        if is_stateless_request(request.params) or request.method in ONLY_STATELESS:
            capabilities = check_stateless(request.params)
            return Peer(
                caller=self._caller,
                wire=STATELESS,
                capabilities=capabilities,
                session=SESSION,
                log_level=log_level_of(request),
            )
        if self._wire is None:
            message = "open the session with initialize, or send the version of the protocol in params._meta"
            raise ProtocolError(Code.INVALID_REQUEST, message)
        return self._session_peer()

    def _session_peer(self) -> Peer:
        return Peer(
            caller=self._caller,
            wire=self._wire or STATELESS,
            capabilities=self._capabilities,
            session=SESSION,
            log_level=self._server.state(SESSION).log_level,
        )


class Lines:
    """Cuts what was read into lines; one that is too long is dropped up to its end."""

    def __init__(self, take: Callable[[bytes | None], None]) -> None:
        self._take = take
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._add(line)
            self._end()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MAX_LINE:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _end(self) -> None:
        line = b"".join(self._pieces) if self._size <= MAX_LINE else None
        self._pieces.clear()
        self._size = 0
        # An empty line is not a message; ignore it.
        if line is None or line.strip():
            self._take(line)


class Reader(threading.Thread):
    """Reads in a thread of its own, because an event loop cannot wait for every kind of descriptor."""

    def __init__(
        self,
        source: int,
        loop: asyncio.AbstractEventLoop,
        feed: Callable[[bytes], None],
        end: Callable[[], object],
        wait_for_room: Callable[[], object],
    ) -> None:
        super().__init__(name="toolcrib-mcp-read", daemon=True)
        self._source = source
        self._loop = loop
        self._feed = feed
        self._end = end
        self._wait_for_room = wait_for_room
        self._fed = threading.Event()

    def run(self) -> None:
        """Read until the end."""
        with suppress(RuntimeError):  # the loop has ended
            try:
                while data := os.read(self._source, PIECE):
                    self._fed.clear()
                    self._loop.call_soon_threadsafe(self._hand_over, data)
                    # Nothing more is read until this was taken and there is room for answers, so that memory is bounded.
                    self._fed.wait()
                    self._wait_for_room()
            except OSError:
                logger.info("standard input cannot be read any more")
            # The last line may lack its end.
            self._loop.call_soon_threadsafe(self._hand_over, b"\n")
            self._loop.call_soon_threadsafe(self._end)

    def _hand_over(self, data: bytes) -> None:
        try:
            self._feed(data)
        finally:
            self._fed.set()


class Writer:
    """Writes messages in a thread of its own, so that a client which does not read blocks no other work."""

    def __init__(self, target: int, lose: Callable[[], None]) -> None:
        self._target = target
        self._lose = lose
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._unread = 0
        self._changed = threading.Condition()
        self._is_closing = False
        self._is_lost = False
        self._thread = threading.Thread(target=self._run, name="toolcrib-mcp-write", daemon=True)
        self._thread.start()

    def answer(self, message: bytes) -> None:
        """Send an answer, or a question."""
        with self._changed:
            if not self._is_lost:
                self._waiting.append(message)
                self._unread += len(message)
                self._changed.notify_all()

    def notify(self, message: bytes) -> None:
        """Send a message that is dropped if the client does not read."""
        if self._unread < MAX_UNREAD:
            self.answer(message)

    def wait_for_room(self) -> None:
        """Wait, in the thread that reads, until the client has read most of what it was sent, or is gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._unread < MAX_UNREAD or self._is_closing or self._is_lost)

    def close(self) -> None:
        """Write what is left, unless the client does not read it."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(WRITE_SECONDS)

    def _run(self) -> None:
        while messages := self._take():
            try:
                write_all(self._target, b"\n".join((*messages, b"")))
            except OSError:
                with self._changed:
                    self._is_lost = True
                    self._changed.notify_all()
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._lose)
                return
            with self._changed:
                self._unread -= sum(map(len, messages))
                self._changed.notify_all()

    def _take(self) -> list[bytes]:
        """What waits to be written; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            messages = list(self._waiting)
            self._waiting.clear()
            return messages


def read_line(line: bytes | None, writer: Writer) -> Message | None:
    """Read the message in one line; None if it is invalid, after answering with the error. `line` is None if it was too long."""
    try:
        if line is None:
            raise UnreadableError(Code.PARSE, f"a message has more than {MAX_LINE} bytes; send less")
        return read_message(line, MAX_LINE)
    except UnreadableError as problem:
        if not problem.is_response:
            writer.answer(write_error(problem.id, problem))
        return None
