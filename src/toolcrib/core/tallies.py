"""Counts in files: each process appends what it counted to a file of its own, and files nobody writes any more are summed.

    <16 hex digits>.jsonl     what one process counted, one line for each time it wrote; it holds a lock while it lives
    sums.json                 what was in files that are gone, and the names of those that are about to go

A sum and the names of what went into it appear in one step, so that whoever reads counts nothing twice and misses nothing.
What is only needed for reading is imported when somebody reads: whoever makes one call and ends only writes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files.disk import make_folder
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUMS = "sums.json"
LOCK = "lock"
LAYOUT = "toolcrib metrics 1"
MAX_BYTES = 64_000_000
# A file past this is left for the sums, and another one begun.
FULL_BYTES = 256_000
# How often a reader that was overtaken by a sum begins again.
ATTEMPTS = 20
# What was read of a file that is part of the sums.
ALL = -1

_FILE = re.compile(r"[0-9a-f]{16}\.jsonl")
_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Count:
    """How often a tool was called, and when last: RFC 3339 in UTC with milliseconds."""

    calls: int
    last_called_at: str


Counts = dict[str, Count]


def add_counts(total: Counts, more: Mapping[str, Count]) -> None:
    """Add some counts to others."""
    for tool, count in more.items():
        known = total.get(tool)
        if known is None:
            total[tool] = count
        else:
            total[tool] = Count(known.calls + count.calls, max(known.last_called_at, count.last_called_at))


class Tallies:
    """The counts in a folder; not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: _OwnFile | None = None
        self._mine: Counts = {}
        self._others: Counts = {}
        self._read: dict[str, int] = {}
        self._stamp: tuple[int, ...] | None = None

    def append(self, counts: Mapping[str, Count]) -> None:
        """Write down what was counted, or raise OSError and leave nothing behind."""
        if self._own is None:
            make_folder(self._folder)
            self._own = _OwnFile(self._folder)
        self._own.append(orjson.dumps(_to_json(counts), option=orjson.OPT_APPEND_NEWLINE))
        add_counts(self._mine, counts)

    def totals(self) -> Counts:
        """Everything that this process counted, and what others had counted when it last looked."""
        totals = dict(self._others)
        add_counts(totals, self._mine)
        return totals

    def look(self) -> None:
        """Read what others have written since; files may go into the sums meanwhile, and then it begins again."""
        for _ in range(ATTEMPTS):
            stamp = _stamp_of(self._folder / SUMS)
            others, read = self._others, self._read
            if stamp != self._stamp:
                others, summed = _read_sums(self._folder / SUMS)
                read = dict.fromkeys(summed, ALL)
            try:
                news = self._read_on(read)
            except FileNotFoundError:
                continue
            if _stamp_of(self._folder / SUMS) == stamp:
                self._others, self._read, self._stamp = others, read, stamp
                self._add(news)
                return

    @property
    def is_full(self) -> bool:
        """Whether the file of this process has grown large."""
        return self._own is not None and self._own.size >= FULL_BYTES

    def release(self) -> None:
        """Leave the file of this process to the sums; from now on it is like that of any other."""
        if self._own is None:
            return
        self._own.close()
        self._add({self._own.name: (self._mine, self._own.size)})
        self._own, self._mine = None, {}

    def compact(self, least: int = 1) -> None:
        """Sum up the files whose processes have ended, if there are so many; where somebody else does so, it is done."""
        names = self._files()
        if len(names) >= least:
            self._compact(names)

    def _compact(self, names: list[str]) -> None:
        from toolcrib.infra.files import durable
        from toolcrib.infra.files.disk import read_at_most

        with _alone(self._folder) as alone, _abandoned(self._folder, names if alone else []) as files:
            if not files:
                return
            sums, summed = _read_sums(self._folder / SUMS)
            for name in files.keys() - set(summed):
                add_counts(sums, _parse(read_at_most(files[name], MAX_BYTES))[0])
            gone = {*files, *set(summed).intersection(names)}
            document = {"layout": LAYOUT, "summed": sorted(gone), "counts": _to_json(sums)}
            durable.replace(self._folder / SUMS, orjson.dumps(document))
            for name in files:
                with suppress(OSError):
                    (self._folder / name).unlink()

    def _files(self) -> list[str]:
        """The files of processes, of those that have ended too."""
        try:
            return sorted(path.name for path in self._folder.iterdir() if _FILE.fullmatch(path.name))
        except FileNotFoundError:
            return []

    def _read_on(self, read: Mapping[str, int]) -> dict[str, tuple[Counts, int]]:
        """What each file of others holds beyond what was read of it, and where that ends."""
        own = "" if self._own is None else self._own.name
        news: dict[str, tuple[Counts, int]] = {}
        for name in self._files():
            offset = read.get(name, 0)
            if offset != ALL and name != own and (data := _read_from(self._folder / name, offset)):
                counts, length = _parse(data)
                news[name] = counts, offset + length
        return news

    def _add(self, news: Mapping[str, tuple[Counts, int]]) -> None:
        for name, (counts, end) in news.items():
            add_counts(self._others, counts)
            self._read[name] = end


class _OwnFile:
    """The file of this process, locked for as long as it is open."""

    def __init__(self, folder: Path) -> None:
        self.name, descriptor = _open_new(folder)
        self.size = 0
        self._descriptor = descriptor
        self.close = weakref.finalize(self, _let_go, descriptor)

    def append(self, line: bytes) -> None:
        """Add a line in one write; one that comes to nothing leaves no trace."""
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(line)


def _open_new(folder: Path) -> tuple[str, int]:
    while True:
        name = f"{os.urandom(8).hex()}.jsonl"
        descriptor = os.open(folder / name, _NEW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
        except BlockingIOError:
            pass  # whoever sums up came between opening and locking, and removes it
        os.close(descriptor)


def _let_go(descriptor: int) -> None:
    # By saying so: a forked child may hold the same descriptor.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether we are the only one who sums up."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def _abandoned(folder: Path, names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Those of the files whose processes have ended, opened, and kept from anybody who would do the same."""
    opened: dict[str, int] = {}
    try:
        for name in names:
            if (descriptor := _open_abandoned(folder / name)) is not None:
                opened[name] = descriptor
        yield opened
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _open_abandoned(path: Path) -> int | None:
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
    except OSError:
        pass  # its process lives
    os.close(descriptor)
    return None


def _stamp_of(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_sums(path: Path) -> tuple[Counts, list[str]]:
    """The sums, and the names of the files that went into them."""
    from toolcrib.infra.files import durable

    data = durable.read(path, MAX_BYTES)
    if data is None:
        return {}, []
    try:
        document = orjson.loads(data)
        if document["layout"] == LAYOUT:
            return _from_json(document["counts"]), list(map(str, document["summed"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ToolError(Kind.VALIDATION, f"{path} holds no counts of ours; put back what was there, or remove it")


def _read_from(path: Path, offset: int) -> bytes:
    from toolcrib.infra.files.disk import read_at_most

    descriptor = os.open(path, _READ)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return read_at_most(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def _parse(data: bytes) -> tuple[Counts, int]:
    """The counts of whole lines, and how many bytes these are; a line that is torn or not ours counts nothing."""
    length = data.rfind(b"\n") + 1
    counts: Counts = {}
    for line in data[:length].splitlines():
        with suppress(ValueError, TypeError, AttributeError):
            add_counts(counts, _from_json(orjson.loads(line)))
    return counts, length


def _to_json(counts: Mapping[str, Count]) -> dict[str, tuple[int, str]]:
    return {tool: (count.calls, count.last_called_at) for tool, count in counts.items()}


def _from_json(document: Mapping[str, tuple[int, str]]) -> Counts:
    """The counts of a JSON object; raises ValueError and the like for what we did not write."""
    counts: Counts = {}
    for tool, (calls, last) in document.items():
        if type(calls) is not int or calls < 1 or type(last) is not str:
            raise ValueError(tool)
        counts[tool] = Count(calls, last)
    return counts
