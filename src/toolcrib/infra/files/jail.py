"""File access for tools beneath one root: read, write, list and delete, never outside of it."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from toolcrib.infra.files import read_at_most
from toolcrib.infra.files.durable import UnsyncedError, explained, fault, replace_in, show_path
from toolcrib.infra.files.safe_paths import (
    MAX_LINKS,
    OpenBeneath,
    Opened,
    Protection,
    choose_opener,
    read_link,
    split_link,
    split_path,
)
from toolcrib.model.errors import Cure, Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

WORKSPACE = "workspace"

# Without O_NONBLOCK, opening a FIFO would block until another process writes.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
# Without reading or writing: to close such a descriptor releases no lock that this process has on the file.
_LOOK = os.O_PATH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DELETED = " (deleted)"
_NEW_FILE = 0o666
_NEW_FOLDER = 0o777
_ANY_WRITE = 0o222


class IsFixed(Protocol):
    """Tells whether no tool may write a path below the root."""

    def __call__(self, path: str, *, is_new_folder: bool = False) -> bool:
        """Whether it may not; `is_new_folder` if an empty folder is to be made there."""


def _is_open(path: str, *, is_new_folder: bool = False) -> bool:  # noqa: ARG001 - as the protocol says
    return False


class Jail:
    """Read, list, write and delete beneath a root; `is_sensitive` receives the real, absolute path of an opened file.

    A leading `workspace` in a relative path is dropped, once, if the root has that name too and contains no such entry:
    an agent may write `workspace/a.txt` for `a.txt`, and an existing folder of that name is used.

    The absolute paths in `protected`, and everything below them, are read-only; so is any file whose name ends in one
    of `protected_endings`, or whose real path below the root `is_fixed`.
    """

    def __init__(
        self,
        root: Path,
        *,
        is_sensitive: Callable[[str], bool],
        protected: Iterable[Path] = (),
        protected_endings: tuple[str, ...] = (),
        is_fixed: IsFixed = _is_open,
        open_beneath: OpenBeneath | None = None,
    ) -> None:
        self._descriptor = -1
        try:
            self.root = root.resolve(strict=True)
            self._descriptor = os.open(self.root, _FOLDER | os.O_CLOEXEC)
        except OSError as error:
            message = f"workspace {root}: {error.strerror}; create the folder or name another one"
            raise SettingsError(message) from None
        self._spellings = (str(self.root), str(root.absolute()))
        self._is_sensitive = is_sensitive
        self._is_fixed = is_fixed
        self._protection = Protection(protected, protected_endings)
        self._open_beneath = open_beneath or choose_opener(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the root; afterwards nothing can be opened."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    # A Crib that could not be opened closes nothing.
    __del__ = close

    def read(self, path: str, limit: int) -> bytes:
        """The content of a regular file of at most `limit` bytes."""
        with self._open(path, _READ) as file:
            status = os.fstat(file.descriptor)
            _check_readable(path, status)
            data = read_at_most(file.descriptor, limit + 1)
        size = max(status.st_size, len(data))
        if size > limit:
            message = f"{show_path(path)} has {size} bytes, the limit is {limit} bytes; read a smaller file"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"path": path, "size": size, "limit": limit})
        return data

    def find(self, path: str, *, to_write: bool = False) -> JailedFile:
        """A regular file by its real path and its identity, for a process of the sandbox that opens it; nothing is opened here.

        That process compares the identity once it has opened the path.
        """
        with self._open(path, _LOOK) as file:
            status = os.fstat(file.descriptor)
            _check_readable(path, status)
            if to_write:
                folder, _, name = file.real.rpartition("/")
                with _closing(self._open_beneath(self._descriptor, split_link(folder), _FOLDER)) as opened:
                    self._refuse_writing(path, opened, name)
                _check_writable(path, status)
        return JailedFile(posixpath.join(self.root, file.real), (status.st_dev, status.st_ino))

    def list_folder(self, path: str, limit: int) -> FolderListing:
        """At most `limit` items of a folder; links are listed and not followed."""
        with self._open(path, _READ) as folder:
            if not stat.S_ISDIR(os.fstat(folder.descriptor).st_mode):
                message = f"{show_path(path)} is not a folder; list the folder that holds it, or read the file"
                raise ToolError(Kind.VALIDATION, message, details={"path": path})
            with os.scandir(folder.descriptor) as scan:
                names = [entry.name for entry in islice(scan, limit + 1)]
            items = [_describe(folder.descriptor, name) for name in sorted(names)[:limit]]
        return FolderListing(tuple(item for item in items if item is not None), complete=len(names) <= limit)

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file atomically, creating missing folders.

        A link that stays inside is followed. After an error, new folders may remain.
        """
        with self._holder_of(path) as (folder, name):
            self._put(path, folder, name, data)

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, creating it if needed; concurrent appends are preserved."""
        with self._holder_of(path) as (folder, name):
            self._extend(path, folder, name, data)

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        with explained(path):
            parts = self._split(path)
            self._refuse_sensitive(path, "/".join(parts))
            try:
                opened = self._open_beneath(self._descriptor, parts, _READ)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                    return False
                if error.errno == errno.ENXIO:  # a socket exists, but cannot be opened
                    return True
                raise
            with _closing(opened):
                self._refuse_sensitive(path, opened.real)
        return True

    def delete(self, path: str) -> None:
        """Remove a file, an empty folder, or a link (not its target)."""
        with explained(path):
            parts = self._split(path)
            self._refuse_sensitive(path, "/".join(parts))
            if not parts or parts[-1] == "..":
                raise fault(errno.EISDIR)
            with _closing(self._open_beneath(self._descriptor, parts[:-1], _FOLDER)) as folder:
                self._remove(path, folder, parts[-1])

    def make_folder(self, path: str) -> bool:
        """Create a folder with its parents; False if it exists."""
        with explained(path):
            parts = self._split(path)
            self._refuse_sensitive(path, "/".join(parts))
            try:
                opened = self._open_beneath(self._descriptor, parts, _FOLDER)
            except FileNotFoundError:
                opened, is_new = self._make_folder(path, parts), True
            else:
                is_new = False
            with _closing(opened):
                self._refuse_sensitive(path, opened.real)
        return is_new

    def _split(self, path: str) -> list[str]:
        parts = split_path(path, self._spellings)
        is_relative = not path.startswith(("/", "\\"))
        if is_relative and parts[:1] == [WORKSPACE] == [self.root.name] and self._lacks(WORKSPACE):
            return parts[1:]
        return parts

    def _lacks(self, name: str) -> bool:
        return not _has_name(self._descriptor, name)

    @contextmanager
    def _open(self, path: str, flags: int) -> Iterator[Opened]:
        with explained(path), _closing(self._open_beneath(self._descriptor, self._split(path), flags)) as opened:
            self._refuse_sensitive(path, opened.real)
            yield opened

    @contextmanager
    def _holder_of(self, path: str) -> Iterator[tuple[Opened, str]]:
        """The folder, created if missing, and the final name of a path to be written."""
        with explained(path):
            parts = self._split(path)
            self._refuse_sensitive(path, "/".join(parts))
            for _ in range(MAX_LINKS):
                if not parts or parts[-1] == "..":
                    raise fault(errno.EISDIR)
                with _closing(self._make_folder(path, parts[:-1], parts[-1])) as folder:
                    target = read_link(folder.descriptor, parts[-1])
                    if target is None:
                        yield folder, parts[-1]
                        return
                parts = [*parts[:-1], *split_link(target)]
            raise fault(errno.ELOOP)

    def _make_folder(self, path: str, parts: Sequence[str], name: str | None = None) -> Opened:
        """Open a folder, creating it with its parents; not if a file of that `name` in it could not be written."""
        try:
            return self._open_beneath(self._descriptor, parts, _FOLDER)
        except FileNotFoundError:
            if name is not None:
                self._refuse_in_new_folder(path, parts, name)
            for depth in range(len(parts)):
                self._make_in(path, parts[:depth], parts[depth])
        return self._open_beneath(self._descriptor, parts, _FOLDER)

    def _refuse_in_new_folder(self, path: str, parts: Sequence[str], name: str) -> None:
        """Refuse a file with a protected name below folders that are missing, before any of them is created."""
        for depth in reversed(range(len(parts))):
            try:
                opened = self._open_beneath(self._descriptor, parts[:depth], _FOLDER)
            except FileNotFoundError:
                continue
            with _closing(opened) as folder:
                real = posixpath.normpath(posixpath.join(folder.real, *parts[depth:], name))
            self._refuse_name(path, real)
            return

    def _make_in(self, path: str, parent: Sequence[str], name: str) -> None:
        with _closing(self._open_beneath(self._descriptor, parent, _FOLDER)) as folder:
            self._refuse_sensitive(path, posixpath.join(folder.real, name))
            if self._is_fixed(posixpath.join(folder.real, name), is_new_folder=True) or self._protection.bars_folder(
                folder.descriptor, self._locate(folder, name)
            ):
                raise _protected(path)
            # An existing name may be a folder, a link to one, or something that opening it reports.
            with suppress(FileExistsError):
                os.mkdir(name, _NEW_FOLDER, dir_fd=folder.descriptor)
                os.fsync(folder.descriptor)

    def _put(self, path: str, folder: Opened, name: str, data: bytes) -> None:
        self._refuse_writing(path, folder, name)
        try:
            old = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            old = None
        if old is not None:
            _check_writable(path, old)
        replace_in(folder.descriptor, name, data, mode=_NEW_FILE, old=old)

    def _extend(self, path: str, folder: Opened, name: str, data: bytes) -> None:
        self._refuse_writing(path, folder, name)
        descriptor = os.open(name, _APPEND, _NEW_FILE, dir_fd=folder.descriptor)
        try:
            status = os.fstat(descriptor)
            _check_writable(path, status)
            _refuse_second_name(path, status)
            _write_on(descriptor, data)
            if not status.st_size:
                _sync(folder.descriptor)
        finally:
            os.close(descriptor)

    def _remove(self, path: str, folder: Opened, name: str) -> None:
        self._refuse_writing(path, folder, name)
        status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _remove_folder(path, folder.descriptor, name)
        else:
            if not stat.S_ISLNK(status.st_mode):
                _check_writable(path, status)
            os.unlink(name, dir_fd=folder.descriptor)
        _sync(folder.descriptor)

    def _refuse_writing(self, path: str, folder: Opened, name: str) -> None:
        self._refuse_name(path, posixpath.join(folder.real, name))
        if self._protection.bars_file(folder.descriptor, self._locate(folder, name)):
            raise _protected(path)

    def _refuse_name(self, path: str, real: str) -> None:
        self._refuse_sensitive(path, real)
        if self._is_fixed(real):
            raise _runs_by_itself(path)
        if self._protection.bars_name(real):
            raise _protected(path)

    def _locate(self, folder: Opened, name: str) -> str:
        return posixpath.normpath(posixpath.join(self.root, folder.real, name))

    def _refuse_sensitive(self, path: str, real: str) -> None:
        real = posixpath.normpath(real)
        if real == ".":  # the root itself is the operator's choice
            return
        absolute = posixpath.join(self.root, real)
        # The kernel appends a mark to the path of a deleted file; the name is checked without it.
        if self._is_sensitive(absolute) or self._is_sensitive(absolute.removesuffix(_DELETED)):
            message = (
                f"{show_path(path)} is a sensitive file; use another one, or ask the operator to take it off the list"
            )
            raise ToolError(Kind.BLOCKED, message, details={"path": path, "real": real})


class JailedFile(NamedTuple):
    """A file beneath a root: its absolute path without links, and its device and inode."""

    path: str
    identity: tuple[int, int]


def _has_name(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Item:
    """One name in a folder; `size` is None for anything but a file."""

    name: str
    type: ItemType
    size: int | None


class ItemType(StrEnum):
    """The type of a folder item."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The items of a folder, sorted by name; `complete` is False if there are more."""

    items: tuple[Item, ...]
    complete: bool


def read_text(jail: Jail, path: str, limit: int) -> str:
    """The text of a file of at most `limit` bytes."""
    data = jail.read(path, limit)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{show_path(path)} is not UTF-8 text (byte {error.start}); read a text file, or convert it to UTF-8"
        raise ToolError(Kind.VALIDATION, message, details={"path": path, "byte": error.start}) from None


def encode_text(path: str, content: str, limit: int) -> bytes:
    """Encode content for a file of at most `limit` bytes."""
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"content for {show_path(path)} contains a lone surrogate (character {error.start}); write the whole character"
        raise ToolError(Kind.VALIDATION, message, details={"character": error.start}) from None
    if len(data) > limit:
        message = (
            f"content for {show_path(path)} has {len(data)} bytes, the limit is {limit} bytes; write smaller files"
        )
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": len(data), "limit": limit})
    return data


def list_items(jail: Jail, path: str, limit: int) -> list[dict[str, object]]:
    """The items of a folder as JSON, sorted by name; beyond the limit an error with those that fit."""
    listing = jail.list_folder(path, limit)
    items: list[dict[str, object]] = [
        {"name": item.name, "type": str(item.type), "size": item.size} for item in listing.items
    ]
    if listing.complete:
        return items
    message = (
        f"{show_path(path)} holds more than {limit} items, these are {limit} of them; "
        "name the file you look for, or spread them over folders"
    )
    raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"path": path, "limit": limit}, value=items)


@contextmanager
def _closing(opened: Opened) -> Iterator[Opened]:
    try:
        yield opened
    finally:
        os.close(opened.descriptor)


def _protected(path: str) -> ToolError:
    message = f"{show_path(path)} is protected: settings and tools of the project are not for tools to change"
    cure = Cure("the operator may set `workspace` to another folder", "name another file")
    return ToolError(Kind.BLOCKED, message, cure=cure, details={"path": path})


def _runs_by_itself(path: str) -> ToolError:
    message = f"{show_path(path)} is protected: the host starts programs by it"
    cure = Cure(
        "write another file, or ask the operator to open it with workspace.open in toolcrib.toml", "write another file"
    )
    return ToolError(Kind.BLOCKED, message, cure=cure, details={"path": path})


def _check_readable(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise fault(errno.EISDIR)
    if not stat.S_ISREG(status.st_mode):
        raise fault(errno.ENXIO)
    _refuse_second_name(path, status)


def _refuse_second_name(path: str, status: os.stat_result) -> None:
    if status.st_nlink > 1:
        message = f"{show_path(path)} has {status.st_nlink} names, and one may lie outside the workspace; make a copy and use that"
        raise ToolError(Kind.BLOCKED, message, details={"path": path})


def _check_writable(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise fault(errno.EISDIR)
    if not stat.S_ISREG(status.st_mode):
        raise fault(errno.ENXIO)
    # Replacing a file needs no permission on the file itself, so its write permission is checked here.
    if not status.st_mode & _ANY_WRITE:
        message = f"{show_path(path)} is read-only; make it writable (chmod u+w) or write another file"
        raise ToolError(Kind.PERMANENT, message, details={"path": path})


def _write_on(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        if len(rest) == len(data):
            raise
        raise UnsyncedError(error.errno, error.strerror) from None
    _sync(descriptor)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise UnsyncedError(error.errno, error.strerror) from None


def _remove_folder(path: str, parent: int, name: str) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        message = f"{show_path(path)} is a folder that is not empty; delete what is in it first"
        raise ToolError(Kind.VALIDATION, message, details={"path": path}) from None


def _describe(folder: int, name: str) -> Item | None:
    """The item, or None if it was removed since it was listed."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    # Invalid UTF-8 is shown with escapes, because JSON cannot represent it.
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    kind = _type_of(status.st_mode)
    return Item(shown, kind, status.st_size if kind is ItemType.FILE else None)


def _type_of(mode: int) -> ItemType:
    if stat.S_ISREG(mode):
        return ItemType.FILE
    if stat.S_ISDIR(mode):
        return ItemType.DIRECTORY
    return ItemType.SYMLINK if stat.S_ISLNK(mode) else ItemType.OTHER
