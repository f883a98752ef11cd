"""Lines in files: gathered in memory, written behind the answer at most a second later, one file a day."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import orjson

from toolcrib.journal.lines import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from toolcrib.model.protocols import Line

logger = logging.getLogger("toolcrib.journal")

FLUSH_SECONDS = 1.0
FLUSH_LINES = 1_000
# What a disk that hangs may cost in memory; after that the oldest lines go.
PENDING_LINES = 100_000


class FileJournal:
    """Appends lines as JSON to `<folder>/<day>.jsonl`; processes may share the folder, because each write is one append."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._pending: deque[Line] = deque(maxlen=PENDING_LINES)
        self._lock = threading.Lock()
        # A lock of its own: who adds a line must not wait for one who writes.
        self._disk = threading.Lock()
        # Wakes the thread that is about to write; None while there is none.
        self._wake: threading.Event | None = None

    def record(self, line: Line) -> None:
        """Keep one line; the disk sees it within a second, or when a thousand have gathered. Never waits for the disk."""
        self._pending.append(line)
        wake = self._wake or self._start_writer()
        if len(self._pending) >= FLUSH_LINES:
            wake.set()

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, in the order of writing; a line torn by a crash is passed over."""
        self.flush()
        for file in sorted(self._folder.glob("*.jsonl")):
            with file.open("rb") as texts:
                for text in texts:
                    line = _parse(text)
                    if line is not None:
                        yield line

    def flush(self) -> None:
        """Write down what has gathered; a disk that refuses costs lines, never a call."""
        with self._disk:
            lines = self._take()
            if not lines:
                return
            try:
                self._append(b"".join(map(to_bytes, lines)))
            except OSError as problem:
                logger.warning("journal: up to %d lines were not written: %s", len(lines), problem)

    def close(self) -> None:
        """Write down what is still in memory."""
        self.flush()

    def _take(self) -> list[Line]:
        with self._lock:
            # In this order: a line that comes after the count was taken finds no writer and starts the next one.
            if self._wake is not None:
                self._wake.set()
            self._wake = None
            # Taken one by one: a call may be adding a line at this very moment, and none may be lost.
            return [self._pending.popleft() for _ in range(len(self._pending))]

    def _append(self, data: bytes) -> None:
        _make_private(self._folder)
        day = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._folder / f"{day}.jsonl", flags, 0o600)
        try:
            if _is_torn(descriptor):
                data = b"\n" + data
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def _start_writer(self) -> threading.Event:
        with self._lock:
            if self._wake is not None:
                return self._wake
            self._wake = wake = threading.Event()
            try:
                threading.Thread(target=self._write, args=(wake,), name="toolcrib journal", daemon=True).start()
            except RuntimeError as problem:
                # No thread to be had, or the program is ending: the lines wait for the next one, or for `close`.
                logger.warning("journal: %s", problem)
                self._wake = None
            return wake

    def _write(self, wake: threading.Event) -> None:
        wake.wait(FLUSH_SECONDS)
        # Unless somebody did so in between.
        if self._wake is wake:
            self.flush()


def _is_torn(descriptor: int) -> bool:
    """Whether the file ends in the middle of a line, which must not swallow the one that comes next."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "something else stands in place of its file")
    return status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"


def _parse(text: bytes) -> dict[str, object] | None:
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


def _make_private(folder: Path) -> None:
    if folder.is_dir():
        return
    # One by one: mkdir with `parents` would open the folders on the way to everybody.
    _make_private(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
