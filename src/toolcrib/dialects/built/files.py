"""The files of a package, as bytes: read within bounds, no link followed, nothing waited for, and none that changes meanwhile."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.files import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_NAMES,
    READ_AT_ONCE,
    check_name,
    spell_name,
)
from toolcrib.ground.files.atomic import read_at_most
from toolcrib.ground.files.folders import OPEN_FOLDER
from toolcrib.ground.files.stamps import stamp_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


def read_folder(folder: Path, *, besides: Collection[str] = ()) -> dict[str, bytes]:
    """Every file of a folder, deep, by its path from there; what editors and interpreters leave is no part of it.

    How much there may be does not include the files `besides`, which lie directly in it.
    """
    place = spell_name(folder.name)
    with _explained(place):
        _refuse_link(os.lstat(folder).st_mode, place)
        descriptor = os.open(folder, OPEN_FOLDER | os.O_NOFOLLOW)
    reader = _Reader(place, besides)
    try:
        reader.enter(descriptor, ())
    finally:
        os.close(descriptor)
    return reader.files


def read_file(path: Path) -> bytes:
    """The bytes of one file."""
    with _explained(spell_name(path.name)):
        folder = os.open(path.parent, OPEN_FOLDER)
    try:
        return _read(folder, path.name, spell_name(path.name))
    finally:
        os.close(folder)


class _Reader:
    """One walk through a folder that is open; the first thing that cannot be taken ends it."""

    def __init__(self, name: str, besides: Collection[str]) -> None:
        self.files: dict[str, bytes] = {}
        self._name = name
        self._besides = besides
        self._seen = 0
        self._bytes = 0

    def enter(self, folder: int, parts: tuple[str, ...]) -> None:
        """Take every file of an open folder, and of the folders in it."""
        place = self._place(parts)
        if len(parts) > MAX_DEPTH:
            raise _beyond(place, f"lies more than {MAX_DEPTH} folders deep; move it further up")
        for name in self._list(folder, place):
            check_name(place, name)
            inner = self._place((*parts, name))
            with _explained(inner):
                kind = os.lstat(name, dir_fd=folder).st_mode
                _refuse_link(kind, inner)
                below = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=folder) if stat.S_ISDIR(kind) else None
            if below is None:
                self._take(folder, (*parts, name))
                continue
            try:
                self.enter(below, (*parts, name))
            finally:
                os.close(below)

    def _list(self, folder: int, place: str) -> list[str]:
        with _explained(place), os.scandir(folder) as entries:
            found = [entry.name for entry in islice(entries, MAX_NAMES + 1)]
        names = sorted(name for name in found if not is_foreign(name))
        self._seen += sum(name not in self._besides for name in names)
        if self._seen > MAX_FILES or len(found) > MAX_NAMES:
            raise _beyond(place, f"more than {MAX_FILES} files and folders; move away what the tool does not need")
        return names

    def _take(self, folder: int, parts: tuple[str, ...]) -> None:
        place = self._place(parts)
        data = _read(folder, parts[-1], place)
        self._bytes += 0 if parts[0] in self._besides else len(data)
        if self._bytes > MAX_BYTES:
            raise _beyond(place, f"more than {MAX_BYTES:,} bytes in all; move data out of the tool")
        self.files["/".join(parts)] = data

    def _place(self, parts: tuple[str, ...]) -> str:
        return "/".join((self._name, *map(spell_name, parts)))


def _read(folder: int, name: str, place: str) -> bytes:
    with _explained(place):
        # Asked before it is opened: some devices act upon being opened.
        kind = os.lstat(name, dir_fd=folder).st_mode
        _refuse_link(kind, place)
        _refuse_irregular(kind, place)
        descriptor = os.open(name, READ_AT_ONCE | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            before = os.fstat(descriptor)
            _refuse_irregular(before.st_mode, place)
            data = b"" if before.st_size > MAX_FILE_BYTES else read_at_most(descriptor, MAX_FILE_BYTES + 1)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    if max(before.st_size, len(data)) > MAX_FILE_BYTES:
        raise _beyond(place, f"has more than {MAX_FILE_BYTES:,} bytes; move data out of the tool")
    if stamp_of(before) != stamp_of(after) or len(data) != after.st_size:
        message = f"{place}: changed while it was read; try again when nobody writes to it"
        raise ToolError(Kind.TRANSIENT, message, retryable=True)
    return data


def _refuse_link(kind: int, place: str) -> None:
    if stat.S_ISLNK(kind):
        message = f"{place}: is a link, which is not followed; put a copy of what it means there"
        raise ToolError(Kind.BLOCKED, message)


def _refuse_irregular(kind: int, place: str) -> None:
    if not stat.S_ISREG(kind):
        raise ToolError(Kind.VALIDATION, f"{place}: is not a regular file; move it away")


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Tell what the operating system says about a file, with its place."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(Kind.NOT_FOUND, f"{place}: is not there; put it there, or name another") from None
    except OSError as error:
        raise ToolError(Kind.PERMANENT, f"{place}: {error.strerror}; mend it or move it away") from None


def _beyond(place: str, reason: str) -> ToolError:
    return ToolError(Kind.LIMIT_EXCEEDED, f"{place}: {reason}")
