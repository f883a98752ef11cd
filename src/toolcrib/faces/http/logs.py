"""The log of a server: one line of JSON for each request and for whatever else is worth telling, without secrets."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

logger = logging.getLogger("toolcrib.http")

# What is told by whom: others only of trouble, and of each call its request, as the journal has the rest.
LEVELS = {"": logging.WARNING, "toolcrib": logging.INFO, "toolcrib.pipeline": logging.WARNING}
WRITE_SECONDS = 0.1
# When nobody reads the log the server goes on, and says later how much was lost.
MAX_LINES = 20_000


# What every record of a request has in common.
USUAL = vars(logging.LogRecord(logger.name, logging.INFO, __file__, 0, "request", (), None))


class RequestRecord(logging.LogRecord):
    """A record of a request: what any record has, without the costly search for who made it."""

    def __init__(self, created: float, fields: dict[str, object]) -> None:
        self.__dict__.update(USUAL, created=created, msecs=created % 1 * 1000, fields=fields)


def log_request(scope: Mapping[str, object], route: str, status: int, seconds: float, sent: int) -> None:
    """One line about a request; its query and its body may hold secrets and are never told."""
    if not logger.isEnabledFor(logging.INFO):
        return
    fields = {
        "requestId": scope.get("toolcrib.request_id", ""),
        "caller": scope.get("toolcrib.caller", ""),
        "method": scope["method"],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "bytes": sent,
    }
    logger.handle(RequestRecord(time.time(), fields))


@contextmanager
def log_to(stream: TextIO, hide: Callable[[str], str]) -> Iterator[None]:
    """Write the log of the whole process to the stream inside the block; `hide` takes secrets out of a text."""
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
    """Collects lines and has a thread write them, so that a reader who does not read stops nobody else."""

    def __init__(self, stream: TextIO, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._stream = stream
        self._hide = hide
        self._lines: list[str | RequestRecord] = []
        self._lost = 0
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="toolcrib log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; that of a request is put together later, as nothing in it can change."""
        if len(self._lines) >= MAX_LINES:
            self._lost += 1
            return
        try:
            self._lines.append(record if isinstance(record, RequestRecord) else _line(record))
        except Exception:  # noqa: BLE001 - whatever a message is made of, logging it stops no request
            self.handleError(record)

    def close(self) -> None:
        """Write down what is left, unless nobody takes it."""
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
        texts = [line if isinstance(line, str) else _request_line(line) for line in lines]
        if lost:
            texts.append(_dump({"time": _time(time.time()), "level": "warning", "event": f"{lost} lines were lost"}))
        if texts:
            self._stream.write(self._hide("\n".join(texts)) + "\n")
            self._stream.flush()


def _line(record: logging.LogRecord) -> str:
    document: dict[str, object] = {
        "time": _time(record.created),
        "level": record.levelname.lower(),
        "event": record.getMessage(),
        "logger": record.name,
    }
    if record.exc_info and record.exc_info[1] is not None:
        document["traceback"] = logging.Formatter().formatException(record.exc_info)
    return _dump(document)


def _request_line(record: RequestRecord) -> str:
    return _dump({"time": _time(record.created), "level": "info", "event": record.msg, **record.__dict__["fields"]})


def _dump(document: dict[str, object]) -> str:
    return orjson.dumps(document, default=repr).decode()


def _time(seconds: float) -> str:
    return f"{_second(int(seconds))}.{int(seconds % 1 * 1000):03}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
