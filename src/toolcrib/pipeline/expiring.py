"""Documents that are kept until a moment which their key begins with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Store

STAMP_LETTERS = 8
SWEEP_SECONDS = 60.0


class Expiring:
    """A corner of a store whose documents go when their time is over; the sweep reads keys, never documents."""

    def __init__(self, store: Callable[[], Store], prefix: str, *, clock: Callable[[], float] = time.time) -> None:
        # A function, because the store of a project is made when something is first kept in it.
        self._store = store
        self._prefix = prefix
        self._clock = clock
        self._swept = 0.0

    def create(self, expiry: float, name: str, document: bytes) -> bool:
        """Keep a document until `expiry`; False if the name is taken."""
        self._sweep()
        return self._store().create(self._key(expiry, name), document)

    def get(self, expiry: float, name: str) -> bytes | None:
        """The document, unless its time is over."""
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


def stamp(moment: float) -> str:
    """A moment as letters that sort by time."""
    return f"{int(moment):0{STAMP_LETTERS}x}"
