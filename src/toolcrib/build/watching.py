"""Building again whenever a file of a tool changes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from toolcrib.build.building import build
from toolcrib.model.errors import ToolError
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from toolcrib.build.building import Built

    Stamp = tuple[int, int, int, int]

SECONDS = 0.3
MAX_FILES = 200_000
# File systems tell times apart only by their tick: a file this young may be changed again without a new time.
RACY_NANOSECONDS = 50_000_000


class Stop(Protocol):
    """When to end, as a `threading.Event` says it."""

    def wait(self, timeout: float) -> bool:
        """Wait that long, or until it is time to end; whether it is."""


def watch(
    root: Path,
    *,
    say: Callable[[Built], None],
    stop: Stop,
    cache: Path | None = None,
    project: Path | None = None,
    strict: bool = False,
) -> None:
    """Build at once and after every change, until it is time to stop; `say` hears what each build came to.

    While something is wrong with a folder the registry stays what it was.
    """
    seen: dict[str, Stamp] | None = None
    said: Built | None = None
    with suppress(KeyboardInterrupt):
        while True:
            stamps = _look(root)
            if stamps != seen:
                built = build(root, cache=cache, project=project, strict=strict)
                if built.written or said != replace(built, written=False):
                    say(built)
                said = replace(built, written=False)
                seen = stamps if _is_settled(stamps) else None
            if stop.wait(SECONDS):
                return


def _look(root: Path) -> dict[str, Stamp]:
    """The stamp of every file and folder that a build reads."""
    try:
        return {path: _stamp(path) for path in islice(_paths(root), MAX_FILES)}
    except (ToolError, OSError):  # the build says what is wrong with the root
        return {}


def _paths(root: Path) -> Iterator[str]:
    from toolcrib.dialects.folder.files import tool_folders

    with os.scandir(root) as entries:
        shared = [entry.name for entry in entries if entry.name.startswith("_")]
    for name in (*tool_folders(root), *shared):
        for folder, folders, files in os.walk(root / name):
            folders[:] = [each for each in folders if not is_foreign(each)]
            yield folder
            yield from (f"{folder}/{file}" for file in files)


def _stamp(path: str) -> Stamp:
    try:
        facts = os.stat(path)  # noqa: PTH116 - paths are texts here, thousands of them three times a second
    except OSError:
        return (0, 0, 0, 0)
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _is_settled(stamps: dict[str, Stamp]) -> bool:
    """Whether every later change would show in a stamp."""
    newest = max((changed for _, changed, _, _ in stamps.values()), default=0)
    return time.time_ns() - newest > RACY_NANOSECONDS
