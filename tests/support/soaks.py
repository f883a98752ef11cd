"""How large soaks and random searches are.

A soak is as large as written, or a part of that where the variable SOAK says so (`SOAK=0.1`, as `make judges` does). A property
is tried with a part of its examples, and a race (marked `rounds`) with a part of its rounds; both in full where PROPERTIES is `all`, as
`make judges` does.
"""

from __future__ import annotations

import os


def size(full: int) -> int:
    """So many of it, at least two."""
    return max(2, round(full * float(os.environ.get("SOAK", "1"))))


def examples(full: int) -> int:
    """So many examples of a property, or rounds of a race."""
    return full if os.environ.get("PROPERTIES") == "all" else full // 5
