"""What is wrong with a pattern that the engine does not take."""

from __future__ import annotations

import re
import warnings

SHOWN = 80
# Each makes an engine try again from the start, which no pattern here may ask for.
GOES_BACK = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?<?[=!]|\\[1-9]|\\k[<{']|\(\?P=|\(\?>)")


def explain_pattern(pattern: str) -> str:
    """Why it is refused, with the place in it where that can be told."""
    shown = f"{pattern!r:.{SHOWN}}"
    if GOES_BACK.search(pattern):
        return f"pattern not supported (linear-time engine): {shown}; write it without look-around and back-references"
    if fault := _fault(pattern):
        return f"{shown} is no regular expression: {fault}; correct it"
    return f"pattern not supported (linear-time engine): {shown}; write a simpler one"


def _fault(pattern: str) -> str:
    """What the library finds wrong with it; it reads nearly the same patterns as the engine, and says more."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        return f"{error.msg} at position {error.pos or 0}"
    except (OverflowError, RecursionError):
        return "it is too large"
    return ""
