"""The last lines, in memory."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from toolcrib.journal.lines import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolcrib.model.protocols import Line

KEPT_LINES = 10_000


class MemoryJournal:
    """Keeps the newest lines and forgets the oldest; `on_lines` is handed each of them once, many at a time."""

    def __init__(self, kept: int = KEPT_LINES, *, on_lines: Callable[[Sequence[Line]], None] | None = None) -> None:
        self._lines: deque[Line] = deque(maxlen=kept)
        self._new: deque[Line] = deque()
        self._on_lines = on_lines
        self._handing = threading.Lock()
        self.record: Callable[[Line], None] = self._lines.append if on_lines is None else self._recorder()

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, oldest first."""
        self.flush()
        return (to_json(line) for line in tuple(self._lines))

    def flush(self) -> None:
        """Hand over the lines that were not handed over yet."""
        if self._on_lines is None:
            return
        with self._handing:
            # Taken one by one: a call may be adding a line at this very moment, and none may be lost.
            lines = [self._new.popleft() for _ in range(len(self._new))]
            self._lines.extend(lines)
            self._on_lines(lines)

    def close(self) -> None:
        """Nothing is owed to a disk, but whoever waits for lines gets them."""
        self.flush()

    def _recorder(self) -> Callable[[Line], None]:
        new, add = self._new, self._new.append

        def record(line: Line) -> None:
            # Every call waits for this.
            add(line)
            if len(new) >= KEPT_LINES:
                self.flush()

        return record
