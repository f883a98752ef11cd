"""The journal of calls and audit events, in daily files or, without a project, in memory."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files import append
from toolcrib.model.call import CALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Line


logger = logging.getLogger("toolcrib.journal")

MAX_TEXT = 200
FLUSH_SECONDS = 1.0
# The limit of lines in memory while the disk hangs; beyond it the oldest are dropped.
PENDING_LINES = 1_000_000
KEPT_LINES = 10_000


def to_json(line: Line, ahead: float | None = None) -> dict[str, object]:
    """The line as an object with named fields; it never holds arguments or values.

    A line has only the time of the monotonic clock; `ahead` is the difference to the wall clock.
    """
    event, moment, call_id, tool, caller, seconds, error, facts, tool_id = line
    if ahead is None:
        ahead = time.time() - time.monotonic()
    named: dict[str, object] = {"event": event, "time": moment + ahead, "id": call_id, "tool": tool, "caller": caller}
    if event == CALL:
        named["ok"] = error is None
        named["ms"] = seconds * 1000
    if not (_is_plain(call_id) and _is_plain(caller) and _is_plain(tool) and event == CALL):
        named |= {"event": _short(event), "id": _short(call_id), "tool": _short(tool), "caller": _short(caller)}
    if error is not None:
        named["error"] = str(error)
    if tool_id:
        named["toolId"] = tool_id
    return named if facts is None else {**facts, **named}


def to_bytes(lines: Iterable[Line]) -> bytearray:
    """Serialise lines as JSON; further facts that are not JSON are left out, which the line notes."""
    ahead = time.time() - time.monotonic()
    text = bytearray()
    for line in lines:
        named = to_json(line, ahead)
        try:
            text += orjson.dumps(named, default=str, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as problem:
            rest = to_json((*line[:-2], None, line[-1]), ahead)
            text += orjson.dumps({**rest, "left_out": _short(str(problem))}, option=orjson.OPT_APPEND_NEWLINE)
    return text


def _is_plain(text: object) -> bool:
    return type(text) is str and len(text) <= MAX_TEXT and text.isascii()


def _short(text: object) -> str:
    """Truncate a text that a caller chose, such as an unknown tool's name, and replace lone surrogates."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode()


class FileJournal:
    """Appends lines as JSON to `<folder>/<day>.jsonl`; processes may share the folder, because each write is one append.

    Lines are buffered in memory and written by a thread every FLUSH_SECONDS. `on_lines` is called with the lines after they
    are written, or after writing failed.
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
        # A call only appends to the buffer; a thread writes it to disk.
        self.record: Callable[[Line], None] = self._pending.append
        # Released to end the writer. Not an Event, whose own lock garbage collection may find held by this very thread.
        stop = threading.Lock()
        stop.acquire()
        self._end = weakref.finalize(self, stop.release)
        writer = threading.Thread(
            target=_write_behind, args=(weakref.ref(self), stop), name="toolcrib journal", daemon=True
        )
        try:
            writer.start()
        except RuntimeError as problem:
            # No thread can be started, so the lines are only written by `close`.
            logger.warning("journal: %s", problem)

    def read(self) -> Iterator[dict[str, object]]:
        """The recorded lines, in the order of writing; a line torn by a crash is skipped."""
        self.flush()
        yield from read_lines(self._folder)

    def flush(self) -> None:
        """Write the buffered lines; a disk error loses lines, but never fails a call."""
        with self._disk:
            # Popped one by one, because calls append concurrently and no line may be lost.
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
        """Write the buffered lines and end the writer thread."""
        self._end()
        self.flush()

    def _append(self, data: bytes | bytearray) -> None:
        day = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
        append(self._folder / f"{day}.jsonl", data)


def read_lines(folder: Path) -> Iterator[dict[str, object]]:
    """The lines in the files of a folder, in the order of writing; a line torn by a crash is skipped."""
    for file in sorted(folder.glob("*.jsonl")):
        with file.open("rb") as texts:
            for text in texts:
                line = _parse(text)
                if line is not None:
                    yield line


def _write_behind(journal: weakref.ref[FileJournal], stop: threading.Lock) -> None:
    """Flush once a second until the journal is closed or collected."""
    while not stop.acquire(timeout=FLUSH_SECONDS):
        held = journal()
        if held is None:
            return
        held.flush()
        del held


def _parse(text: bytes) -> dict[str, object] | None:
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


class MemoryJournal:
    """Keeps the newest lines in memory; `on_lines` is called with batches of lines, each line once."""

    def __init__(self, kept: int = KEPT_LINES, *, on_lines: Callable[[Sequence[Line]], None] | None = None) -> None:
        self._lines: deque[Line] = deque(maxlen=kept)
        self._new: deque[Line] = deque()
        self._on_lines = on_lines
        self._handing = threading.Lock()
        self.record: Callable[[Line], None] = self._lines.append if on_lines is None else self._recorder()

    def read(self) -> Iterator[dict[str, object]]:
        """The recorded lines, oldest first."""
        self.flush()
        return (to_json(line) for line in tuple(self._lines))

    def flush(self) -> None:
        """Pass the new lines to `on_lines`."""
        if self._on_lines is None:
            return
        with self._handing:
            # Popped one by one, because calls append concurrently and no line may be lost.
            lines = [self._new.popleft() for _ in range(len(self._new))]
            self._lines.extend(lines)
            self._on_lines(lines)

    def close(self) -> None:
        """Pass the new lines to `on_lines`; there is nothing to write to disk."""
        self.flush()

    def _recorder(self) -> Callable[[Line], None]:
        new, add = self._new, self._new.append

        def record(line: Line) -> None:
            add(line)
            # A call that garbage collection ends may record while this very thread flushes.
            if len(new) >= KEPT_LINES and not self._handing.locked():
                self.flush()

        return record
