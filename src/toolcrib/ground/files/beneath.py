"""Opening a path beneath a folder's descriptor, so that what was judged is what is opened.

Two ways do the same: `open_by_kernel` lets openat2 resolve the path in one step, `open_by_walk` opens one component at
a time. In both a link may point anywhere beneath the root; a link to an absolute path is refused, even to one inside.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.ground.files.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_LINKS = 40
MAX_PARTS = 255

_OPENAT2 = 437  # the same on x86, ARM, RISC-V, POWER and s390
_NO_MAGIC_LINKS = 0x02
_BENEATH = 0x08
_ATTEMPTS = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Opened:
    """A descriptor, and where it lies: relative to the root, free of links, "." for the root itself."""

    descriptor: int
    real: str


class OpenBeneath(Protocol):
    """Opens the path that the parts spell; raises OSError, EXDEV if the path leads out."""

    def __call__(self, root: int, parts: Sequence[str], flags: int) -> Opened:
        """Open; `..` and links are followed as long as they stay beneath the root."""


def choose_opener(root: int) -> OpenBeneath:
    """The kernel's own way where it works, else the walk."""
    if sys.platform != "linux":
        return open_by_walk
    try:
        opened = open_by_kernel(root, (), _FOLDER)
    except OSError:  # an old kernel, a filter that does not know openat2, or no /proc
        return open_by_walk
    os.close(opened.descriptor)
    return open_by_kernel


def open_by_kernel(root: int, parts: Sequence[str], flags: int) -> Opened:
    """Open in one step that no rename can come between."""
    descriptor = _open_settled(root, os.fsencode("/".join(parts) or "."), flags | os.O_CLOEXEC)
    try:
        return Opened(descriptor, _real_path(root, descriptor))
    except BaseException:
        os.close(descriptor)
        raise


def open_by_walk(root: int, parts: Sequence[str], flags: int) -> Opened:
    """Open component by component; a link is read, never followed, and the walk goes on from the folder it lies in."""
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
    """What the link says, or None if there is no link of this name."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def split_link(target: str) -> list[str]:
    """The components of a link's text, unless it starts over from the machine's own root."""
    if target.startswith("/"):
        raise fault(errno.EXDEV)
    return [part for part in target.split("/") if part not in {"", "."}]


class _Walk:
    """A place beneath the root, with the open folders that led to it."""

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
        # EAGAIN: a rename somewhere on the machine made it impossible to judge a `..`
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
