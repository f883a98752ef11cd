"""Questions to the person at the terminal; where there is none, the answer is no."""

from __future__ import annotations

import sys

from toolcrib.faces.cli.printing import is_terminal, visible

YES = frozenset({"y", "yes"})


def may_ask() -> bool:
    """Whether somebody can both read a question and answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agrees(question: str) -> bool:
    """Ask once; anything but a clear yes is a no."""
    if not may_ask():
        return False
    sys.stderr.write(visible(question) + " [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES
