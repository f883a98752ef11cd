"""The last lines, in memory."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from toolcrib.journal.lines import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.model.protocols import Line

KEPT_LINES = 10_000


class MemoryJournal:
    """Keeps the newest lines and forgets the oldest."""

    def __init__(self, kept: int = KEPT_LINES) -> None:
        self._lines: deque[Line] = deque(maxlen=kept)
        self.record = self._lines.append

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, oldest first."""
        return (to_json(line) for line in tuple(self._lines))

    def close(self) -> None:
        """Nothing is owed to a disk."""
