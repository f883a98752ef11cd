"""A folder of tool files: read without running any of it, and read again when a file changes."""

from __future__ import annotations

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

MAX_FILE_BYTES = 256_000
# File systems tell times apart only by their tick: a file this young may be changed again without a new time.
RACY_NANOSECONDS = 50_000_000

Stamp = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """What a file held when it was last read; without a stamp it is read again at the next look."""

    stamp: Stamp | None
    tools: tuple[Tool, ...] = ()
    problem: ToolError | None = None


class Folder:
    """The tools of one folder, under one bundle."""

    def __init__(self, path: Path, bundle: str, dialects: Sequence[Dialect]) -> None:
        self.path = path
        self.bundle = bundle
        self._dialects = dialects
        self._files: dict[str, ReadFile] = {}

    @property
    def tools(self) -> list[Tool]:
        """The tools that could be read, by file name."""
        return [tool for name in sorted(self._files) for tool in self._files[name].tools]

    @property
    def problems(self) -> list[ToolError]:
        """Why the other files could not be read, by file name."""
        problems = (self._files[name].problem for name in sorted(self._files))
        return [problem for problem in problems if problem is not None]

    def refresh(self) -> bool:
        """Look at every file; True if anything is not as it was."""
        try:
            with os.scandir(self.path) as entries:
                names = {entry.name for entry in entries}
        except FileNotFoundError:
            names = set()
        changed = [self.refresh_file(name) for name in sorted(names | self._files.keys())]
        return any(changed)

    def refresh_file(self, name: str) -> bool:
        """Look at one file; True if it is not as it was."""
        known = self._files.get(name)
        stamp = self._stamp(name)
        if stamp is None:
            return self._files.pop(name, None) is not None
        if known is not None and known.stamp == stamp:
            return False
        dialect = next((dialect for dialect in self._dialects if dialect.reads(self.path / name)), None)
        if dialect is None:
            return False
        self._files[name] = self._read(name, dialect, stamp)
        return known is None or not _alike(known, self._files[name])

    def _stamp(self, name: str) -> Stamp | None:
        try:
            status = (self.path / name).stat()
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self, name: str, dialect: Dialect, stamp: Stamp) -> ReadFile:
        path = self.path / name
        settled = stamp if time.time_ns() - stamp[0] > RACY_NANOSECONDS else None
        try:
            if stamp[1] > MAX_FILE_BYTES:
                message = f"{path}: {stamp[1]} bytes are too many for a tool file; the limit is {MAX_FILE_BYTES}"
                raise ToolError(Kind.LIMIT_EXCEEDED, message)  # noqa: TRY301 - reported like every other problem
            tools = tuple(replace(tool, bundle=self.bundle) for tool in dialect.read(path, path.read_bytes()))
        except ToolError as problem:
            return ReadFile(stamp=settled, problem=problem)
        except OSError as problem:
            message = f"{path}: {problem.strerror}"
            return ReadFile(stamp=settled, problem=ToolError(Kind.PERMANENT, message))
        return ReadFile(stamp=settled, tools=tools)


def _alike(before: ReadFile, after: ReadFile) -> bool:
    if (before.problem and before.problem.message) != (after.problem and after.problem.message):
        return False
    return [tool.content_hash for tool in before.tools] == [tool.content_hash for tool in after.tools]
