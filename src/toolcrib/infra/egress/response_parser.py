"""Parse one response from the bytes of a connection, in pieces of any size, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.infra.egress import http1

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.infra.egress.http1 import Framing, ResponseHead

# The limit on what a server sends around the body: interim responses, extensions of chunks.
MAX_AROUND = 65_536
SWITCHING, FINAL = 101, 200
NO_CONTENT, NOT_MODIFIED = 204, 304
NO_BODY = http1.Framing(0)

_LINE_END = b"\r\n"
_START = b"HTTP/1."


class FloodError(Exception):
    """A server sends too much data that is not a response body."""


class ConnectionLostError(Exception):
    """The connection ended before the response did; `in_body` if its head was there."""

    def __init__(self, *, in_body: bool) -> None:
        super().__init__()
        self.in_body = in_body


class Receiver(Protocol):
    """What a response is parsed for."""

    def begin(self, head: ResponseHead, framing: Framing | None) -> bool:
        """Receive the head of the final response and how its body ends; False if the body is not wanted."""

    @property
    def take(self) -> Callable[[bytes], object]:
        """What takes the pieces of the body, once it has begun."""

    def end(self, failure: Exception | None) -> None:
        """Called when the response is complete, or with the reason why it never will be."""


class ResponseParser:
    """The state of one response to a request with this method.

    Once it `is_complete`, `may_stay` tells whether the connection can carry another request: not where the server ends it,
    where the body was not read to its end, and where more bytes came than the response has.
    """

    __slots__ = (
        "_around",
        "_buffer",
        "_fields",
        "_has_length",
        "_is_wanted",
        "_left",
        "_method",
        "_step",
        "is_complete",
        "may_stay",
        "receiver",
    )

    def __init__(self, method: str, receiver: Receiver) -> None:
        self.receiver = receiver
        self.is_complete = self.may_stay = False
        self._method = method
        self._is_wanted = True
        self._has_length = False
        self._buffer = b""
        self._around = self._left = self._fields = 0
        # Reads what comes next of the data from a position on, and returns the position after it. Not a bound method, which
        # would be a reference cycle.
        self._step: Callable[[ResponseParser, bytes, int], int] = ResponseParser._read_head

    def feed(self, data: bytes) -> None:
        """Parse more bytes; raises MalformedError, FloodError, and what the receiver raises."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        position, end = 0, len(data)
        while position < end and not self.is_complete:
            position = self._step(self, data, position)
        if position < end:
            self._refuse_more(data[position:])
        if not self._is_wanted and not self.is_complete:
            self.is_complete, self.may_stay = True, False

    def feed_end(self) -> None:
        """The connection has ended; raises ConnectionLostError unless the body was to end with it."""
        if self._step is not ResponseParser._read_to_end:
            raise ConnectionLostError(in_body=self._step is not ResponseParser._read_head)
        self.is_complete = True

    def _refuse_more(self, data: bytes) -> None:
        """Bytes after the response: nothing on the connection can be trusted, nor a length that was too short."""
        self.may_stay = False
        if self._has_length and data.strip(_LINE_END) and not _START.startswith(data[: len(_START)]):
            raise http1.malformed("it is longer than it says")

    def _read_head(self, data: bytes, position: int) -> int:
        end = data.find(http1.END_OF_HEAD, position, position + http1.MAX_HEAD_BYTES)
        if end < 0:
            if not data.startswith(_START[: len(data) - position], position):
                raise http1.malformed("it does not begin with HTTP/1")
            if data.count(b"\n", position) > data.count(_LINE_END, position):
                raise http1.malformed("a line of its head does not end with CR LF")
            return self._wait(data, position, http1.MAX_HEAD_BYTES, "its head")
        head = http1.parse_response(data[position:end])
        end += len(http1.END_OF_HEAD)
        if head.status < FINAL:
            self._pass_over(head, end - position)
        else:
            self._begin_body(head)
        return end

    def _pass_over(self, head: ResponseHead, size: int) -> None:
        """An interim response: it has no body, and the response is still to come."""
        if head.status == SWITCHING:
            raise http1.malformed("it switches to another protocol, which was not asked for")
        if head.framing is not None and head.framing != NO_BODY:
            raise http1.malformed("an interim response says that it has a body")
        self._count_around(size, "before its response")

    def _begin_body(self, head: ResponseHead) -> None:
        self.may_stay = head.keeps_open
        framing = self._framing_of(head)
        self._has_length = framing is head.framing
        self._is_wanted = self.receiver.begin(head, framing)
        if framing is None:
            self.may_stay = False
            self._step = ResponseParser._read_to_end
        elif framing.length is None:
            self._step = ResponseParser._read_chunk_length
        else:
            self._left = framing.length
            self._step = ResponseParser._read_length
            self.is_complete = not self._left

    def _framing_of(self, head: ResponseHead) -> Framing | None:
        """How the body ends; some responses have no body, even if their head declares one."""
        if self._method == "HEAD" or head.status == NOT_MODIFIED:
            return NO_BODY
        if head.status == NO_CONTENT:
            # A server that declares a body here may also send it.
            self.may_stay = self.may_stay and head.framing in {None, NO_BODY}
            return NO_BODY
        return head.framing

    def _read_length(self, data: bytes, position: int) -> int:
        end = self._take(data, position)
        self.is_complete = not self._left
        return end

    def _read_to_end(self, data: bytes, position: int) -> int:
        self._left = len(data)
        return self._take(data, position)

    def _read_chunk_length(self, data: bytes, position: int) -> int:
        position = self._take_whole_chunks(data, position)
        if position == len(data):
            return position
        end = data.find(_LINE_END, position, position + http1.MAX_CHUNK_LINE)
        if end < 0:
            return self._wait(data, position, http1.MAX_CHUNK_LINE, "a line between its chunks")
        end += len(_LINE_END)
        line = data[position:end]
        self._left = http1.parse_chunk_length(line)
        if b";" in line:
            self._count_around(len(line), "behind its body")
        self._step = ResponseParser._read_chunk if self._left else ResponseParser._read_trailer
        return end

    def _take_whole_chunks(self, data: bytes, position: int) -> int:
        """Pass on all complete chunks at once: a body of many small ones must not block the event loop."""
        pieces = []
        while line := http1.PLAIN_CHUNK.match(data, position):
            start, length = line.end(), int(line[1], 16)
            end = start + length
            if not length or data[end : end + 2] != _LINE_END:
                break
            pieces.append(data[start:end])
            position = end + 2
        if pieces and self._is_wanted:
            self.receiver.take(b"".join(pieces))
        return position

    def _read_chunk(self, data: bytes, position: int) -> int:
        end = self._take(data, position)
        if not self._left:
            self._step = ResponseParser._read_chunk_end
        return end

    def _read_chunk_end(self, data: bytes, position: int) -> int:
        end = position + len(_LINE_END)
        if not data.startswith(_LINE_END[: len(data) - position], position):
            raise http1.malformed("a chunk is longer than it says")
        if end > len(data):
            return self._wait(data, position, len(_LINE_END), "the end of a chunk")
        self._step = ResponseParser._read_chunk_length
        return end

    def _read_trailer(self, data: bytes, position: int) -> int:
        """Drop the trailer fields after the last chunk: they were not requested, and could override headers."""
        end = data.find(_LINE_END, position, position + http1.MAX_HEAD_BYTES)
        if end < 0:
            return self._wait(data, position, http1.MAX_HEAD_BYTES, "a line after its chunks")
        if end == position:
            self.is_complete = True
        else:
            http1.check_trailer(data[position:end])
            self._fields += 1
        if self._fields > http1.MAX_HEADERS:
            raise http1.malformed(f"more than {http1.MAX_HEADERS} fields follow its chunks")
        return end + len(_LINE_END)

    def _take(self, data: bytes, position: int) -> int:
        """Pass on what belongs to the body, at most as much as is left of it."""
        end = min(position + self._left, len(data))
        self._left -= end - position
        if self._is_wanted:
            self.receiver.take(data[position:end])
        return end

    def _wait(self, data: bytes, position: int, limit: int, what: str) -> int:
        """Buffer incomplete data until more arrives."""
        if len(data) - position >= limit:
            raise http1.malformed(f"{what} is longer than {limit} bytes")
        self._buffer = data[position:]
        return len(data)

    def _count_around(self, size: int, where: str) -> None:
        self._around += size
        if self._around > MAX_AROUND:
            raise FloodError(f"the server sends more than {MAX_AROUND} bytes {where}")
