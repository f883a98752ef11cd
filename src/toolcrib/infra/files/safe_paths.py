"""Open a path beneath a folder's descriptor, so that the checked file is the opened one.

There are two implementations: `open_by_kernel` lets openat2 resolve the path in one step, `open_by_walk` opens one
component at a time. In both a link may point anywhere beneath the root; a link to an absolute path is refused, even to
one inside.
"""

from __future__ import annotations

import errno
import os
import posixpath
import sys
import unicodedata
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.infra.files.durable import fault, show_path
from toolcrib.lib.protected_names import fold
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Identity = tuple[int, int]

MAX_LINKS = 40
MAX_PARTS = 255
MAX_PATH = 4096

_OPENAT2 = 437  # the same on x86, ARM, RISC-V, POWER and s390
_NO_MAGIC_LINKS = 0x02
_BENEATH = 0x08
_ATTEMPTS = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_UNSPEAKABLE = frozenset({"Cc", "Cs"})  # control characters, and lone surrogates


@dataclass(frozen=True, slots=True)
class Opened:
    """A descriptor and its path: relative to the root, without links, "." for the root itself."""

    descriptor: int
    real: str


class OpenBeneath(Protocol):
    """Opens the path with these components; raises OSError, EXDEV if it leaves the root."""

    def __call__(self, root: int, parts: Sequence[str], flags: int) -> Opened:
        """Open; `..` and links are followed as long as they stay beneath the root."""


def choose_opener(root: int) -> OpenBeneath:
    """openat2 where it works, else the walk."""
    if sys.platform != "linux":
        return open_by_walk
    try:
        opened = open_by_kernel(root, (), _FOLDER)
    except OSError:  # an old kernel, a seccomp filter that does not know openat2, or no /proc
        return open_by_walk
    os.close(opened.descriptor)
    return open_by_kernel


def open_by_kernel(root: int, parts: Sequence[str], flags: int) -> Opened:
    """Open in one step that no rename can interrupt."""
    descriptor = _open_settled(root, os.fsencode("/".join(parts) or "."), flags | os.O_CLOEXEC)
    try:
        return Opened(descriptor, _real_path(root, descriptor))
    except BaseException:
        os.close(descriptor)
        raise


def open_by_walk(root: int, parts: Sequence[str], flags: int) -> Opened:
    """Open component by component; a link is read, never followed, and the walk continues from its folder."""
    waiting = list(reversed(parts))
    links = 0
    with closing(_Walk(root)) as walk:
        while waiting:
            part = waiting.pop()
            if part == "..":
                walk.climb()
                continue
            try:
                if not waiting:
                    return walk.open(part, flags)
                walk.enter(part)
            except OSError:
                target = read_link(walk.folder, part)
                if target is None:
                    raise
                links += 1
                if links > MAX_LINKS:
                    raise fault(errno.ELOOP) from None
                waiting.extend(reversed(split_link(target)))
        return walk.open(".", flags)


def read_link(folder: int, name: str) -> str | None:
    """The target of the link, or None if there is no link of this name."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def split_link(target: str) -> list[str]:
    """The components of a link's target, unless it is absolute."""
    if target.startswith("/"):
        raise fault(errno.EXDEV)
    return [part for part in target.split("/") if part not in {"", "."}]


class Protection:
    """Protected paths with everything below them, and files with one of these endings anywhere.

    A path is identified by its name, which also covers a path that does not exist yet, and by the existing file or
    folder, which covers every name of it. If a protected folder contains links, their targets are protected too.
    Everything is looked up each time, because links may change.
    """

    def __init__(self, paths: Iterable[Path], endings: tuple[str, ...] = ()) -> None:
        self._paths = tuple(str(path.absolute()) for path in paths)
        self._endings = endings

    def bars_folder(self, parent: int, real: str) -> bool:
        """Whether creating a folder in the open parent is forbidden; `real` is its absolute path without links."""
        return bool(self._paths) and _is_inside(parent, real, self._look_up())

    def bars_file(self, parent: int, real: str) -> bool:
        """As `bars_folder`; a file may not take the place of a parent of a protected path either."""
        if self.bars_name(real):
            return True
        if not self._paths:
            return False
        known = self._look_up()
        place = _fold(real)
        on_the_way = any(_fold(target)[: len(place)] == place for target in known.values())
        return on_the_way or _is_inside(parent, real, known)

    def bars_name(self, real: str) -> bool:
        """Whether a file of this name is protected wherever it lies."""
        return _fold_name(posixpath.basename(real)).endswith(self._endings)

    def _look_up(self) -> dict[str, str]:
        """Every protected path with its current target."""
        paths = (found for path in self._paths for found in (path, *_links_in(path)))
        return {path: os.path.realpath(path) for path in paths}


def split_path(path: str, roots: Iterable[str]) -> list[str]:
    """The components beneath the root; `..` is kept, because only the file system knows where it leads.

    A backslash is read as a slash, so a file whose name contains one cannot be named. An absolute path is accepted if
    it begins with a spelling of the root, and refused otherwise.
    """
    _check_characters(path)
    path = path.replace("\\", "/")
    if path.startswith("/"):
        path = _strip_root(path, roots)
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if len(parts) > MAX_PARTS:
        raise ToolError(Kind.VALIDATION, f"{show_path(path)} has {len(parts)} parts; use at most {MAX_PARTS}")
    return parts


class _Walk:
    """A position beneath the root, with the open folders that led to it."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.folders: list[int] = []
        self.names: list[str] = []

    @property
    def folder(self) -> int:
        return self.folders[-1] if self.folders else self.root

    def climb(self) -> None:
        if not self.folders:
            raise fault(errno.EXDEV)
        self.names.pop()
        os.close(self.folders.pop())

    def enter(self, name: str) -> None:
        if len(self.names) == MAX_PARTS:
            raise fault(errno.ENAMETOOLONG)
        self.folders.append(os.open(name, _FOLDER, dir_fd=self.folder))
        self.names.append(name)

    def open(self, name: str, flags: int) -> Opened:
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        names = self.names if name == "." else [*self.names, name]
        return Opened(descriptor, "/".join(names) or ".")

    def close(self) -> None:
        while self.folders:
            os.close(self.folders.pop())


def _real_path(root: int, descriptor: int) -> str:
    top, path = (os.fspath(Path(f"/proc/self/fd/{number}").readlink()) for number in (root, descriptor))
    if path == top:
        return "."
    prefix = f"{top.rstrip('/')}/"
    if not path.startswith(prefix):  # moved out since it was opened
        raise fault(errno.EXDEV)
    return path.removeprefix(prefix)


def _open_settled(root: int, path: bytes, flags: int) -> int:
    openat2 = _openat2()
    for _ in range(_ATTEMPTS - 1):
        # EAGAIN: a concurrent rename on the machine prevented the check of a `..`
        with suppress(BlockingIOError, InterruptedError):
            return openat2(root, path, flags)
    return openat2(root, path, flags)


@cache
def _openat2() -> Callable[[int, bytes, int], int]:
    import ctypes

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(OpenHow), ctypes.c_size_t)

    def openat2(root: int, path: bytes, flags: int) -> int:
        how = OpenHow(flags=flags, mode=0, resolve=_BENEATH | _NO_MAGIC_LINKS)
        descriptor = int(syscall(_OPENAT2, root, path, ctypes.byref(how), ctypes.sizeof(how)))
        if descriptor < 0:
            raise fault(ctypes.get_errno())
        return descriptor

    return openat2


def _is_inside(parent: int, real: str, known: Mapping[str, str]) -> bool:
    """Whether the path is a known one or below it: by name, by identity, by parent and name."""
    place = _fold(real)
    if any(place[: len(names)] == names for names in map(_fold, known.values())):
        return True
    name = posixpath.basename(real)
    things = {_identify(target) for target in known.values()} - {None}
    if _identify(name, parent) in things or not things.isdisjoint(_way_up(parent)):
        return True
    folders = (posixpath.dirname(path) for path in known if _fold(posixpath.basename(path)) == _fold(name))
    return any(_identify(os.path.realpath(folder)) == _identify(".", parent) for folder in folders)


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as scan:
            return [entry.path for entry in scan if entry.is_symlink()]
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return []
        raise


def _way_up(folder: int) -> Iterator[Identity | None]:
    """The open folder and its ancestors, by identity instead of name."""
    way, last = ".", None
    while (here := _identify(way, folder)) != last:
        yield here
        way, last = f"{way}/..", here


def _identify(path: str, folder: int | None = None) -> Identity | None:
    """The identity of a file or folder under every name, or None if it does not exist."""
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise
    return status.st_dev, status.st_ino


def _fold(path: str) -> tuple[str, ...]:
    """The names of a path, folded so that spellings equal on some file system are equal."""
    return tuple(_fold_name(name) for name in path.split("/") if name)


_fold_name = lru_cache(maxsize=4096)(fold)


def _check_characters(path: str) -> None:
    if not path:
        raise ToolError(Kind.VALIDATION, "the path is empty; write '.' for the workspace itself")
    if len(path) > MAX_PATH:
        raise ToolError(Kind.VALIDATION, f"{show_path(path)} has {len(path)} characters; use at most {MAX_PATH}")
    if any(unicodedata.category(letter) in _UNSPEAKABLE for letter in path):
        raise ToolError(Kind.VALIDATION, f"{show_path(path)} holds a control character; write the path without it")


def _strip_root(path: str, roots: Iterable[str]) -> str:
    for root in roots:
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            return path[len(root) :]
    raise ToolError(
        Kind.BLOCKED,
        f"{show_path(path)} lies outside the workspace; use a path relative to the workspace",
        details={"path": path[:MAX_PATH]},
    )
