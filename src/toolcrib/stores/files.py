"""Documents as files, for the eyes of their owner; what was kept survives the process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.ground.files import durable
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from pathlib import Path

KEY = re.compile(r"[a-z0-9]+(/[a-z0-9][a-z0-9.-]*)+")


class FileStore:
    """Keeps each document in a file of its own below one folder; of many creators, in whichever process, one wins."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, key: str) -> bytes | None:
        """The document, or None."""
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken."""
        return durable.create(self._path(key), document)

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            return False
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        files = (path for path in (self._root / prefix.rpartition("/")[0]).rglob("*") if path.is_file())
        keys = (path.relative_to(self._root).as_posix() for path in files)
        return sorted(key for key in keys if key.startswith(prefix) and KEY.fullmatch(key))

    def _path(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ToolError(Kind.VALIDATION, f"{key[:80]!r} cannot be a key of a store")
        return self._root / key
