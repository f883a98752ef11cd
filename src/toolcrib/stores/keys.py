"""Which keys a store takes: what is safe as the path of a file on every system."""

from __future__ import annotations

import re

from toolcrib.model.errors import Kind, ToolError

MAX_KEY = 200
KEY = re.compile(r"[a-z0-9]+(?:/[a-z0-9][a-z0-9.-]*)+")
PREFIX = re.compile(r"(?:[a-z0-9]+(?:/[a-z0-9][a-z0-9.-]*)*/?)?")


def check_key(key: str) -> None:
    """Refuse what is not a path of at least two plain words."""
    if len(key) > MAX_KEY or not KEY.fullmatch(key):
        message = f"{key[:80]!r} cannot be a key of a store; write words of a-z, 0-9, '.' and '-', as in results/1"
        raise ToolError(Kind.VALIDATION, message)


def check_prefix(prefix: str) -> None:
    """Refuse what no key can begin with."""
    if len(prefix) > MAX_KEY or not PREFIX.fullmatch(prefix):
        raise ToolError(Kind.VALIDATION, f"{prefix[:80]!r} cannot be the beginning of a key of a store")
