"""The files of a folder, or of a whole tree of folders: listed within bounds, and only where tools may lie."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.ground.files.stamps import ABSENT, settled_stamp
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.ground.files.stamps import Stamp

MAX_DEPTH = 12
MAX_FOLDERS = 1_000
MAX_NAMES = 50_000
MAX_PACKAGE_NAMES = 500

# What package managers and interpreters fill; hidden folders are left out too.
FOREIGN = frozenset({"node_modules", "__pycache__", "venv"})
PYTHON_ENVIRONMENT = "pyvenv.cfg"


@dataclass(slots=True)
class Listing:
    """The names of files, relative to the folder; the stamp of every folder that was looked into; what went wrong."""

    files: set[str] = field(default_factory=set)
    stamps: dict[str, Stamp | None] = field(default_factory=dict)
    problems: list[ToolError] = field(default_factory=list)


def list_files(root: Path, *, deep: bool) -> Listing:
    """List a folder, with every folder below it if `deep`; what is beyond the bounds is left out and reported."""
    walk = _Walk(root, deep=deep)
    level = [""]
    try:
        # Level by level: should there be too much, what lies further up is there.
        while level:
            level = [below for folder in level for below in walk.visit(folder)]
    except ToolError as problem:
        walk.listing.problems.append(problem)
    return walk.listing


def list_packages(root: Path, description: str, max_bytes: int) -> Listing:
    """List the folders directly in a folder that hold a description of at most so many bytes; nothing else is looked at.

    What is wrong with the folder itself, whoever lists its files says.
    """
    walk = _Walk(root, deep=True)
    try:
        folders = walk.visit("")
    except ToolError:
        folders = []
    found = {folder for folder in folders if _is_small_file(f"{root}/{folder}/{description}", max_bytes)}
    return Listing(files=found, stamps=walk.listing.stamps)


def stamps_within(folder: str) -> dict[str, Stamp | None]:
    """The stamps of a folder and of everything in it; where there is more than a package has, that nothing is known of it."""
    stamps: dict[str, Stamp | None] = {}
    waiting = [folder]
    try:
        while waiting:
            path = waiting.pop()
            status = os.lstat(path)
            stamps[path] = settled_stamp(status)
            if stat.S_ISDIR(status.st_mode):
                waiting += _names_in(path)
            if len(stamps) + len(waiting) > MAX_PACKAGE_NAMES:
                return {folder: None}
    except OSError:
        return {folder: None}
    return stamps


def refused(path: Path | str, problem: OSError) -> ToolError:
    """The problem of a file or folder that the system does not let us read."""
    return ToolError(Kind.PERMANENT, f"{path}: {problem.strerror}; mend it or move it away")


class _Walk:
    """One walk through the folders, which adds to the listing as it goes."""

    def __init__(self, root: Path, *, deep: bool) -> None:
        self.listing = Listing()
        self._root = str(root)
        self._deep = deep
        self._names = 0

    def visit(self, folder: str) -> list[str]:
        """List one folder, named from the root; the folders in it that are to be visited next."""
        path = f"{self._root}/{folder}" if folder else self._root
        if folder.count("/") >= MAX_DEPTH:
            raise _left_out(path, f"it lies more than {MAX_DEPTH} folders deep; move it further up")
        if len(self.listing.stamps) >= MAX_FOLDERS:
            raise _left_out(path, f"there are more than {MAX_FOLDERS:,} folders; move away what holds no tools")
        names, folders = self._list(path)
        if folder and PYTHON_ENVIRONMENT in names:
            return []
        before = f"{folder}/" if folder else ""
        self.listing.files.update(before + name for name in names)
        return [before + name for name in sorted(folders) if self._deep and self._may_hold_tools(path, name)]

    def _list(self, path: str) -> tuple[list[str], list[str]]:
        """The names of files and of folders in it; a link to a folder is not followed and counts as a file."""
        stamps, problems = self.listing.stamps, self.listing.problems
        names: list[str] = []
        folders: list[str] = []
        try:
            # Before the names are read: what comes or goes in between changes the stamp once more.
            stamps[path] = settled_stamp(os.stat(path))  # noqa: PTH116 - paths are texts here, see stamps.is_as_it_was
            with os.scandir(path) as entries:
                for entry in islice(entries, MAX_NAMES - self._names + 1):
                    (folders if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
        except FileNotFoundError:
            stamps[path] = ABSENT
        except (PermissionError, NotADirectoryError) as problem:
            problems.append(refused(path, problem))
        except OSError as problem:
            # It may be over at the next look, without any change to the folder.
            stamps[path] = None
            problems.append(refused(path, problem))
        self._names += len(names) + len(folders)
        if self._names > MAX_NAMES:
            raise _left_out(path, f"there are more than {MAX_NAMES:,} files; move away what is no tool")
        return names, folders

    def _may_hold_tools(self, parent: str, name: str) -> bool:
        if name.startswith(".") or name in FOREIGN:
            return False
        try:
            check_letters(parent, name)
        except ToolError as problem:
            self.listing.problems.append(problem)
            return False
        return True


def _is_small_file(path: str, max_bytes: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes


def _names_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.path for entry in islice(entries, MAX_PACKAGE_NAMES + 1) if not is_foreign(entry.name)]


def check_letters(parent: Path | str, name: str) -> None:
    """Refuse a name that could not be printed."""
    try:
        name.encode()
    except UnicodeEncodeError:
        message = f"{parent}: the name {os.fsencode(name)!r} is not UTF-8; rename it"
        raise ToolError(Kind.VALIDATION, message) from None


def _left_out(path: str, reason: str) -> ToolError:
    return ToolError(Kind.LIMIT_EXCEEDED, f"{path} is left out with all that comes after it: {reason}")
