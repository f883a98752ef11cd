"""How large a soak is: as written, or a part of it where the variable SOAK says so (`SOAK=0.1`, as `make judges` does)."""

from __future__ import annotations

import os


def size(full: int) -> int:
    """So many of it, at least two."""
    return max(2, round(full * float(os.environ.get("SOAK", "1"))))
