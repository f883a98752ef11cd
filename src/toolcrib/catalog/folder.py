"""A folder of tool files: read without running any of it, and read again when a file changes."""

from __future__ import annotations

import logging
import os
import stat
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Dialect
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.catalog")

MAX_FILE_BYTES = 256_000
# File systems tell times apart only by their tick: a file this young may be changed again without a new time.
RACY_NANOSECONDS = 50_000_000

Stamp = tuple[int, int, int, int]
ABSENT: Stamp = (0, 0, 0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """What a file held when it was last read; without a stamp it is read again at the next look."""

    stamp: Stamp | None = None
    tools: tuple[Tool, ...] = ()
    problem: ToolError | None = None


class Folder:
    """The tools of one folder, under one bundle."""

    def __init__(self, path: Path, bundle: str, dialects: Sequence[Dialect]) -> None:
        self.path = path
        self.bundle = bundle
        self._dialects = dialects
        self._files: dict[str, ReadFile] = {}
        self._stamp: Stamp | None = None
        self._problem: ToolError | None = None

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
        """Why the other files, or the folder itself, could not be read."""
        problems = (self._problem, *(file.problem for _, file in self.files))
        return [problem for problem in problems if problem is not None]

    def refresh(self) -> bool:
        """Look at every file; True if anything is not as it was."""
        # Before the names are read: what comes or goes in between changes the stamp once more.
        self._stamp = self._look_at_folder()
        names = self._list()
        changed = [self.refresh_file(name) for name in sorted(names | self._files.keys())]
        return any(changed)

    def refresh_names(self) -> bool:
        """Look at every file if any came or went; True if anything is not as it was."""
        return (self._stamp is None or self._stamp != self._look_at_folder()) and self.refresh()

    def refresh_file(self, name: str) -> bool:
        """Look at one file; True if it is not as it was."""
        known = self._files.get(name)
        dialect = next((dialect for dialect in self._dialects if dialect.reads(self.path / name)), None)
        found = None if dialect is None else self._look(name, dialect, known)
        if found is known:
            return False
        if found is None:
            del self._files[name]
            return True
        is_alike = known is not None and _alike(known, found)
        # The tools that are known already stay the same objects, and what was prepared for them stays good.
        self._files[name] = replace(found, tools=known.tools) if known is not None and is_alike else found
        return not is_alike

    def _look_at_folder(self) -> Stamp | None:
        try:
            return _settled(self.path.stat())
        except OSError:
            return ABSENT

    def _list(self) -> set[str]:
        self._problem = None
        try:
            return {path.name for path in self.path.iterdir()}
        except FileNotFoundError:
            return set()
        except OSError as problem:
            self._problem = _refused(self.path, problem)
            return set()

    def _look(self, name: str, dialect: Dialect, known: ReadFile | None) -> ReadFile | None:
        """What the file holds now; None if there is no such file."""
        path = self.path / name
        try:
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                return None
            if known is not None and known.stamp == _stamp(status):
                return known
            _check_name(path)
            stamp, code = _read(path)
        except FileNotFoundError as problem:
            return ReadFile(problem=_refused(path, problem)) if path.is_symlink() else None
        except OSError as problem:
            return ReadFile(problem=_refused(path, problem))
        except ToolError as problem:
            return ReadFile(problem=problem)
        return self._translate(path, dialect, stamp, code)

    def _translate(self, path: Path, dialect: Dialect, stamp: Stamp | None, code: bytes) -> ReadFile:
        try:
            tools = tuple(replace(tool, bundle=self.bundle) for tool in dialect.read(path, code))
        except ToolError as problem:
            return ReadFile(stamp=stamp, problem=problem)
        except Exception as problem:
            # A dialect may be a plug-in: its mistake costs this one file.
            logger.exception("%s could not be read by the dialect %s", path, dialect.name)
            message = f"{path}: the dialect {dialect.name!r} failed on it ({type(problem).__name__}); see the log"
            return ReadFile(stamp=stamp, problem=ToolError(Kind.INTERNAL, message))
        return ReadFile(stamp=stamp, tools=tools)


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        message = f"{path.parent}: the name of the file {os.fsencode(path.name)!r} is not UTF-8; rename it"
        raise ToolError(Kind.VALIDATION, message) from None


def _read(path: Path) -> tuple[Stamp | None, bytes]:
    """The stamp and the bytes of one and the same file; never waits, whatever lies there."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(Kind.VALIDATION, f"{path}: is not a regular file; move it away")
        code = file.read(MAX_FILE_BYTES + 1)
    if len(code) > MAX_FILE_BYTES:
        message = f"{path}: has more than {MAX_FILE_BYTES} bytes, too many for a tool file; move data out of the code"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)
    return _settled(status), code


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _settled(status: os.stat_result) -> Stamp | None:
    """The stamp, unless a change at this very moment would leave it as it is."""
    # The time of the last change of any kind: unlike the time of writing, nobody can set it back.
    return _stamp(status) if time.time_ns() - status.st_ctime_ns > RACY_NANOSECONDS else None


def _refused(path: Path, problem: OSError) -> ToolError:
    return ToolError(Kind.PERMANENT, f"{path}: {problem.strerror}; mend it or move it away")


def _alike(before: ReadFile, after: ReadFile) -> bool:
    if (before.problem and before.problem.message) != (after.problem and after.problem.message):
        return False
    return [tool.content_hash for tool in before.tools] == [tool.content_hash for tool in after.tools]
