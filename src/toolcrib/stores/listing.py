"""What lies in the folders of a store, and how one sees that it changed."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import is_temporary, is_trash, sweep_in, sweep_trash_in
from toolcrib.ground.files.disk import DISK, Disk
from toolcrib.ground.files.folders import enter, way_to
from toolcrib.stores.keys import is_key, is_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_GONE = (FileNotFoundError, NotADirectoryError)


class Listing:
    """Looks through the folders below the root; links are not followed.

    Whoever comes across what a killed writer left removes it.
    """

    def __init__(self, root: Path, *, disk: Disk = DISK) -> None:
        self._root = root
        self._disk = disk

    def documents(self, prefix: str) -> dict[str, str]:
        """The keys that begin so, each with its stamp; anything but a folder counts as a document."""
        *words, _ = prefix.split("/")
        with suppress(*_GONE), way_to(self._root, words) as way:
            found = self._documents_in(way[-1], "".join(f"{word}/" for word in words), prefix)
            if all(_stands(*step) for step in zip(way, words, way[1:], strict=False)):
                return found
        return {}

    def folders(self, words: Sequence[str]) -> dict[str, str]:
        """The folders in a folder, each with its stamp."""
        found: dict[str, str] = {}
        place = "/".join(words)
        with suppress(*_GONE), way_to(self._root, words) as way:
            for entry in self._scan(way[-1]):
                if is_prefix(f"{place}/{entry.name}") and entry.is_dir(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # gone since it was listed
                        status = entry.stat(follow_symlinks=False)
                        found[entry.name] = f"{status.st_ino:x}.{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"
        return found

    def strangers(self, words: Sequence[str]) -> list[str]:
        """What lies in a folder and cannot be the key of a document, nor a folder of some, nor left by a writer."""
        place = "/".join(words)
        with suppress(*_GONE), way_to(self._root, words) as way:
            return sorted(
                entry.name
                for entry in self._scan(way[-1])
                if not (is_key(f"{place}/{entry.name}") or is_temporary(entry.name) or is_trash(entry.name))
            )
        return []

    def _documents_in(self, folder: int, place: str, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in self._scan(folder):
            key = f"{place}{entry.name}"
            with suppress(*_GONE):  # since it was listed
                if entry.is_dir(follow_symlinks=False):
                    if is_prefix(key) and f"{key}/".startswith(prefix[: len(key) + 1]):
                        found |= self._documents_below(folder, entry.name, key, prefix)
                elif key.startswith(prefix) and is_key(key):
                    found[key] = stamp_of(entry.stat(follow_symlinks=False))
        return found

    def _documents_below(self, parent: int, name: str, key: str, prefix: str) -> dict[str, str]:
        with _entered(parent, name) as folder:
            found = self._documents_in(folder, f"{key}/", prefix)
            return found if _stands(parent, name, folder) else {}

    def _scan(self, folder: int) -> Iterator[os.DirEntry[str]]:
        left = False
        with os.scandir(folder) as scan:
            for entry in scan:
                left = left or is_temporary(entry.name) or is_trash(entry.name)
                yield entry
        if left:
            with suppress(OSError):  # who may only read leaves it to who may write
                sweep_in(folder, disk=self._disk)
                sweep_trash_in(folder, disk=self._disk)


def stamp_of(status: os.stat_result) -> str:
    """What changes whenever the file does, whoever changed it."""
    where, when = f"{status.st_dev:x}.{status.st_ino:x}", f"{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"
    return f"{where}.{status.st_size:x}.{when}"


def _stands(parent: int, name: str, folder: int) -> bool:
    """Whether the folder is still there; if it was discarded while it was read, only half of it may have been seen."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(folder))
    except FileNotFoundError:
        return False


@contextmanager
def _entered(parent: int, name: str) -> Iterator[int]:
    descriptor = enter(parent, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
