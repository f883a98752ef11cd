"""Documents that live as long as the process."""

from __future__ import annotations

from toolcrib.stores.keys import check_key, check_prefix


class MemoryStore:
    """Keeps documents in a dictionary; threads may share it."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[bytes]] = {}

    def get(self, key: str) -> bytes | None:
        """The document, or None."""
        check_key(key)
        kept = self._documents.get(key)
        return None if kept is None else kept[0]

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken."""
        check_key(key)
        # One step, so that of two threads one wins; the tuple is new each time, where equal bytes may be one object.
        mine = (document,)
        return self._documents.setdefault(key, mine) is mine

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""
        check_key(key)
        return self._documents.pop(key, None) is not None

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        check_prefix(prefix)
        # Copied in one step: another thread may keep something meanwhile.
        return sorted(key for key in tuple(self._documents) if key.startswith(prefix))
