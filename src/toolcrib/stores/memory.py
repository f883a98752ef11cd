"""Documents that live as long as the process."""

from __future__ import annotations


class MemoryStore:
    """Keeps documents in a dictionary."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[bytes]] = {}

    def get(self, key: str) -> bytes | None:
        """The document, or None."""
        kept = self._documents.get(key)
        return None if kept is None else kept[0]

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken."""
        # One step, so that of two threads one wins; the tuple is new each time, where equal bytes may be one object.
        mine = (document,)
        return self._documents.setdefault(key, mine) is mine

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""
        return self._documents.pop(key, None) is not None

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        return sorted(key for key in self._documents if key.startswith(prefix))
