"""Values too large to hand over at once: kept aside, read piece by piece by the caller they belong to."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pipeline.expiring import STAMP_LETTERS, Expiring, stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.protocols import Store

SECONDS = 3600
NAME_BYTES = 16
HANDLE = re.compile(rf"[0-9a-f]{{{STAMP_LETTERS + 2 * NAME_BYTES}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a kept value: the text from `offset`, and where the next part begins (None at the end)."""

    text: str
    offset: int
    total: int
    next: int | None


class KeptResults:
    """Keeps the text of large values for an hour, each for its own caller."""

    def __init__(
        self, store: Callable[[], Store], *, seconds: int = SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = Expiring(store, "results", clock=clock)
        self._seconds = seconds
        self._clock = clock

    def keep(self, text: str, caller: str) -> str:
        """Keep the text; nobody else can guess the handle."""
        expiry, name = int(self._clock()) + self._seconds, os.urandom(NAME_BYTES).hex()
        self._kept.create(expiry, name, orjson.dumps({"caller": caller, "text": text}))
        return stamp(expiry) + name

    def read(self, handle: str, caller: str, *, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of what was kept; raises NOT_FOUND to anyone but its caller, and after an hour to everyone."""
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
