"""Read the files of tool folders: bounded, without blocking, and without following a link out of the root."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from toolcrib.infra.files import MARKS, OPEN_FOLDER, is_tool_folder, read_at_most
from toolcrib.infra.files.safe_paths import choose_opener
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES = 200
MAX_FILE_BYTES = 256_000
MAX_BYTES = 4_000_000
MAX_DEPTH = 12
MAX_NAMES = 50_000
SHOWN = 80

# Errors of a link that leaves the root or loops.
LINK_ERRORS = frozenset({errno.EXDEV, errno.ELOOP})

READ_AT_ONCE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def tool_folders(root: Path) -> list[str]:
    """The names of the tool folders directly under the root."""
    return [name for name in _folders(root) if not name.startswith("_") and is_tool_folder(f"{root}/{name}")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """The files of a folder that could be read, and the problems of the others.

    `unread` are the paths from the root that have a problem of their own.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    problems: tuple[ToolError, ...] = ()
    unread: frozenset[str] = frozenset()


def survey_folder(root: Path, folder: str) -> Survey:
    """Every readable file of one folder, recursively, by its path from the root."""
    try:
        check_name(spell_root(root), folder)
    except ToolError as problem:
        return Survey(problems=(problem,))
    if "/" in folder or folder[:1] in {"", "."}:
        message = f"{spell_root(root)}: {folder[:SHOWN]!r} is not a folder of tools; name one that lies directly in it"
        return Survey(problems=(ToolError(Kind.VALIDATION, message),))
    return _collect(root, [folder])


def survey_shared(root: Path) -> Survey:
    """Every file of the shared folders, whose names begin with an underscore."""
    return _collect(root, [name for name in _folders(root) if name.startswith("_")])


def spell_root(root: Path) -> str:
    """The last name of the root, with which messages begin."""
    return root.name or root.absolute().name or "/"


def spell_name(name: str) -> str:
    """A file name as shown in messages."""
    return name if name.isprintable() else repr(os.fsencode(name))[2:-1]


def _folders(root: Path) -> list[str]:
    """The folders under the root, and links to folders, which are refused when they are read."""
    try:
        with os.scandir(root) as entries:
            found = [(entry.name, _leads_to_folder(entry)) for entry in islice(entries, MAX_NAMES + 1)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ToolError(Kind.PERMANENT, f"{root}: {error.strerror}; correct it or move it away") from None
    if len(found) > MAX_NAMES:
        raise _beyond(str(root), f"holds more than {MAX_NAMES:,} files; move away what is not a tool")
    return sorted(name for name, is_folder in found if is_folder and not is_foreign(name))


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_there(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _collect(root: Path, folders: list[str]) -> Survey:
    if not folders:
        return Survey()
    try:
        with _explained(spell_root(root)):
            descriptor = os.open(root, OPEN_FOLDER)
    except ToolError as problem:
        return Survey(problems=(problem,))
    try:
        collector = _Collector(descriptor, spell_root(root))
        with suppress(_FullError):
            for folder in folders:
                collector.collect(folder)
        return collector.survey()
    finally:
        os.close(descriptor)


class _FullError(Exception):
    """A limit was reached and recorded; reading stops."""


class _Collector:
    """One walk through folders beneath an open root. Problems are recorded, and the walk continues."""

    def __init__(self, root: int, name: str) -> None:
        self._root = root
        self._name = name
        self._files: dict[str, bytes] = {}
        self._problems: list[ToolError] = []
        self._unread: set[str] = set()
        self._seen = 0
        self._bytes = 0

    def collect(self, folder: str) -> None:
        """Collect every file of one folder under the root; if there are too many, at least those that every tool has."""
        with self._noted([folder]):
            try:
                self._enter([folder], self._root)
            except _FullError:
                with self._opened([folder], self._root) as descriptor:
                    self._take_marks(folder, descriptor)
                raise

    def survey(self) -> Survey:
        """The result."""
        return Survey(files=self._files, problems=tuple(self._problems), unread=frozenset(self._unread))

    def _enter(self, parts: list[str], parent: int) -> None:
        """Collect every file of one folder, recursively; `parent` is the open folder around it."""
        with self._opened(parts, parent) as folder:
            for name, is_folder in self._list(folder, self._place(parts)):
                with self._noted([*parts, name]):
                    check_name(self._place(parts), name)
                    if is_folder:
                        self._enter([*parts, name], folder)
                    else:
                        self._take([*parts, name], folder)

    @contextmanager
    def _opened(self, parts: list[str], parent: int) -> Iterator[int]:
        place = self._place(parts)
        if len(parts) > MAX_DEPTH:
            raise _beyond(place, f"lies more than {MAX_DEPTH} folders deep; move it further up")
        with _explained(place):
            if stat.S_ISLNK(os.lstat(parts[-1], dir_fd=parent).st_mode):
                raise OSError(errno.ELOOP, "")
            folder = os.open(parts[-1], OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _noted(self, parts: list[str]) -> Iterator[None]:
        """Record why something could not be read, and continue."""
        try:
            yield
        except ToolError as problem:
            self._problems.append(problem)
            self._unread.add("/".join(parts))

    def _stop(self, place: str, reason: str) -> NoReturn:
        self._problems.append(_beyond(place, reason))
        raise _FullError

    def _list(self, folder: int, place: str) -> list[tuple[str, bool]]:
        """The names in a folder that belong to the tool, each with whether it is a folder."""
        with _explained(place), os.scandir(folder) as entries:
            own = (entry for entry in entries if not is_foreign(entry.name))
            names = sorted((entry.name, _leads_to_folder(entry)) for entry in islice(own, MAX_FILES + 1))
        self._seen += len(names)
        if self._seen > MAX_FILES:
            self._stop(place, f"more than {MAX_FILES} files and folders; move away what the tool does not need")
        return names

    def _take(self, parts: list[str], parent: int) -> None:
        data = self._read_bounded(parts, parent)
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            text = f"the folder has more than {MAX_BYTES:,} bytes in all; move data out of the tool"
            self._stop(self._place(parts), text)
        self._files["/".join(parts)] = data

    def _take_marks(self, folder: str, descriptor: int) -> None:
        """Read the files that mark a folder as a tool, even if there are too many others."""
        for name in MARKS:
            path = f"{folder}/{name}"
            if path not in self._files and path not in self._unread and _is_there(name, descriptor):
                with self._noted([folder, name]):
                    self._files[path] = self._read_bounded([folder, name], descriptor)

    def _read_bounded(self, parts: list[str], parent: int) -> bytes:
        place = self._place(parts)
        with _explained(place):
            data = self._read(parts, parent, place)
        if len(data) > MAX_FILE_BYTES:
            raise _beyond(place, f"has more than {MAX_FILE_BYTES:,} bytes; move data out of the tool")
        return data

    def _read(self, parts: list[str], parent: int, place: str) -> bytes:
        # Checked before it is opened: opening a device may have an effect.
        kind = os.lstat(parts[-1], dir_fd=parent).st_mode
        if stat.S_ISREG(kind):
            descriptor = os.open(parts[-1], READ_AT_ONCE | os.O_NOFOLLOW, dir_fd=parent)
        elif stat.S_ISLNK(kind):
            descriptor = choose_opener(self._root)(self._root, parts, READ_AT_ONCE).descriptor
        else:
            raise _irregular(place)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _irregular(place)
            return read_at_most(descriptor, MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)

    def _place(self, parts: list[str]) -> str:
        return "/".join([self._name, *map(spell_name, parts)])


def check_name(place: str, name: str) -> None:
    """Refuse a name that cannot be printed."""
    if not name.isprintable():
        message = f"{place}: the name '{spell_name(name)[:SHOWN]}' cannot be printed; rename it"
        raise ToolError(Kind.VALIDATION, message)


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Translate an OSError, with the place of the file."""
    try:
        yield
    except OSError as error:
        if error.errno in LINK_ERRORS:
            message = f"{place}: is a link that is not followed; put a copy of what it means there"
            raise ToolError(Kind.BLOCKED, message) from None
        raise ToolError(Kind.PERMANENT, f"{place}: {error.strerror}; correct it or move it away") from None


def _irregular(place: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"{place}: is not a regular file; move it away")


def _beyond(place: str, reason: str) -> ToolError:
    return ToolError(Kind.LIMIT_EXCEEDED, f"{place}: {reason}")
