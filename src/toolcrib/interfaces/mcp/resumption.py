"""Streams of the older wire that a client may resume: their events are numbered, and kept for a while after it is gone."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from typing import TYPE_CHECKING

from toolcrib.lib.seal import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.interfaces.mcp.client_link import Peer
    from toolcrib.interfaces.mcp.messages import Id

# How long a stream without its client goes on, and how long one that has ended can still be read again.
RESUME_SECONDS = 30.0
# When a client should reconnect.
RETRY_MS = 1_000
MAX_LEFT = 200
MAX_LEFT_BY_CALLER = 8
MAX_EVENTS = 1_000
MAX_EVENT_BYTES = 256_000
MAX_ID_LETTERS = 1_000
MAX_DIGITS = 15
CHANGES = "changes"


class ResumableStream:
    """The messages of one stream, as numbered events; the last ones are kept, so that a client can ask for them again.

    It holds the answer to a request or, without one, notifications of changes; its id says which. `over` is set by its last
    message, `end` stops its work.
    """

    def __init__(self, peer: Peer, request_id: Id | None = None) -> None:
        self.hears_changes = request_id is None
        self.id = f"{_write_subject(request_id)}.{new_nonce()}"
        self.owner = peer.caller, peer.session
        self.end: Callable[[], object] = lambda: None
        self.over = asyncio.Event()
        self.arrived = asyncio.Event()
        self.reader: Reader | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self._is_primed = peer.wire.has_resumption
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._sent = 0

    @property
    def is_read(self) -> bool:
        """Whether everything was sent, to a client that may have received it."""
        return self.over.is_set() and self._sent == self._last

    def put(self, message: bytes) -> None:
        """Add a message; the oldest are forgotten where there are too many."""
        self._last += 1
        self._events.append((self._last, message))
        self._bytes += len(message)
        while len(self._events) > 1 and (len(self._events) > MAX_EVENTS or self._bytes > MAX_EVENT_BYTES):
            _, forgotten = self._events.popleft()
            self._bytes -= len(forgotten)
        self.arrived.set()

    def finish(self, message: bytes | None = None) -> None:
        """Add the last message."""
        if message is not None:
            self.put(message)
        self.over.set()

    def begin(self) -> bytes:
        """The first event of a stream: an id, and when to reconnect, for versions that support it."""
        return f"id: {self.id}-{self._sent}\nretry: {RETRY_MS}\ndata: \n\n".encode() if self._is_primed else b""

    def take(self) -> bytes:
        """The events that were not sent yet."""
        self.arrived.clear()
        unsent = [(number, message) for number, message in self._events if number > self._sent]
        self._sent = self._last
        return b"".join(
            f"id: {self.id}-{number}\nevent: message\ndata: ".encode() + message + b"\n\n" for number, message in unsent
        )

    def rewind(self, number: int) -> bool:
        """Send again what follows this event; False where some of that is forgotten."""
        first = self._events[0][0] if self._events else self._last + 1
        if not first - 1 <= number <= self._last:
            return False
        self._sent = number
        self.arrived.set()
        return True


class Reader:
    """One connection that reads a stream; of two, the later one has it, and the other is `replaced`."""

    def __init__(self, stream: ResumableStream) -> None:
        self.stream = stream
        self.arrived = stream.arrived
        self.replaced = asyncio.Event()

    def take(self) -> bytes:
        """The events that were not sent yet."""
        return b"" if self.replaced.is_set() else self.stream.take()


class ResumableStreams:
    """The streams whose clients are gone, limited in number and time; each can be resumed by its session."""

    def __init__(self) -> None:
        self._known: dict[str, ResumableStream] = {}

    def open(self, stream: ResumableStream) -> Reader:
        """Have a client read the stream."""
        self._known[stream.id] = stream
        if stream.reader is not None:
            stream.reader.replaced.set()
        stream.reader = Reader(stream)
        if stream.expiry is not None:
            stream.expiry.cancel()
            stream.expiry = None
        return stream.reader

    def leave(self, reader: Reader) -> None:
        """A reader is gone; unless there is another one, the stream waits for its client to come back."""
        stream = reader.stream
        if reader.replaced.is_set() or stream.id not in self._known:
            return
        left = [one for one in self._known.values() if one.expiry is not None]
        own = [one for one in left if one.owner[0] == stream.owner[0]]
        if len(own) >= MAX_LEFT_BY_CALLER:
            self.give_up(_least_needed(own))
        elif len(left) >= MAX_LEFT:
            self.give_up(_least_needed(left))
        # The one that was left last stands last.
        self._known[stream.id] = self._known.pop(stream.id)
        stream.expiry = asyncio.get_running_loop().call_later(RESUME_SECONDS, self.give_up, stream)

    def resume(self, event_id: str, peer: Peer) -> ResumableStream | None:
        """The stream that a client was cut off from, at the event that it saw last; None if it is gone, or another client's."""
        name, _, digits = event_id.rpartition("-")
        stream = self._known.get(name)
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS else -1
        if stream is None or stream.owner != (peer.caller, peer.session) or not stream.rewind(number):
            return None
        return stream

    def give_up_left_listener(self, peer: Peer) -> bool:
        """Forget a stream of changes that a caller has left, the oldest of this session if it has one; whether there was one."""
        left = [
            stream
            for stream in self._known.values()
            if stream.expiry is not None and stream.owner[0] == peer.caller and stream.hears_changes
        ]
        own = [stream for stream in left if stream.owner[1] == peer.session]
        if left:
            self.give_up((own or left)[0])
        return bool(left)

    def give_up(self, stream: ResumableStream) -> None:
        """Forget a stream, and stop its work."""
        if self._known.pop(stream.id, None) is None:
            return
        if stream.expiry is not None:
            stream.expiry.cancel()
        stream.end()

    def close(self, session: str | None = None) -> None:
        """Forget the streams of a session that has ended, or all."""
        for stream in list(self._known.values()):
            if session is None or stream.owner[1] == session:
                self.give_up(stream)


def lost_request(event_id: str) -> Id | None:
    """The id of the request whose stream cannot be resumed, as the id of its event says; None for a stream of changes."""
    subject = event_id.partition(".")[0]
    if len(event_id) > MAX_ID_LETTERS or subject == CHANGES:
        return None
    try:
        request_id = json.loads(base64.urlsafe_b64decode(subject + "=" * (-len(subject) % 4)))
    except (ValueError, RecursionError):
        return None
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None


def _write_subject(request_id: Id | None) -> str:
    if request_id is None:
        return CHANGES
    text = json.dumps(request_id).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=") if len(text) <= MAX_ID_LETTERS // 2 else "long"


def _least_needed(streams: list[ResumableStream]) -> ResumableStream:
    """The oldest that was read to its end, else the oldest."""
    return next((stream for stream in streams if stream.is_read), streams[0])
