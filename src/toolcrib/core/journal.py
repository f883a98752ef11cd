"""How often each tool was called, and when last: counted behind the answer, by many processes at once."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
import weakref
from collections import Counter, deque
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson

from toolcrib.core.tallies import Count, Counts, Tallies, add_counts
from toolcrib.infra.files.disk import make_folder
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Line


# MERGED toolcrib.journal.lines

# A line of the journal as JSON.

CALL = "call"
MAX_TEXT = 200


def to_json(line: Line, ahead: float | None = None) -> dict[str, object]:
    """The line with its names; arguments and values are never part of one.

    Calls read the monotonic clock alone; `ahead` is how far the clock on the wall is ahead of it.
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
    """The lines as they are written; further facts that are not JSON are left out, and the line says so."""
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
    """What callers choose, such as the name of a tool that does not exist, bounded and writable."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode()


# MERGED toolcrib.journal.files

# Lines in files: gathered in memory, written behind the answer at most a second later, one file a day.

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


# MERGED toolcrib.journal.memory

# The last lines, in memory.

KEPT_LINES = 10_000


class MemoryJournal:
    """Keeps the newest lines and forgets the oldest; `on_lines` is handed each of them once, many at a time."""

    def __init__(self, kept: int = KEPT_LINES, *, on_lines: Callable[[Sequence[Line]], None] | None = None) -> None:
        self._lines: deque[Line] = deque(maxlen=kept)
        self._new: deque[Line] = deque()
        self._on_lines = on_lines
        self._handing = threading.Lock()
        self.record: Callable[[Line], None] = self._lines.append if on_lines is None else self._recorder()

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, oldest first."""
        self.flush()
        return (to_json(line) for line in tuple(self._lines))

    def flush(self) -> None:
        """Hand over the lines that were not handed over yet."""
        if self._on_lines is None:
            return
        with self._handing:
            # Taken one by one: a call may be adding a line at this very moment, and none may be lost.
            lines = [self._new.popleft() for _ in range(len(self._new))]
            self._lines.extend(lines)
            self._on_lines(lines)

    def close(self) -> None:
        """Nothing is owed to a disk, but whoever waits for lines gets them."""
        self.flush()

    def _recorder(self) -> Callable[[Line], None]:
        new, add = self._new, self._new.append

        def record(line: Line) -> None:
            # Every call waits for this.
            add(line)
            if len(new) >= KEPT_LINES:
                self.flush()

        return record


logger = logging.getLogger("toolcrib.journal")

# How far behind the counts of other processes may be.
LOOK_SECONDS = 0.1
# So many files of processes that have ended are summed up.
MANY_FILES = 32


class Metrics:
    """Counts the calls in lines of a journal. Without a folder the counts last as long as the process.

    `gather` has the journal hand over the lines that it has not handed over yet. A disk that refuses costs no call and,
    once it takes writes again, no count.
    """

    def __init__(
        self,
        folder: Path | None,
        clock: Callable[[], float] = time.time,
        *,
        gather: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._gather = gather
        self._tallies = None if folder is None else Tallies(folder)
        self._unwritten: Counts = {}
        self._totals: Counts = {}
        self._changed = True
        self._look_at = 0.0
        self._complaints: dict[str, str] = {}
        self._counting = threading.Lock()

    def note(self, lines: Sequence[Line]) -> None:
        """Count the calls among the lines; what was refused before it ran is no call of the tool."""
        counted = self._count(lines)
        if not counted:
            return
        with self._counting:
            add_counts(self._unwritten, counted)
            self._changed = True
            self._write()

    def read(self) -> Mapping[str, Count]:
        """The counts by the id of the tool: what this process counted to the last call, others at most a moment behind."""
        if self._gather is not None:
            self._gather()
        with self._counting:
            self._look()
            return MappingProxyType(self._totals)

    def compact(self) -> None:
        """Sum up what processes that have ended have left behind."""
        with self._counting:
            self._sum_up()

    def close(self) -> None:
        """Write down what is still in memory."""
        with self._counting:
            self._write()
            if self._unwritten and self._tallies is not None:
                calls = sum(count.calls for count in self._unwritten.values())
                logger.warning("metrics: %d calls were not counted", calls)
            self._sum_up(least=MANY_FILES)

    def _count(self, lines: Sequence[Line]) -> Counts:
        # Many lines, few tools: what is done for each line is done by comprehensions.
        ran = [line for line in lines if line[0] == CALL and (line[7] is None or line[7].get("refused") is not True)]
        keys = [line[8] or line[3] for line in ran]
        last = dict(zip(keys, ran, strict=True))
        ahead = self._clock() - time.monotonic()
        return {key: Count(calls, _spell(last[key][1] + ahead)) for key, calls in Counter(keys).items()}

    def _write(self) -> None:
        tallies = self._tallies
        if tallies is None or not self._unwritten:
            return
        if not self._try("write counts", lambda: tallies.append(self._unwritten)):
            return
        self._unwritten = {}
        if tallies.is_full:
            self._sum_up()

    def _look(self) -> None:
        """Bring the totals up to date, as far as the disk lets us."""
        now, tallies = time.monotonic(), self._tallies
        if tallies is not None and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._try("read counts", tallies.look)
            self._changed = True
        if self._changed:
            # A new dictionary: somebody may be going through the one that was handed out.
            totals = {} if tallies is None else tallies.totals()
            add_counts(totals, self._unwritten)
            self._totals, self._changed = _by_id(totals), False

    def _sum_up(self, *, least: int = 1) -> None:
        tallies = self._tallies
        if tallies is not None:
            tallies.release()
            self._try("sum counts up", lambda: tallies.compact(least))

    def _try(self, aim: str, work: Callable[[], None]) -> bool:
        """Whether the disk let us; what it says against an aim is logged once for as long as it says the same."""
        try:
            work()
        except (OSError, ToolError) as problem:
            if self._complaints.get(aim) != str(problem):
                logger.warning("metrics: cannot %s: %s", aim, problem)
            self._complaints[aim] = str(problem)
            return False
        self._complaints.pop(aim, None)
        return True


def _by_id(counts: Counts) -> Counts:
    """The counts of tools that are kept under no id moved from their addresses to the ids that these have."""
    for address in [key for key in counts if "/" in key]:
        add_counts(counts, {_id_of(address): counts.pop(address)})
    return counts


@lru_cache(maxsize=10_000)
def _id_of(address: str) -> str:
    # Only whoever reads needs ids: whoever makes one call and ends does not wait for what works them out.
    from toolcrib.lib.document_format import stable_id

    return stable_id("tool", address)


def _spell(moment: float) -> str:
    milliseconds = int(moment * 1000)
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{day}.{milliseconds % 1000:03d}Z"
