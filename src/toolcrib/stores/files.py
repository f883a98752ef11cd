"""Documents as files, for the eyes of their owner; what was kept survives the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.files import durable
from toolcrib.ground.files.faults import explained
from toolcrib.stores.keys import KEY, check_key, check_prefix

if TYPE_CHECKING:
    from pathlib import Path


class FileStore:
    """Keeps each document in a file of its own below one folder; of many creators, in whichever process, one wins.

    A key whose path is a folder, or leads through a file, is the key of no document.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept: set[Path] = set()

    def get(self, key: str) -> bytes | None:
        """The document, or None."""
        path = self._path(key)
        with explained(str(path)):
            try:
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken."""
        path = self._path(key)
        if path.parent not in self._swept:
            # Once in the life of a store: what a killed writer left is of no use to anybody.
            self._swept.add(path.parent)
            durable.sweep(path.parent)
        return durable.create(path, document)

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""
        path = self._path(key)
        with explained(str(path)):
            try:
                path.unlink()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return False
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        check_prefix(prefix)
        with explained(str(self._root)):
            files = [path for path in (self._root / prefix.rpartition("/")[0]).rglob("*") if path.is_file()]
        keys = (path.relative_to(self._root).as_posix() for path in files)
        return sorted(key for key in keys if key.startswith(prefix) and KEY.fullmatch(key))

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._root / key
