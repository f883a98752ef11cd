"""How a capability is written: dotted names, any depth."""

from __future__ import annotations

import re

_CAPABILITY = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")


def is_capability(text: str) -> bool:
    """Whether this is written like a capability, such as `fs.read`."""
    return _CAPABILITY.fullmatch(text) is not None
