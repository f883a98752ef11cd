"""Frames: how two processes tell where one message ends and the next begins.

A frame is its length in four bytes, the highest first, and then that many bytes. Both ends use this module, and the end
in the child starts without the rest of Toolcrib: it imports the standard library alone.
"""

from __future__ import annotations

import struct

MAX_FRAME_BYTES = 64 * 1024 * 1024

_LENGTH = struct.Struct("!I")


def frame(payload: bytes) -> bytes:
    """The payload with its length in front."""
    if len(payload) > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {len(payload)} bytes is longer than the {MAX_FRAME_BYTES} bytes of a frame")
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Cuts a stream of bytes back into the payloads that were framed."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream; the payloads that they complete."""
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
