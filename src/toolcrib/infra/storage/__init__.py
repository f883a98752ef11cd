"""Documents by key, in files or in memory: the keys, each a safe file path on every system, and the size of documents."""

from __future__ import annotations

import re

from toolcrib.model.errors import Kind, ToolError

# A space, an id, the names of a tool and of its version, each as long as `lib.document_format` writes them, and an
# extension.
MAX_KEY = 250

_SPACE = "[a-z0-9]+"
_WORD = "[a-z0-9_][a-z0-9._@-]*"
_KEY = re.compile(f"{_SPACE}(?:/{_WORD})+")
_FOLDER = re.compile(f"{_SPACE}(?:/{_WORD})*")
_PREFIX = re.compile(f"(?:{_FOLDER.pattern}/?)?")


def is_key(text: str) -> bool:
    """Whether it is a path of at least two plain words."""
    return len(text) <= MAX_KEY and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    """Refuse an invalid key."""
    if not is_key(key):
        words = "words of a-z, 0-9, '.', '_', '@' and '-'"
        message = f"{key[:80]!r} cannot be a key of a store; write {words}, as in results/1"
        raise ToolError(Kind.VALIDATION, message)


def is_prefix(text: str) -> bool:
    """Whether a key can have this prefix."""
    return len(text) <= MAX_KEY and _PREFIX.fullmatch(text) is not None


def check_prefix(prefix: str) -> None:
    """Refuse an invalid prefix."""
    if not is_prefix(prefix):
        raise ToolError(Kind.VALIDATION, f"{prefix[:80]!r} cannot be the beginning of a key of a store")


def read_folder(prefix: str) -> tuple[str, ...]:
    """The words of a folder of keys, with or without a trailing slash."""
    check_prefix(prefix)
    words = tuple(prefix.rstrip("/").split("/"))
    if words == ("",):
        raise ToolError(Kind.VALIDATION, "the whole store is no folder of keys; name a space, as in results")
    return words


def check_size(place: str, size: int, limit: int, **details: object) -> None:
    """Refuse a document beyond the limit."""
    if size > limit:
        message = f"{place} has more than {limit} bytes; make it smaller, or move it away"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit, **details})


def check_space(space: str) -> None:
    """Refuse an invalid first word of a key."""
    if len(space) > MAX_KEY or not re.fullmatch(_SPACE, space):
        raise ToolError(Kind.VALIDATION, f"{space[:80]!r} cannot be a space of a store; write one word of a-z and 0-9")


def check_lock(name: str) -> None:
    """Refuse an invalid lock name."""
    if len(name) > MAX_KEY or not _FOLDER.fullmatch(name):
        raise ToolError(Kind.VALIDATION, f"{name[:80]!r} cannot be a lock of a store; write words, as in bundle/1")
