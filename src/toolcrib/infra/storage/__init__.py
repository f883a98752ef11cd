"""Validate the keys of stored documents, which are safe file paths on every system, and their size; the store in memory."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from toolcrib.infra.files.locks import Turns, held_already, not_free
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import LOCK_SECONDS, MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# A space, an id, the names of a tool and of its version, each of the maximum length of `lib.document_format`, and an
# extension.
MAX_KEY = 250

_SPACE = "[a-z0-9]+"
_WORD = "[a-z0-9_][a-z0-9._@-]*"
_KEY = re.compile(f"{_SPACE}(?:/{_WORD})+")
_FOLDER = re.compile(f"{_SPACE}(?:/{_WORD})*")
_PREFIX = re.compile(f"(?:{_FOLDER.pattern}/?)?")


def is_key(text: str) -> bool:
    """Whether it is a path of at least two plain words."""
    return len(text) <= MAX_KEY and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    """Refuse an invalid key."""
    if not is_key(key):
        words = "words of a-z, 0-9, '.', '_', '@' and '-'"
        message = f"{key[:80]!r} cannot be a key of a store; write {words}, as in results/1"
        raise ToolError(Kind.VALIDATION, message)


def is_prefix(text: str) -> bool:
    """Whether a key can have this prefix."""
    return len(text) <= MAX_KEY and _PREFIX.fullmatch(text) is not None


def check_prefix(prefix: str) -> None:
    """Refuse an invalid prefix."""
    if not is_prefix(prefix):
        raise ToolError(Kind.VALIDATION, f"{prefix[:80]!r} cannot be the beginning of a key of a store")


def read_folder(prefix: str) -> tuple[str, ...]:
    """The words of a folder of keys, with or without a trailing slash."""
    check_prefix(prefix)
    words = tuple(prefix.rstrip("/").split("/"))
    if words == ("",):
        raise ToolError(Kind.VALIDATION, "the whole store is not a folder of keys; name a space, as in results")
    return words


def check_size(place: str, size: int, limit: int, **details: object) -> None:
    """Refuse a document beyond the limit."""
    if size > limit:
        message = f"{place} has more than {limit} bytes; make it smaller, or move it away"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit, **details})


def check_space(space: str) -> None:
    """Refuse an invalid first word of a key."""
    if len(space) > MAX_KEY or not re.fullmatch(_SPACE, space):
        raise ToolError(Kind.VALIDATION, f"{space[:80]!r} cannot be a space of a store; write one word of a-z and 0-9")


def check_lock(name: str) -> None:
    """Refuse an invalid lock name."""
    if len(name) > MAX_KEY or not _FOLDER.fullmatch(name):
        raise ToolError(Kind.VALIDATION, f"{name[:80]!r} cannot be a lock of a store; write words, as in bundle/1")


class MemoryStore:
    """Documents in a dictionary; threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._documents: dict[str, tuple[bytes, int, float]] = {}
        # The number of the last change below each folder; a space is a folder.
        self._changes: dict[str, int] = {}
        self._count = 0
        self._turns: WeakValueDictionary[str, Turns] = WeakValueDictionary()

    def get(self, key: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
        """The document, or None; raises LIMIT_EXCEEDED for one of more than `limit` bytes."""
        check_key(key)
        kept = self._documents.get(key)
        if kept is None:
            return None
        check_size(key, len(kept[0]), limit)
        return kept[0]

    def create(self, key: str, document: bytes) -> bool:
        """Store a new document; False if the key exists."""
        check_key(key)
        with self._mutex:
            if key in self._documents:
                return False
            self._documents[key] = document, self._note(key), time.time()
        return True

    def replace(self, key: str, document: bytes) -> None:
        """Store a document, replacing the one of this key."""
        check_key(key)
        with self._mutex:
            self._documents[key] = document, self._note(key), time.time()

    def remove(self, key: str) -> bool:
        """Remove a document; False if there is none."""
        check_key(key)
        with self._mutex:
            if self._documents.pop(key, None) is None:
                return False
            self._note(key)
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys with this prefix, sorted."""
        return sorted(self.stamps(prefix))

    def stamp(self, key: str) -> str | None:
        """A value that changes whenever the document does; None if there is none."""
        check_key(key)
        kept = self._documents.get(key)
        return None if kept is None else str(kept[1])

    def changed_at(self, key: str) -> float | None:
        """When the document last changed; None if there is none."""
        check_key(key)
        kept = self._documents.get(key)
        return None if kept is None else kept[2]

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents with this prefix."""
        check_prefix(prefix)
        with self._mutex:
            return {key: str(change) for key, (_, change, _) in self._documents.items() if key.startswith(prefix)}

    def folders(self, prefix: str) -> dict[str, str]:
        """The folders directly below `prefix`, each with a stamp."""
        place = "/".join(read_folder(prefix)) + "/"
        with self._mutex:
            rests = (key.removeprefix(place) for key in self._documents if key.startswith(place))
            words = {rest.partition("/")[0] for rest in rests if "/" in rest}
            return {word: str(self._changes[place + word]) for word in words}

    def other_files(self, prefix: str) -> list[str]:
        """Always empty: memory contains nothing but documents."""
        read_folder(prefix)
        return []

    def create_folder(self, prefix: str, documents: Mapping[str, bytes], *, replacing: bool = False) -> bool:
        """Store a folder of documents, all of them or none; False if the folder exists and is not to be replaced."""
        place = "/".join(read_folder(prefix)) + "/"
        if place.count("/") == 1:
            raise ToolError(Kind.VALIDATION, f"{prefix!r:.80} is a whole space; name a folder in it")
        for word in documents:
            check_key(place + word)
        with self._mutex:
            there = [key for key in self._documents if key.startswith(place)]
            if there and not replacing:
                return False
            for key in there:
                del self._documents[key]
                self._note(key)
            for word, document in documents.items():
                self._documents[place + word] = document, self._note(place + word), time.time()
        return True

    def discard(self, prefix: str) -> None:
        """Remove everything below a folder atomically."""
        place = "/".join(read_folder(prefix)) + "/"
        with self._mutex:
            for key in [key for key in self._documents if key.startswith(place)]:
                del self._documents[key]
                self._note(key)

    def generation(self, space: str) -> str:
        """A value that changes with every document of the space that is created, replaced or removed."""
        check_space(space)
        return str(self._changes.get(space, 0))

    @contextmanager
    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Hold the name exclusively among all threads; raises TRANSIENT at the deadline."""
        check_lock(name)
        with self._mutex:
            turns = self._turns.setdefault(name, Turns())
        if turns.mine:
            raise held_already(name)
        if not turns.enter(time.monotonic() + seconds):
            raise not_free(name, seconds)
        try:
            yield
        finally:
            turns.leave()

    def _note(self, key: str) -> int:
        """Record a change for every folder of the key; returns its number."""
        self._count += 1
        place = key
        while place := place.rpartition("/")[0]:
            self._changes[place] = self._count
        return self._count
