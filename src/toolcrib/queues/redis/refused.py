"""What a server says that answers, and would not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from redis.exceptions import ResponseError

# By the word that the answer begins with, or by the exception that the library makes of that word.
_MEANINGS = {
    "OutOfMemoryError": (
        Kind.TRANSIENT,
        "its memory is full; nothing was stored, give it more or take away what is old",
    ),
    "MISCONF": (Kind.TRANSIENT, "it cannot write to its disk; nothing was stored, look at its log"),
    "BUSY": (Kind.TRANSIENT, "it is busy with a script; nothing was stored, try again"),
    "WRONGTYPE": (
        Kind.PERMANENT,
        "a key that begins with toolcrib: holds what is not ours; take it away, or choose another word for queue_hash",
    ),
    "ReadOnlyError": (
        Kind.PERMANENT,
        "it is a copy that takes no changes; nothing was stored, name the primary in queue_url",
    ),
    "NoPermissionError": (
        Kind.AUTH,
        "this user may not do that; nothing was stored, allow it scripts, SCAN and the keys and channels",
    ),
}


def refused(place: str, problem: ResponseError) -> ToolError:
    """The answer, told with the cure."""
    unknown = (Kind.PERMANENT, f"{problem!s:.300}; look at what lies under the key that it names")
    word = str(problem).partition(" ")[0]
    kind, meaning = _MEANINGS.get(type(problem).__name__) or _MEANINGS.get(word) or unknown
    message = f"the Redis server at {place} refuses: {meaning}"
    return ToolError(kind, message, retryable=kind is Kind.TRANSIENT)
