"""Incremental parser of server-sent events, as the WHATWG defines them."""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT_BYTES = 8 * 1024 * 1024
MAX_RETRY_DIGITS = 5


class ServerEvent(NamedTuple):
    """One event: its name, its data without the last line end, and the last id that the stream gave until its end."""

    name: str
    data: str
    id: str = ""


class EventReader:
    """Parses events from the bytes of a stream, which `feed` takes in pieces of any size.

    Raises ValueError for an event that is longer than `max_bytes`. An incomplete event at the end of the stream is dropped.
    `last_id` is that of the last event that was completed, also of one without data; `retry_seconds` is when to reconnect,
    None unless the stream says so.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self._max_bytes = max_bytes
        self._id = ""
        self._rest = bytearray()
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._is_first = True
        self._ended_with_cr = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        if self._ended_with_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._ended_with_cr = data.endswith(b"\r")
        first, *lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        # Only new bytes are searched for line ends: a long line may arrive in a million pieces.
        self._rest += first
        if lines:
            ended, self._rest = bytes(self._rest), bytearray(lines.pop())
            found = [event for line in (ended, *lines) if (event := self._take(line)) is not None]
        else:
            found = []
        if self._size + len(self._rest) > self._max_bytes:
            raise ValueError(f"an event of more than {self._max_bytes} bytes")
        return found

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._finish()
        field, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if field == b"data":
            self._size += len(value)
            self._data.append(text)
            if self._size > self._max_bytes:
                raise ValueError(f"an event of more than {self._max_bytes} bytes")
        elif field == b"event":
            self._name = text
        elif field == b"id":
            self._id = text
        elif field == b"retry" and text.isascii() and text.isdigit() and len(text) <= MAX_RETRY_DIGITS:
            self.retry_seconds = int(text) / 1000
        return None

    def _finish(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        self.last_id = self._id
        return ServerEvent(name or "message", "\n".join(data), self._id) if data else None
