"""Paths that may be read and never written, by whatever name or way somebody comes to them."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    Identity = tuple[int, int]

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
# What file systems that fold case leave out when they compare two names.
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Protection:
    """Each path itself and everything below it, and wherever it lies every file whose name ends in one of the endings.

    A path is known by its name, which holds before anything is there, and by the file or folder that is there, which
    holds under every name. Where a protected folder holds links, as to a tool that is kept elsewhere, what they lead to
    is protected too. All is looked up at each question, because links may change.
    """

    def __init__(self, paths: Iterable[Path], endings: tuple[str, ...] = ()) -> None:
        self._paths = tuple(str(path.absolute()) for path in paths)
        self._endings = endings

    def bars_folder(self, parent: int, real: str) -> bool:
        """Whether no folder may be made in the open parent; `real` is its absolute path, free of links."""
        return bool(self._paths) and _is_inside(parent, real, self._look_up())

    def bars_file(self, parent: int, real: str) -> bool:
        """As `bars_folder`; a file may not stand on the way to one of the paths either."""
        if _fold_name(posixpath.basename(real)).endswith(self._endings):
            return True
        if not self._paths:
            return False
        known = self._look_up()
        place = _fold(real)
        on_the_way = any(_fold(target)[: len(place)] == place for target in known.values())
        return on_the_way or _is_inside(parent, real, known)

    def _look_up(self) -> dict[str, str]:
        """Every path that is protected now, with where it leads."""
        paths = (found for path in self._paths for found in (path, *_links_in(path)))
        return {path: os.path.realpath(path) for path in paths}


def _is_inside(parent: int, real: str, known: Mapping[str, str]) -> bool:
    """Whether the path leads to one that is known or below it: by its names, by what is there, by parent and name."""
    place = _fold(real)
    if any(place[: len(names)] == names for names in map(_fold, known.values())):
        return True
    name = posixpath.basename(real)
    things = {_identify(target) for target in known.values()} - {None}
    if _identify(name, parent) in things or not things.isdisjoint(_way_up(parent)):
        return True
    folders = (posixpath.dirname(path) for path in known if _fold(posixpath.basename(path)) == _fold(name))
    return any(_identify(os.path.realpath(folder)) == _identify(".", parent) for folder in folders)


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as scan:
            return [entry.path for entry in scan if entry.is_symlink()]
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return []
        raise


def _way_up(folder: int) -> Iterator[Identity | None]:
    """The open folder and those above it, as the disk and not their names tells."""
    way, last = ".", None
    while (here := _identify(way, folder)) != last:
        yield here
        way, last = f"{way}/..", here


def _identify(path: str, folder: int | None = None) -> Identity | None:
    """What makes a file or folder the same under every name, or None if nothing is there."""
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise
    return status.st_dev, status.st_ino


def _fold(path: str) -> tuple[str, ...]:
    """The names of a path, alike for all spellings that some file system takes for the same."""
    return tuple(_fold_name(name) for name in path.split("/") if name)


@lru_cache(maxsize=4096)
def _fold_name(name: str) -> str:
    bare = _IGNORED.sub("", unicodedata.normalize("NFKD", name)).casefold()
    return unicodedata.normalize("NFKD", bare).rstrip(" .")
