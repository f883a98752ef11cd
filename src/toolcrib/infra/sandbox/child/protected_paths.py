"""Walls that are mounts, and that fall while a job runs when the host replaces what they stand on.

The kernel takes a mount out of every namespace when the file or folder below it is removed, or when another is put in its
place, as editors do that save a file: the namespace tells of that. What is renamed takes its mount along, and the next one of
that name has none: of that the file itself tells, and the kernel kills the worker for it before anybody has to wake up.
"""

# ruff: noqa: PTH110, PTH112, PTH116, PTH120 - pathlib would take a third of the start
# ruff: noqa: PTH102, PTH106, PTH108, PTH112, PTH120, PTH122, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import time

from toolcrib.infra.sandbox.child import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

# Of a file that another was put in place of, or that was removed, the number of names has changed.
_RENAMED_ITSELF, _CHANGED_ATTRIBUTES = 0x800, 0x4
_FIRST_SECONDS, _LONGEST_SECONDS, _GROWTH = 0.001, 0.05, 1.25
# The kernel lets a namespace have a hundred thousand mounts; what lies beyond counts as fallen.
_MAX_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_PLACE = 4  # the field of a line that says where the mount is
_ESCAPES = ((b"\\", b"\\134"), (b" ", b"\\040"), (b"\t", b"\\011"), (b"\n", b"\\012"))


class Mounts:
    """Those that keep one job from something; none for a job that could do nothing where they fell.

    They are known before the worker makes them, so that nothing can be replaced unseen meanwhile.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self._kept = {path: _identify(path) for path in _find_kept(job)}
        self._seen: set[str] = set()
        self._replaced = _watch_files(self._kept) if self._kept else -1
        self._worker = 0
        self._table = -1
        self._pause = _FIRST_SECONDS
        self._next = 0.0
        self._have_fallen = False

    def watch(self, worker: int) -> None:
        """Watch the mounts of this process, which may still have to make them."""
        if not self._kept:
            return
        system.come_first()
        self._worker = worker
        self._next = time.monotonic()

    def descriptors(self) -> list[int]:
        """What can be read when something was replaced or renamed."""
        return [self._replaced] if self._replaced >= 0 and self._table >= 0 else []

    def urgent(self) -> list[int]:
        """What has something urgent to say when a mount came or went."""
        return [self._table] if self._table >= 0 else []

    def seconds_left(self) -> float:
        """How long it is until the next look that is to be taken unasked."""
        return max(self._next - time.monotonic(), 0) if self._has_to_ask else _LONGEST_SECONDS

    def have_fallen(self, ready: Collection[int] = ()) -> bool:
        """Whether one of them is not there any more; `ready` are descriptors that are known to have something to say."""
        if self._kept and not self._have_fallen:
            told = any(_speaks(descriptor, select.POLLIN) for descriptor in self.descriptors())
            self._have_fallen = told or (self._is_due(ready) and self._misses_one())
        return self._have_fallen

    def leave(self) -> None:
        """Let go of the worker's namespace, which would outlive it with us.

        What was watched stays so until this process ends: letting go of that takes the kernel many milliseconds.
        """
        if self._table >= 0:
            os.close(self._table)
            self._table = -1

    @property
    def _has_to_ask(self) -> bool:
        """Whether nobody would tell: the worker has no namespace of its own yet, or not all that is kept can be watched."""
        return bool(self._kept) and (self._table < 0 or self._replaced < 0)

    def _is_due(self, ready: Collection[int]) -> bool:
        # It is said once: to whoever waited, or now.
        if any(table in ready or _speaks(table, select.POLLPRI) for table in self.urgent()):
            return True
        if not self._has_to_ask or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._pause
        self._pause = min(self._pause * _GROWTH, _LONGEST_SECONDS)
        return self._table >= 0 or self._find_table()

    def _find_table(self) -> bool:
        """Open the table of the worker's mounts, once it is not ours any more."""
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
        """Whether one that was there has gone, or what one has yet to stand on was replaced."""
        places = _read_places(self._table)
        missing = {path for path in self._kept if _escape(path) not in places}
        self._seen |= self._kept.keys() - missing
        return any(path in self._seen or _identify(path) != self._kept[path] for path in missing)


def _find_kept(job: dict[str, Any]) -> list[str]:
    """Where the worker mounts what it is kept from, as far as it may touch anything there."""
    walls = job["walls"]
    if not system.HAS_SUBREAPER or walls["open"] or not (walls["write"] or walls["closed"] or walls["masked"]):
        return []
    writable = _real(walls["write"])
    fixed = [path for path in _real(walls["fixed"]) if any(_is_in(path, root) for root in writable)]
    outermost = [path for path in fixed if not any(path != outer and _is_in(path, outer) for outer in fixed)]
    covered = _real(path for path, _ in job["files"])
    return [path for path in (*outermost, *_real(walls["closed"]), *walls["masked"], *covered) if os.path.exists(path)]


def _real(paths: Iterable[str]) -> list[str]:
    return list(map(os.path.realpath, paths))


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _identify(path: str) -> tuple[int, int]:
    try:
        facts = os.lstat(path)
    except OSError:
        return 0, 0
    return facts.st_dev, facts.st_ino


def _watch_files(paths: Iterable[str]) -> int:
    """What can be read once one of these was replaced, or a folder around it renamed; -1 if that is not to be had."""
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
    """Have the worker and its group killed by the kernel as soon as there is something to read."""
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


def _speaks(descriptor: int, kind: int) -> bool:
    """Whether there is something of this kind to be heard."""
    poll = select.poll()
    poll.register(descriptor, kind)
    return bool(poll.poll(0))


def _read_places(table: int) -> set[bytes]:
    """Where all the mounts are, written as in the table."""
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


# What a job may not make: for the time of the job something empty stands in its place, which can be fixed or closed.

_MOMENT = 0  # a time that no file of this century was changed at tells ours from others that hold nothing either
_EMPTY_OBJECT = b"{}"
_LOCK_SECONDS = 1.0
_ROUND_SECONDS = 0.002


class Placeholders:
    """Those of one call. Calls that run beside each other share them; the last one to end removes them.

    That is known by a lock, of which each call has a share as long as it runs. It is on a folder that is closed to jobs,
    who could keep it from everybody else; on the writable folders themselves if there is none.
    """

    def __init__(self, walls: dict[str, Any]) -> None:
        self._locks: dict[str, int] = {}
        self._stands: list[str] = []
        self._roots: list[str] = []
        self._closed: list[str] = []
        roots = [root for root in map(os.path.realpath, walls["write"]) if os.path.isdir(root)]
        if not roots or not (walls["fixed"] or walls["closed"]):
            return
        self._roots, self._closed = roots, walls["closed"]
        for folder in _find_guard(self._closed) or roots:
            self._locks[folder] = _share(folder)
        for kind in ("fixed", "closed"):
            walls[kind] = [self._stand_in(path, roots) for path in walls[kind]]

    def remove(self) -> None:
        """Remove them, unless another call needs them still."""
        try:
            # Calls that began before the closed folder was made, and those that began after, have other shares than we.
            for folder in (*self._roots, *_find_guard(self._closed)):
                if folder not in self._locks:
                    self._locks[folder] = _open(folder)
            for lock in self._locks.values():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._stands:
                _remove(path)
        except OSError:
            pass  # whoever is last comes by here too
        finally:
            for lock in self._locks.values():
                os.close(lock)

    def _stand_in(self, path: str, roots: Iterable[str]) -> str:
        """What there is to be kept in place of this path: itself, or the first part of it that is not there."""
        if not any(_is_below(os.path.realpath(path), root) for root in roots):
            return path
        missing = _first_missing(path)
        if missing:
            _make(missing, is_file=missing == path and bool(os.path.splitext(path)[1]))
        place = missing or path
        if _is_placeholder(place):
            self._stands.append(place)
        return place


def _find_guard(closed: Iterable[str]) -> list[str]:
    """The first of these folders that is there; one that only stands in may be removed at any moment."""
    folders = [path for path in map(os.path.realpath, closed) if os.path.isdir(path) and not _is_placeholder(path)]
    return folders[:1]


def _open(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _share(folder: str) -> int:
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
    """The outermost part of a path that is not there, or that only stands in for it; empty if all of it is there."""
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
            # Whoever is kept from it is kept by walls; the host may make use of it meanwhile, and then it stays.
            os.mkdir(path, 0o700)
            os.utime(path, (_MOMENT, _MOMENT))
    except OSError:
        return  # it is there by now, or nobody can make it, the job neither


def _make_file(path: str) -> None:
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, _content_for(path))
        os.utime(file, (_MOMENT, _MOMENT))
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(file)


def _content_for(path: str) -> bytes:
    """Nothing, and where that could not be read, what says nothing: Node reads every package.json on its way."""
    return _EMPTY_OBJECT if path.endswith(".json") else b""


def _is_placeholder(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    if facts.st_mtime != _MOMENT or facts.st_uid != os.geteuid():
        return False
    if stat.S_ISDIR(facts.st_mode):
        return not os.listdir(path)
    return stat.S_ISREG(facts.st_mode) and _holds(path, _content_for(path))


def _holds(path: str, content: bytes) -> bool:
    """Whether a file holds this and nothing more."""
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
