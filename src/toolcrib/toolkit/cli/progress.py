"""Show a spinner with the elapsed seconds on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.toolkit.cli import BUSY, is_terminal, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

# Work that takes less time shows no spinner.
PATIENCE_SECONDS = 0.7
TURN_SECONDS = 0.1
BRAILLE, ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
CLEAR = "\r\x1b[2K"


class Spinner:
    """Redraws one line until it is stopped; code that writes to the terminal meanwhile must clear it first."""

    def __init__(self, stream: TextIO, text: str, patience: float = PATIENCE_SECONDS) -> None:
        self.text = text
        self._stream = stream
        self._patience = patience
        self._signs = BRAILLE if "utf" in (stream.encoding or "").lower() else ASCII
        self._drawing = threading.Lock()
        self._is_drawn = False
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._turn, name="toolcrib spinner", daemon=True)
        self._thread.start()

    def clear(self) -> None:
        """Clear the line until it is next redrawn."""
        with self._drawing:
            if self._is_drawn:
                self._stream.write(CLEAR)
                self._stream.flush()
                self._is_drawn = False

    def stop(self) -> None:
        """Stop redrawing and clear the line."""
        self._ended.set()
        self._thread.join()
        self.clear()

    def _turn(self) -> None:
        turn = 0
        pause = self._patience
        while not self._ended.wait(pause):
            pause = TURN_SECONDS
            turn += 1
            with self._drawing:
                seconds = time.monotonic() - self._began
                sign = self._signs[turn % len(self._signs)]
                self._stream.write(f"{CLEAR}{sign} {visible(self.text)} ({seconds:.0f} s)")
                self._stream.flush()
                self._is_drawn = True


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Inside the block, show a spinner with this text; yields a function that changes the text."""
    if not is_terminal(sys.stderr) or BUSY:
        yield lambda _: None
        return
    spinner = Spinner(sys.stderr, text)
    BUSY.append(spinner.clear)

    def tell(what: str) -> None:
        spinner.text = what

    try:
        yield tell
    finally:
        BUSY.remove(spinner.clear)
        spinner.stop()
