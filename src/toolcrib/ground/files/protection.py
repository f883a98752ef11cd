"""Paths that may be read and never written, by whatever name or way somebody comes to them."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    Identity = tuple[int, int]

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
# What file systems that fold case leave out when they compare two names.
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Protection:
    """Each path itself and everything below it.

    A path is known by its name, which holds before anything is there, and by the file or folder that is there, which
    holds under every name. Where a protected folder holds links, as to a tool that is kept elsewhere, what they lead to
    is protected too. All is looked up at each question, because links may change.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(str(path.absolute()) for path in paths)

    def bars_folder(self, parent: int, real: str) -> bool:
        """Whether no folder may be made in the open parent; `real` is its absolute path, free of links."""
        paths = self._look_up()
        return _lies_inside(real, paths) or _is_inside(parent, posixpath.basename(real), paths)

    def bars_file(self, parent: int, real: str) -> bool:
        """As `bars_folder`; a file may not stand on the way to one of the paths either."""
        place = _fold(real)
        on_the_way = any(known[: len(place)] == place for known in _places(self._look_up()))
        return on_the_way or self.bars_folder(parent, real)

    def _look_up(self) -> list[str]:
        return [found for path in self._paths for found in (path, *_links_in(path))]


def _lies_inside(real: str, paths: Iterable[str]) -> bool:
    """Whether the name is that of one of the paths, or of something below."""
    place = _fold(real)
    return any(place[: len(known)] == known for known in _places(paths))


def _is_inside(parent: int, name: str, paths: Sequence[str]) -> bool:
    """Whether the thing of that name, or a folder above it, is what one of the paths names."""
    things = {_identify(os.path.realpath(path)) for path in paths} - {None}
    if _identify(name, parent) in things or not things.isdisjoint(_way_up(parent)):
        return True
    namesakes = (path for path in paths if _fold(posixpath.basename(path)) == _fold(name))
    return any(_identify(_parent_of(path)) == _identify(".", parent) for path in namesakes)


def _places(paths: Iterable[str]) -> Iterator[tuple[str, ...]]:
    for path in paths:
        yield _fold(os.path.realpath(path))
        yield _fold(posixpath.join(_parent_of(path), posixpath.basename(path)))


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as scan:
            return [entry.path for entry in scan if entry.is_symlink()]
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return []
        raise


def _parent_of(path: str) -> str:
    return os.path.realpath(posixpath.dirname(path))


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


def _fold_name(name: str) -> str:
    bare = _IGNORED.sub("", unicodedata.normalize("NFKD", name)).casefold()
    return unicodedata.normalize("NFKD", bare).rstrip(" .")
