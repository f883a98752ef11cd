"""Store documents that expire, with the time of expiry in their key, and results that are too large to return at once."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Piece

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Store


STAMP_LETTERS = 8
USED = "confirmations"
SWEEP_SECONDS = 60.0


class Expiring:
    """A part of a store whose documents expire; the sweep reads keys, never documents."""

    def __init__(self, store: Callable[[], Store], prefix: str, *, clock: Callable[[], float] = time.time) -> None:
        # A function, because the store of a project is created on first use.
        self._store = store
        self._prefix = prefix
        self._clock = clock
        self._swept = 0.0

    def create(self, expiry: float, name: str, document: bytes) -> bool:
        """Store a document until `expiry`; False if the name exists."""
        self._sweep()
        return self._store().create(self._key(expiry, name), document)

    def get(self, expiry: float, name: str) -> bytes | None:
        """The document; None if there is none or it has expired."""
        return None if expiry < self._clock() else self._store().get(self._key(expiry, name))

    def _key(self, expiry: float, name: str) -> str:
        return f"{self._prefix}/{stamp(expiry)}{name}"

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept < SWEEP_SECONDS:
            return
        self._swept = now
        current = f"{self._prefix}/{stamp(now)}"
        for key in self._store().keys(f"{self._prefix}/"):
            if key < current:
                self._store().remove(key)


class UsedInStore:
    """Names that can be used once, in a store that several machines may share; a used name is stored until it expires."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._used = Expiring(store, USED)

    def use_once(self, name: str, expiry: float, now: float) -> bool:
        """Use a name up; False if it was used before."""
        return self._used.create(expiry, name, b"used")

    def was_used(self, name: str, expiry: float) -> bool:
        """Whether the name was used up."""
        return self._used.get(expiry, name) is not None


def stamp(moment: float) -> str:
    """A time as text that sorts by time."""
    return f"{int(moment):0{STAMP_LETTERS}x}"


# Values too large for one result: stored, and read piece by piece by the caller they belong to.

SECONDS = 3600
NAME_BYTES = 16
HANDLE = re.compile(rf"[0-9a-f]{{{STAMP_LETTERS + 2 * NAME_BYTES}}}")


class KeptResults:
    """Stores the text of large values for an hour, each for its own caller."""

    def __init__(
        self, store: Callable[[], Store], *, seconds: int = SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = Expiring(store, "results", clock=clock)
        self._seconds = seconds
        self._clock = clock

    def keep(self, text: str, caller: str) -> str:
        """Store the text; the handle cannot be guessed."""
        expiry, name = int(self._clock()) + self._seconds, os.urandom(NAME_BYTES).hex()
        self._kept.create(expiry, name, orjson.dumps({"caller": caller, "text": text}))
        return stamp(expiry) + name

    def read(self, handle: str, caller: str, *, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of a stored text; raises NOT_FOUND for any other caller, and after an hour."""
        document = self._load(handle)
        if document is None or document["caller"] != caller:
            raise ToolError(Kind.NOT_FOUND, f"no result is kept under {handle[:64]!r}; call the tool again")
        if offset < 0 or length <= 0:
            raise ToolError(Kind.VALIDATION, "offset must not be negative and length must be greater than 0")
        text = document["text"]
        end = min(len(text), offset + length)
        return Piece(text=text[offset:end], offset=offset, total=len(text), next=end if end < len(text) else None)

    def _load(self, handle: str) -> dict[str, str] | None:
        if not HANDLE.fullmatch(handle):
            return None
        document = self._kept.get(int(handle[:STAMP_LETTERS], 16), handle[STAMP_LETTERS:])
        return None if document is None else orjson.loads(document)
