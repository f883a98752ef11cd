"""Protection of paths by mounts: detect that a mount was lost, and placeholders for paths that do not exist.

The kernel removes a mount from every namespace when the file or folder below it is removed or replaced, as editors do
when they save a file; polling mountinfo reports it. A renamed file takes its mount along, and the next file of that
name has none; inotify reports that, and the kernel kills the worker before this process even wakes up.
"""

# ruff: noqa: PTH102, PTH106, PTH108, PTH110, PTH112, PTH116, PTH120, PTH122, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import time

from toolcrib.infra.sandbox import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

# When a file is replaced or removed, its link count changes.
_RENAMED_ITSELF, _CHANGED_ATTRIBUTES = 0x800, 0x4
_FIRST_SECONDS, _LONGEST_SECONDS, _GROWTH = 0.001, 0.05, 1.25
# A namespace may have a hundred thousand mounts; what is beyond that counts as lost.
_MAX_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_PLACE = 4  # the field of a mountinfo line with the mount point
_ESCAPES = ((b"\\", b"\\134"), (b" ", b"\\040"), (b"\t", b"\\011"), (b"\n", b"\\012"))


class Mounts:
    """The mounts that protect paths from one job; none for a job that could not use a lost one.

    The paths are recorded before the worker mounts over them, so that no replacement in between goes unnoticed.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self._kept = {path: _identify(path) for path in _find_kept(job)}
        self._seen: set[str] = set()
        self._replaced = _watch_files(self._kept) if self._kept else -1
        self._worker = 0
        self._table = -1
        self._pause = _FIRST_SECONDS
        self._next = 0.0
        self._were_lost = False

    def watch(self, worker: int) -> None:
        """Watch the mounts of this process, which may not have created them yet."""
        if not self._kept:
            return
        system.raise_priority()
        self._worker = worker
        self._next = time.monotonic()

    def descriptors(self) -> list[int]:
        """Descriptors that are readable when a path was replaced or renamed."""
        return [self._replaced] if self._replaced >= 0 and self._table >= 0 else []

    def urgent(self) -> list[int]:
        """Descriptors with priority data when a mount was added or removed."""
        return [self._table] if self._table >= 0 else []

    def seconds_left(self) -> float:
        """The seconds until the next poll."""
        return max(self._next - time.monotonic(), 0) if self._has_to_ask else _LONGEST_SECONDS

    def were_lost(self, ready: Collection[int] = ()) -> bool:
        """Whether a mount is missing; `ready` are descriptors known to have an event."""
        if self._kept and not self._were_lost:
            told = any(has_event(descriptor, select.POLLIN) for descriptor in self.descriptors())
            self._were_lost = told or (self._is_due(ready) and self._misses_one())
        return self._were_lost

    def leave(self) -> None:
        """Close the worker's mount table, which would keep its namespace alive.

        The inotify descriptor is closed when this process exits: closing it takes the kernel many milliseconds.
        """
        if self._table >= 0:
            os.close(self._table)
            self._table = -1

    @property
    def _has_to_ask(self) -> bool:
        """Whether polling is needed: the worker has no namespace yet, or not all paths can be watched."""
        return bool(self._kept) and (self._table < 0 or self._replaced < 0)

    def _is_due(self, ready: Collection[int]) -> bool:
        # The event is reported once: to the poll that waited, or now.
        if any(table in ready or has_event(table, select.POLLPRI) for table in self.urgent()):
            return True
        if not self._has_to_ask or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._pause
        self._pause = min(self._pause * _GROWTH, _LONGEST_SECONDS)
        return self._table >= 0 or self._find_table()

    def _find_table(self) -> bool:
        """Open the worker's mount table, once it is in its own namespace."""
        home = f"/proc/{self._worker}"
        try:
            if os.stat(f"{home}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
                return False
            self._table = os.open(f"{home}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        for descriptor in self.descriptors():
            _let_kill(descriptor, self._worker)
        return True

    def _misses_one(self) -> bool:
        """Whether a mount disappeared, or a path was replaced before it was mounted over."""
        places = _read_places(self._table)
        missing = {path for path in self._kept if _escape(path) not in places}
        self._seen |= self._kept.keys() - missing
        return any(path in self._seen or _identify(path) != self._kept[path] for path in missing)


def _find_kept(job: dict[str, Any]) -> list[str]:
    """The paths that the worker mounts over for protection, if it could use them otherwise."""
    policy = job["policy"]
    if (
        not system.HAS_SUBREAPER
        or policy["unconfined"]
        or not (policy["write"] or policy["closed"] or policy["masked"])
    ):
        return []
    writable = system.real_paths(policy["write"])
    fixed = [path for path in system.real_paths(policy["fixed"]) if system.is_in(path, writable)]
    outermost = [path for path in fixed if not system.is_in(path, [outer for outer in fixed if outer != path])]
    covered = system.real_paths(path for path, _ in job["files"])
    return [
        path
        for path in (*outermost, *system.real_paths(policy["closed"]), *policy["masked"], *covered)
        if os.path.exists(path)
    ]


def _identify(path: str) -> tuple[int, int]:
    try:
        facts = os.lstat(path)
    except OSError:
        return 0, 0
    return facts.st_dev, facts.st_ino


def _watch_files(paths: Iterable[str]) -> int:
    """An inotify descriptor for replaced files and renamed folders; -1 if unavailable."""
    try:
        descriptor = system.invoke("inotify_init1", os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        for path in _with_folders(paths):
            kinds = _RENAMED_ITSELF if os.path.isdir(path) else _RENAMED_ITSELF | _CHANGED_ATTRIBUTES
            system.invoke("inotify_add_watch", descriptor, os.fsencode(path), kinds)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _let_kill(descriptor: int, worker: int) -> None:
    """Have the kernel kill the worker and its process group as soon as there is an event."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, -worker)
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_ASYNC)


def _with_folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        place = path
        while place not in found and place != "/":
            found.add(place)
            place = os.path.dirname(place)
    return found


def has_event(descriptor: int, kind: int) -> bool:
    """Whether the descriptor has an event of this kind."""
    poll = select.poll()
    poll.register(descriptor, kind)
    return bool(poll.poll(0))


def _read_places(table: int) -> set[bytes]:
    """All mount points, escaped as in mountinfo."""
    os.lseek(table, 0, os.SEEK_SET)
    text = b""
    while len(text) < _MAX_BYTES and (piece := os.read(table, _PIECE_BYTES)):
        text += piece
    lines = (line.split(b" ", _PLACE + 1) for line in text.splitlines())
    return {fields[_PLACE] for fields in lines if len(fields) > _PLACE}


def _escape(path: str) -> bytes:
    text = os.fsencode(path)
    for character, escaped in _ESCAPES:
        text = text.replace(character, escaped)
    return text


# Placeholders: an empty file or folder in place of a protected path that does not exist, during the job.

_MARK_TIME = 0  # a modification time that distinguishes our placeholders from other empty files
_EMPTY_OBJECT = b"{}"
_LOCK_SECONDS = 1.0
_ROUND_SECONDS = 0.002


class Placeholders:
    """The placeholders of one call. Concurrent calls share them; the last one to end removes them.

    Every running call holds a shared lock, on a folder that is closed to jobs, because a job could block the others by
    locking it; without such a folder, on the writable folders themselves.
    """

    def __init__(self, policy: dict[str, Any]) -> None:
        self._locks: dict[str, int] = {}
        self._placeholders: list[str] = []
        self._roots: list[str] = []
        self._closed: list[str] = []
        roots = [root for root in map(os.path.realpath, policy["write"]) if os.path.isdir(root)]
        if not roots or not (policy["fixed"] or policy["closed"]):
            return
        self._roots, self._closed = roots, policy["closed"]
        for folder in _find_lock_folder(self._closed) or roots:
            self._locks[folder] = _lock_shared(folder)
        for kind in ("fixed", "closed"):
            policy[kind] = [self._make_placeholder(path, roots) for path in policy[kind]]

    def remove(self) -> None:
        """Remove them, unless another call still needs them."""
        try:
            # Calls that started before or after the closed folder was created hold locks on other folders.
            for folder in (*self._roots, *_find_lock_folder(self._closed)):
                if folder not in self._locks:
                    self._locks[folder] = _open(folder)
            for lock in self._locks.values():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._placeholders:
                _remove(path)
        except OSError:
            pass  # the last call to end removes them
        finally:
            for lock in self._locks.values():
                os.close(lock)

    def _make_placeholder(self, path: str, roots: Iterable[str]) -> str:
        """The path to protect: the path itself, or the first part of it that does not exist."""
        if not any(_is_below(os.path.realpath(path), root) for root in roots):
            return path
        missing = _first_missing(path)
        if missing:
            _make(missing, is_file=missing == path and bool(os.path.splitext(path)[1]))
        place = missing or path
        if _is_placeholder(place):
            self._placeholders.append(place)
        return place


def _find_lock_folder(closed: Iterable[str]) -> list[str]:
    """The first of these folders that exists and is not a placeholder, which could be removed at any time."""
    folders = [path for path in map(os.path.realpath, closed) if os.path.isdir(path) and not _is_placeholder(path)]
    return folders[:1]


def _open(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _lock_shared(folder: str) -> int:
    lock = _open(folder)
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > until:
                os.close(lock)
                raise
            time.sleep(_ROUND_SECONDS)
        else:
            return lock


def _first_missing(path: str) -> str:
    """The outermost part of a path that is missing or a placeholder; empty if the whole path exists."""
    missing = ""
    while not os.path.lexists(path) or (missing and _is_placeholder(path)):
        missing = path
        path = os.path.dirname(path)
    return missing


def _make(path: str, *, is_file: bool) -> None:
    try:
        if is_file:
            _make_file(path)
        else:
            # Mounts protect it from jobs; the host may use it meanwhile, and then it stays.
            os.mkdir(path, 0o700)
            os.utime(path, (_MARK_TIME, _MARK_TIME))
    except OSError:
        return  # it exists by now, or cannot be created by the job either


def _make_file(path: str) -> None:
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, _content_for(path))
        os.utime(file, (_MARK_TIME, _MARK_TIME))
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(file)


def _content_for(path: str) -> bytes:
    """The empty content; an empty JSON object where needed, because Node reads every package.json on its path."""
    return _EMPTY_OBJECT if path.endswith(".json") else b""


def _is_placeholder(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    if facts.st_mtime != _MARK_TIME or facts.st_uid != os.geteuid():
        return False
    if stat.S_ISDIR(facts.st_mode):
        return not os.listdir(path)
    return stat.S_ISREG(facts.st_mode) and _holds(path, _content_for(path))


def _holds(path: str, content: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(file, len(content) + 1) == content
    finally:
        os.close(file)


def _remove(path: str) -> None:
    if not _is_placeholder(path):
        return
    if stat.S_ISDIR(os.lstat(path).st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
