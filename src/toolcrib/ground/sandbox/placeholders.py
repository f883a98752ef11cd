"""What a job may not make: for the time of the job something empty stands in its place, which can be fixed or closed."""

# ruff: noqa: PTH102, PTH106, PTH108, PTH112, PTH120, PTH122, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import fcntl
import os
import stat
import time

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

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
