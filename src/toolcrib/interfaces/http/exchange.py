"""Enforce the time limits of requests, count them, and log each without secrets: as JSON, or readably on a terminal."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

from toolcrib.interfaces.http.server_state import NO_ROUTE
from toolcrib.lib.documents import write_json
from toolcrib.model.errors import Kind
from toolcrib.toolkit.cli import visible
from toolcrib.toolkit.http import CALLER, HOLDER, ID, ROUTE
from toolcrib.toolkit.http.problems import Refusal, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.interfaces.http.settings import ServerSettings


logger = logging.getLogger("toolcrib.http")

# Other packages log warnings only; a call is logged as its request, and the journal has the rest.
LEVELS = {"": logging.WARNING, "toolcrib": logging.INFO, "toolcrib.pipeline": logging.WARNING}
WRITE_SECONDS = 0.1
# If the reader of the log blocks, lines are dropped, and their number is logged later.
MAX_LINES = 20_000
# The time of day in a timestamp.
_CLOCK = slice(11, 19)


# The scope of the request that is being answered, for the lines that are logged meanwhile.
ANSWERED: ContextVar[Mapping[str, object] | None] = ContextVar("answered", default=None)

# The attributes that all request records share.
USUAL = vars(logging.LogRecord(logger.name, logging.INFO, __file__, 0, "request", (), None))


class Exchange:
    """One request and its response in progress; `due` is its current deadline."""

    __slots__ = (
        *("_body_seconds", "_is_late", "_is_read", "_receive", "_send", "_task", "_total_seconds"),
        *("began", "due", "sent", "started", "status"),
    )

    def __init__(self, receive: Receive, send: Send, body_seconds: float, total_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._receive = receive
        self._send = send
        self._body_seconds = body_seconds
        self._total_seconds = total_seconds
        self._task = asyncio.current_task(loop)
        self._is_late = False
        self._is_read = False
        self.started = loop.time()
        # Another clock for the duration: that of uvloop counts whole milliseconds, and most requests take less than one.
        self.began = time.perf_counter()
        self.due = self.started + total_seconds
        self.status = 0
        self.sent = 0

    def look(self, now: float) -> None:
        """Cancel the request if its deadline has passed."""
        if now >= self.due and not self._is_late and self._task is not None:
            self._is_late = True
            self._task.cancel()

    async def receive(self) -> Message:
        """Receive the next message; raises Refusal if the body does not arrive in time."""
        if self._is_read:
            return await self._receive()
        self.due = self.started + self._body_seconds
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if not self._is_late or self._task is None:
                raise
            self._task.uncancel()
            self._is_late = False
            raise self._slow_body() from None
        finally:
            self.due = self.started + self._total_seconds
        self._is_read = not message.get("more_body", False)
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """Record status and size of a response, and send its message; what is to be awaited is that of the connection."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.sent += len(message.get("body", b""))
        return self._send(message)

    async def cut_short(self, *, is_ending: bool) -> bool:
        """Respond that the request was cancelled; False if it was cancelled elsewhere, or part of a response was sent."""
        if self.status or not (self._is_late or is_ending):
            return False
        if self._is_late:
            status, message = 504, f"the request timed out after {self._total_seconds:g} s"
        else:
            status, message = 503, "the server is shutting down; retry when it is back"
        headers, body = refusal(status, message)
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
        return True

    def _slow_body(self) -> Refusal:
        message = f"the body did not arrive within {self._body_seconds:g} s; send it at once"
        return Refusal(408, Kind.TIMEOUT, message, headers=((b"connection", b"close"),))


class Guarded:
    """A layer around the application that enforces time limits, counts and logs.

    The application leaves `toolcrib.route` (a template, never a path), `toolcrib.request_id` and `toolcrib.caller` in the scope.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, service: Service) -> None:
        self._app = app
        self._service = service
        self._body_seconds = settings.body_seconds
        self._total_seconds = settings.total_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(receive, send, self._body_seconds, self._total_seconds)
        exchanges = self._service.exchanges
        exchanges.add(exchange)
        # For the rest of the task, which is that of this request alone: the server logs what comes out of here.
        ANSWERED.set(scope)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            if not await exchange.cut_short(is_ending=not self._service.ready):
                raise
        finally:
            exchanges.discard(exchange)
            self._note(scope, exchange)

    def _note(self, scope: Scope, exchange: Exchange) -> None:
        seconds = time.perf_counter() - exchange.began
        status = exchange.status or 500
        route = str(scope.get(ROUTE, NO_ROUTE))
        self._service.metrics.note_request(route, str(scope["method"]), status, seconds)
        log_request(scope, route, status, seconds, exchange.sent)


class RequestRecord(logging.LogRecord):
    """A log record of a request, created without the costly search of the stack."""

    def __init__(self, created: float, fields: dict[str, object]) -> None:
        self.__dict__.update(USUAL, created=created, msecs=created % 1 * 1000, fields=fields)


def log_request(scope: Mapping[str, object], route: str, status: int, seconds: float, sent: int) -> None:
    """Log a request in one line; its query and body may contain secrets and are never logged."""
    if not logger.isEnabledFor(logging.INFO):
        return
    fields = {**_request_of(scope), "route": route, "status": status, "ms": round(seconds * 1000, 2), "bytes": sent}
    logger.handle(RequestRecord(time.time(), fields))


def _request_of(scope: Mapping[str, object]) -> dict[str, object]:
    """Which request it is, whose, and over which route, as far as that is known yet."""
    return {
        "requestId": scope.get(ID, ""),
        "caller": scope.get(CALLER, ""),
        **({"token": holder} if (holder := scope.get(HOLDER)) else {}),
        "method": scope["method"],
        "route": str(scope.get(ROUTE, NO_ROUTE)),
    }


@contextmanager
def log_to(stream: TextIO, hide: Callable[[str], str]) -> Iterator[None]:
    """Inside the block, write the log of the process to the stream; `hide` masks secrets in a string."""
    handler = _Lines(stream, hide)
    loggers = {name: logging.getLogger(name) for name in LEVELS}
    before = {name: (one.level, one.handlers) for name, one in loggers.items()}
    for name, one in loggers.items():
        one.handlers = [] if name else [handler]
        one.setLevel(LEVELS[name])
    try:
        yield
    finally:
        for name, one in loggers.items():
            one.setLevel(before[name][0])
            one.handlers = before[name][1]
        handler.close()


class _Lines(logging.Handler):
    """Hand log lines to a writer thread, so that a blocked stream does not block requests."""

    def __init__(self, stream: TextIO, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._stream = stream
        self._hide = hide
        self._text = _readable if stream.isatty() else _dump
        self._lines: list[str | RequestRecord] = []
        self._lost = 0
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="toolcrib log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; a request record is formatted by the writer thread, as nothing in it can change."""
        if len(self._lines) >= MAX_LINES:
            self._lost += 1
            return
        try:
            self._lines.append(record if isinstance(record, RequestRecord) else self._text(_document(record)))
        except Exception:  # noqa: BLE001 - a message that cannot be formatted must not stop a request
            self.handleError(record)

    def close(self) -> None:
        """Write the remaining lines, unless the stream is blocked."""
        self._ended.set()
        self._writer.join(timeout=1)
        super().close()

    def _write_on(self) -> None:
        while not self._ended.wait(WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        self.acquire()
        lines, self._lines = self._lines, []
        lost, self._lost = self._lost, 0
        self.release()
        texts = [line if isinstance(line, str) else self._text(_request_document(line)) for line in lines]
        if lost:
            event = f"{lost} lines were dropped"
            texts.append(self._text({"time": _time(time.time()), "level": "warning", "event": event}))
        if texts:
            self._stream.write(self._hide("\n".join(texts)) + "\n")
            self._stream.flush()


def _document(record: logging.LogRecord) -> dict[str, object]:
    document: dict[str, object] = {
        "time": _time(record.created),
        "level": record.levelname.lower(),
        "event": record.getMessage(),
        "logger": record.name,
    }
    if (scope := ANSWERED.get()) is not None:
        # A failure can be followed to its request, and to its sender.
        document |= _request_of(scope)
    if record.exc_info and record.exc_info[1] is not None:
        document["traceback"] = logging.Formatter().formatException(record.exc_info)
    return document


def _request_document(record: RequestRecord) -> dict[str, object]:
    return {"time": _time(record.created), "level": "info", "event": record.msg, **record.__dict__["fields"]}


def _readable(document: Mapping[str, object]) -> str:
    """A line for a person at a terminal: the time of day, what happened, and the other facts; below it the traceback."""
    facts = {name: value for name, value in document.items() if value not in {None, ""}}
    words = [str(facts.pop("time"))[_CLOCK], facts.pop("level"), facts.pop("event")]
    trace = facts.pop("traceback", "")
    if "status" in facts:
        words[1:] = [facts.pop(name, "") for name in ("status", "method", "route", "ms")] + ["ms"]
    words += [f"{name}={value}" for name, value in facts.items()]
    line = visible(" ".join(map(str, words)))
    return f"{line}\n{visible(str(trace))}" if trace else line


def _dump(document: dict[str, object]) -> str:
    return write_json(document).decode()


def _time(seconds: float) -> str:
    return f"{_second(int(seconds))}.{int(seconds % 1 * 1000):03}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
