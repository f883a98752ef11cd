"""Lines in files: gathered in memory, written behind the answer at most a second later, one file a day."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import orjson

from toolcrib.journal.lines import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from toolcrib.model.protocols import Line

logger = logging.getLogger("toolcrib.journal")

FLUSH_SECONDS = 1.0
FLUSH_LINES = 1_000


class FileJournal:
    """Appends lines as JSON to `<folder>/<day>.jsonl`; processes may share the folder, because each write is one append."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._pending: deque[Line] = deque()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def record(self, line: Line) -> None:
        """Keep one line; the disk sees it within a second, or when a thousand have gathered."""
        self._pending.append(line)
        if self._timer is None:
            self._start_timer()
        if len(self._pending) >= FLUSH_LINES:
            self.flush()

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, oldest first; a line torn by a crash is passed over."""
        self.flush()
        if not self._folder.is_dir():
            return
        for file in sorted(self._folder.glob("*.jsonl")):
            for text in file.read_bytes().splitlines():
                try:
                    line = orjson.loads(text)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(line, dict):
                    yield line

    def flush(self) -> None:
        """Write down what has gathered; a disk that refuses costs lines, never a call."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            # Taken one by one: a call may be adding a line at this very moment, and none may be lost.
            lines = [self._pending.popleft() for _ in range(len(self._pending))]
            if not lines:
                return
            try:
                self._append(b"".join(orjson.dumps(to_json(line), default=str) + b"\n" for line in lines))
            except (OSError, TypeError) as problem:
                logger.warning("journal: %d lines were not written: %s", len(lines), problem)

    def close(self) -> None:
        """Write down what is still in memory."""
        self.flush()

    def _append(self, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        day = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._folder / f"{day}.jsonl", flags, 0o600)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def _start_timer(self) -> None:
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(FLUSH_SECONDS, self.flush)
                self._timer.daemon = True
                self._timer.start()
