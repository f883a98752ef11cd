"""Frames and lines: how two processes delimit messages on a byte stream.

A frame is a length in four bytes, big-endian, followed by that many bytes. A line is JSON terminated by a line feed, so
that a script in any language can read and write it. Both ends use this module, and the one in the child runs without
the rest of Toolcrib: it imports only the standard library.
"""

from __future__ import annotations

import json
import struct
import sys

TYPE_CHECKING = False  # importing typing would slow down the start of the launcher
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 8 * 1024 * 1024

_LENGTH = struct.Struct("!I")


def frame(payload: bytes) -> bytes:
    """The payload with its length prefix."""
    if len(payload) > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {len(payload)} bytes is longer than the {MAX_FRAME_BYTES} bytes of a frame")
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Split a byte stream into framed payloads."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes of the stream; returns the payloads that are now complete."""
        self._buffer += data
        complete = []
        while (payload := self._take()) is not None:
            complete.append(payload)
        return complete

    def _take(self) -> bytes | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > self._max_bytes:
            raise ValueError(f"a message of {length} bytes is longer than the {self._max_bytes} bytes allowed")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return payload


def to_line(message: dict[str, object], max_bytes: int = MAX_LINE_BYTES) -> bytes:
    """Encode the message as one line; raises ValueError or TypeError if that is not possible."""
    # A lone surrogate fails to encode here; no reader could decode it.
    data = json.dumps(message, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    if len(data) > max_bytes:
        raise ValueError(f"a message of {len(data)} bytes is longer than the {max_bytes} bytes of a line")
    return data


class LineCutter:
    """Split a byte stream into lines."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._seen = 0  # this much of the buffer contains no line feed

    @property
    def is_empty(self) -> bool:
        """Whether the buffer is empty."""
        return not self._buffer

    def feed(self, data: bytes) -> None:
        """Add bytes of the stream."""
        self._buffer += data

    def next(self) -> bytes | None:
        """The next complete line without its line feed, None if there is none yet; raises ValueError if it is too long."""
        end = self._buffer.find(b"\n", self._seen)
        length = len(self._buffer) if end < 0 else end + 1
        if length > self._max_bytes:
            raise ValueError(f"a line is longer than the {self._max_bytes} bytes allowed")
        if end < 0:
            self._seen = length
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._seen = 0
        return line


# Orders to the launcher of the sandbox: each requests a supervisor and names modules of the standard library to preload.

# Where the system does not preserve message boundaries, an order is one byte without names.
ORDER_BYTES = 2048 if sys.platform == "linux" else 1
# In place of an order: the host waits until the launcher has ended, and removes its cgroup then.
FAREWELL = b"end"
MAX_NAMES = 64

# Importing these has effects that a worker would inherit (a handler, a window, a printed line), or is useless there.
_EFFECTS = frozenset(
    (
        *("antigravity", "distutils", "doctest", "ensurepip", "idlelib", "lib2to3", "pdb", "pydoc_data", "readline"),
        *("rlcompleter", "test", "this", "tkinter", "turtle", "turtledemo", "venv"),
    )
)


def to_order(names: Iterable[str]) -> bytes:
    """The order for these modules, up to its maximal size; unsafe names are left out."""
    order = b"."
    for name in list(dict.fromkeys(names))[:MAX_NAMES]:
        extended = order + b" " + name.encode("ascii", "replace")
        if is_harmless(name) and len(extended) <= ORDER_BYTES:
            order = extended
    return order


def is_harmless(name: str) -> bool:
    """Whether this is a module of the standard library whose import has no side effects."""
    parts = name.split(".")
    if not name.isascii() or any(not part.isidentifier() or part.startswith("_") for part in parts):
        return False
    # Test packages inside other packages have effects too.
    return parts[0] in sys.stdlib_module_names - _EFFECTS and not {"test", "tests"} & set(parts)
