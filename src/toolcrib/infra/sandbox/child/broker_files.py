"""Names and files that the broker works on: each in a folder that it holds open, and opened without blocking."""

# ruff: noqa: PTH118, PTH120 - pathlib would take a third of the start
from __future__ import annotations

import errno
import fcntl
import os
import stat

from toolcrib.infra.sandbox import system
from toolcrib.lib.protected_names import REPOSITORY_STORES

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self


class RepositoryMarker:
    """Tells whether a folder below this root is a repository: it has a file or a link HEAD, and objects or what leads to them."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __call__(self, folder: str, name: str) -> bool:
        """Whether it is one, or would be with an entry of this name."""
        place = os.path.join(self._root, folder)
        try:
            facts = os.lstat(os.path.join(place, "HEAD"))
        except PermissionError:
            raise  # a job may have removed the permission and could restore it
        except OSError:
            return False
        stores = (os.path.join(place, store) for store in REPOSITORY_STORES)
        return not stat.S_ISDIR(facts.st_mode) and (name in REPOSITORY_STORES or any(map(os.path.lexists, stores)))


class Opened:
    """A descriptor that is closed at the end of the block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)


class WaitsForReader(Exception):  # noqa: N818 - a condition, not an error
    """A pipe is opened for writing that no process has open for reading yet."""


class Place:
    """A name in an open folder, with its full path; `parent` is -1 if it is not a file's.

    `is_there` says that a file of this name was seen.
    """

    __slots__ = ("is_there", "name", "parent", "real")

    def __init__(self, parent: int, name: str, folder: str) -> None:
        self.is_there = False
        self.parent = parent
        self.name = name
        self.real = f"{folder.rstrip('/')}/{name}" if name else folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        if self.parent >= 0:
            os.close(self.parent)
            self.parent = -1

    def exists(self) -> bool:
        """Whether the name exists."""
        try:
            os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_folder(self) -> bool:
        """Whether it is a folder; raises OSError if it does not exist."""
        return stat.S_ISDIR(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False).st_mode)

    def is_pipe(self) -> bool:
        """Whether it is a named pipe."""
        return stat.S_ISFIFO(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False).st_mode)

    def read_link(self) -> str:
        """The target of a link of this name; empty if it is not a link."""
        try:
            return os.readlink(self.name, dir_fd=self.parent)
        except OSError as problem:
            self.is_there = problem.errno == errno.EINVAL
            return ""


def open_file(place: Place, flags: int, mode: int) -> int:
    """Open the file itself, without blocking."""
    asked = flags & ~(os.O_CLOEXEC | os.O_NONBLOCK)
    quick = asked | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        file = os.open(place.name, quick, mode, dir_fd=place.parent)
    except OSError as problem:
        if problem.errno == errno.ENXIO and not flags & os.O_NONBLOCK and place.is_pipe():
            raise WaitsForReader from problem
        raise
    kind = os.fstat(file).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISDIR(kind)):
        os.close(file)
        raise OSError(errno.EACCES, "neither a file, a folder nor a pipe")
    if not flags & os.O_NONBLOCK:
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return file


def with_folders(paths: Iterable[str], roots: Iterable[str]) -> Iterator[str]:
    """These paths and their parent folders, up to the writable ones."""
    for root in roots:
        for path in paths:
            place = path
            while place != root and system.is_in(place, (root,)):
                yield place
                place = os.path.dirname(place)
        yield root
