"""Show on a terminal that a command is at work: a turning sign and the seconds, on standard error, and nothing elsewhere."""

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

# What is done sooner shows nothing.
PATIENCE_SECONDS = 0.7
TURN_SECONDS = 0.1
BRAILLE, ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
CLEAR = "\r\x1b[2K"


class Spinner:
    """Draws one line again and again until it is stopped; code that writes to the terminal meanwhile clears it first."""

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
        """Take the line away; it comes back with the next turn."""
        with self._drawing:
            if self._is_drawn:
                self._stream.write(CLEAR)
                self._stream.flush()
                self._is_drawn = False

    def stop(self) -> None:
        """Take the line away for good."""
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
    """Inside the block, say on a terminal what the command is doing; hands out a function that says what it does next."""
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
