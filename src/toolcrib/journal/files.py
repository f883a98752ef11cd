"""Lines in files: gathered in memory, written behind the answer at most a second later, one file a day."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING

import orjson

from toolcrib.ground.files.folders import make_folder
from toolcrib.journal.lines import to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Line

logger = logging.getLogger("toolcrib.journal")

FLUSH_SECONDS = 1.0
# What a disk that hangs may cost in memory; after that the oldest lines go.
PENDING_LINES = 1_000_000


class FileJournal:
    """Appends lines as JSON to `<folder>/<day>.jsonl`; processes may share the folder, because each write is one append.

    `on_lines` is handed the lines behind their writing, whatever the disk made of them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,
        on_lines: Callable[[Sequence[Line]], None] | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._on_lines = on_lines
        self._pending: deque[Line] = deque(maxlen=PENDING_LINES)
        self._disk = threading.Lock()
        # A call hands its line over and waits for nothing; a thread of the journal's own writes behind it.
        self.record: Callable[[Line], None] = self._pending.append
        stop = threading.Event()
        self._end = weakref.finalize(self, stop.set)
        writer = threading.Thread(
            target=_write_behind, args=(weakref.ref(self), stop), name="toolcrib journal", daemon=True
        )
        try:
            writer.start()
        except RuntimeError as problem:
            # No thread to be had: the lines wait for `close`.
            logger.warning("journal: %s", problem)

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
            # Taken one by one: a call may be adding a line at this very moment, and none may be lost.
            lines = [self._pending.popleft() for _ in range(len(self._pending))]
            if not lines:
                return
            try:
                self._append(to_bytes(lines))
            except OSError as problem:
                logger.warning("journal: up to %d lines were not written: %s", len(lines), problem)
            if self._on_lines is not None:
                self._on_lines(lines)

    def close(self) -> None:
        """Write down what is still in memory, and let the writer go."""
        self._end()
        self.flush()

    def _append(self, data: bytes | bytearray) -> None:
        make_folder(self._folder)
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


def _write_behind(journal: weakref.ref[FileJournal], stop: threading.Event) -> None:
    """Flush once a second until the journal is closed, or nobody holds it any more."""
    while not stop.wait(FLUSH_SECONDS):
        held = journal()
        if held is None:
            return
        held.flush()
        del held


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
