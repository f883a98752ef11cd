"""A folder of tool files: read without running any of it, and read again when a file changes."""

from __future__ import annotations

import logging
import os
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.catalog.tree import Listing, check_letters, list_files, list_packages, refused, stamps_within
from toolcrib.ground.files.stamps import is_as_it_was, settled_stamp
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolcrib.ground.files.stamps import Stamp
    from toolcrib.model.protocols import Dialect
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.catalog")

MAX_FILE_BYTES = 256_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """What a file held when it was last read, and the stamps of all that it depends on; without any it is read again."""

    stamps: Mapping[str, Stamp | None] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    problem: ToolError | None = None


class Folder:
    """The tools of one folder, under one bundle; of a `deep` one the folders in it are part.

    Files are named by their path from the folder. A file in which a dialect finds no tool is nobody's business.
    """

    def __init__(self, path: Path, bundle: str, dialects: Sequence[Dialect], *, deep: bool = False) -> None:
        self.path = path
        self.bundle = bundle
        self._dialects = dialects
        self._deep = deep
        self._files: dict[str, ReadFile] = {}
        self._listing = Listing()

    @property
    def files(self) -> list[tuple[str, ReadFile]]:
        """The files of the folder that are meant to be tools, by name."""
        return sorted(self._files.items())

    @property
    def tools(self) -> list[Tool]:
        """The tools that could be read, by file name."""
        return [tool for _, file in self.files for tool in file.tools]

    @property
    def problems(self) -> list[ToolError]:
        """Why the other files, or folders, could not be read."""
        return [*self._listing.problems, *(file.problem for _, file in self.files if file.problem is not None)]

    def refresh(self) -> bool:
        """Look at every file; True if anything is not as it was."""
        before = [problem.message for problem in self._listing.problems]
        self._listing = self._list()
        gone = self._files.keys() - self._listing.files
        for name in gone:
            del self._files[name]
        changed = [self._look_at(name) for name in sorted(self._listing.files)]
        return bool(gone) or any(changed) or before != [problem.message for problem in self._listing.problems]

    def refresh_names(self) -> bool:
        """Look at every file if any came or went; True if anything is not as it was."""
        stamps = self._listing.stamps
        return not (stamps and all(is_as_it_was(path, stamp) for path, stamp in stamps.items())) and self.refresh()

    def refresh_file(self, name: str) -> bool:
        """Look at one file that is known; True if it is not as it was."""
        return name in self._files and self._look_at(name)

    def _list(self) -> Listing:
        return list_files(self.path, deep=self._deep)

    def _path(self, name: str) -> Path:
        """The file that a name stands for."""
        return self.path / name

    def _stamps_around(self, path: Path) -> dict[str, Stamp | None]:
        """Those of whatever else a file depends on."""
        return {}

    def _look_at(self, name: str) -> bool:
        known = self._files.get(name)
        if known is not None and _is_as_it_was(known):
            return False
        path = self._path(name)
        dialect = next((dialect for dialect in self._dialects if dialect.reads(path)), None)
        found = None if dialect is None else self._read(path, dialect)
        if found is None:
            return self._files.pop(name, None) is not None
        is_alike = known is not None and _alike(known, found)
        # The tools that are known already stay the same objects, and what was prepared for them stays good.
        self._files[name] = replace(found, tools=known.tools) if known is not None and is_alike else found
        return not is_alike

    def _read(self, path: Path, dialect: Dialect) -> ReadFile | None:
        """What the file holds now; None if there is no such file."""
        try:
            check_letters(path.parent, path.name)
            # Before anything is read: what changes meanwhile changes its stamp once more.
            stamps = self._stamps_around(path)
            stamps[str(path)], code = _read_bytes(path)
        except IsADirectoryError:
            return None
        except FileNotFoundError as problem:
            return ReadFile(problem=refused(path, problem)) if path.is_symlink() else None
        except OSError as problem:
            return ReadFile(problem=refused(path, problem))
        except ToolError as problem:
            return ReadFile(problem=problem)
        return self._translate(path, dialect, stamps, code)

    def _translate(self, path: Path, dialect: Dialect, stamps: Mapping[str, Stamp | None], code: bytes) -> ReadFile:
        try:
            tools = tuple(replace(tool, bundle=self.bundle) for tool in dialect.read(path, code))
        except ToolError as problem:
            return ReadFile(stamps=stamps, problem=problem)
        except Exception as problem:
            # A dialect may be a plug-in: its mistake costs this one file.
            logger.exception("%s could not be read by the dialect %s", path, dialect.name)
            message = f"{path}: the dialect {dialect.name!r} failed on it ({type(problem).__name__}); see the log"
            return ReadFile(stamps=stamps, problem=ToolError(Kind.INTERNAL, message))
        return ReadFile(stamps=stamps, tools=tools)


class Packages(Folder):
    """The tools that are folders in one folder: each holds a `description` in a file of that name, and goes by its own."""

    def __init__(self, path: Path, bundle: str, dialects: Sequence[Dialect], description: str) -> None:
        super().__init__(path, bundle, dialects)
        self._description = description

    def _list(self) -> Listing:
        return list_packages(self.path, self._description, MAX_FILE_BYTES)

    def _path(self, name: str) -> Path:
        return self.path / name / self._description

    def _stamps_around(self, path: Path) -> dict[str, Stamp | None]:
        return stamps_within(str(path.parent))


def _is_as_it_was(known: ReadFile) -> bool:
    return bool(known.stamps) and all(is_as_it_was(path, stamp) for path, stamp in known.stamps.items())


def _read_bytes(path: Path) -> tuple[Stamp | None, bytes]:
    """The stamp and the bytes of one and the same file; never waits, whatever lies there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(Kind.VALIDATION, f"{path}: is not a regular file; move it away")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            code = file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(code) > MAX_FILE_BYTES:
        message = f"{path}: has more than {MAX_FILE_BYTES} bytes, too many for a tool file; move data out of the code"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)
    return settled_stamp(status), code


def _alike(before: ReadFile, after: ReadFile) -> bool:
    if _said(before.problem) != _said(after.problem):
        return False
    return [_facts(tool) for tool in before.tools] == [_facts(tool) for tool in after.tools]


def _said(problem: ToolError | None) -> tuple[object, ...] | None:
    return None if problem is None else (problem.message, problem.details.get("tool_id"))


def _facts(tool: Tool) -> tuple[object, ...]:
    return tool.content_hash, tool.origin, tool.warnings
