"""The host's side of one call: its socket, its pipes, and what came through them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
from typing import TYPE_CHECKING

from toolcrib.ground.channel import Frames

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES = 65536
REPORTED = "gone"
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_INTEGER = struct.Struct("i")


class Capture:
    """Reads a pipe to its end, keeps the first bytes and counts the rest."""

    def __init__(self, limit: int, on_overflow: Callable[[], None] | None = None) -> None:
        self._limit = limit
        self._on_overflow = on_overflow
        self._loop = asyncio.get_running_loop()
        self.ended = self._loop.create_future()
        self.kept = bytearray()
        self.dropped = 0
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._loop.add_reader(self._read, self._take)

    def _take(self) -> None:
        try:
            data = os.read(self._read, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        room = self._limit - len(self.kept)
        self.kept += data[:room]
        if len(data) <= room:
            return
        self.dropped += len(data) - room
        if self._on_overflow is not None:
            self._on_overflow()

    def close(self) -> None:
        """Read no further."""
        if self._read < 0:
            return
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._read = -1
        self.close_write()
        if not self.ended.done():
            self.ended.set_result(None)

    def close_write(self) -> None:
        """Let go of the end that the child has by now, or that nobody will have."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1


class Supervised:
    """The socket of a call: takes the job, tells when it started and how it ended, and its closing ends the call.

    `begun` is done when a worker may run or never will; `listener` is the way out of a job that has a network.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(0)
        self._frames = Frames()
        self._unsent = memoryview(b"")
        self._supervisor: int | None = None
        self.facts: dict[str, object] = {}
        self.begun = self._loop.create_future()
        self.listener: asyncio.Future[socket.socket] = self._loop.create_future()
        self.ended = self._loop.create_future()
        self._loop.add_reader(self._ours, self._take)

    @property
    def started(self) -> bool:
        """Whether a worker may have run."""
        return self._supervisor is not None

    def send(self, job: bytes) -> None:
        """Hand the job over, at once or as it is taken; a supervisor that is gone shows in `ended`."""
        self._unsent = memoryview(job)
        self._loop.add_writer(self._ours, self._send)
        self._send()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[self._ours.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._loop.remove_writer(self._ours)

    def _take(self) -> None:
        descriptors: list[int] = []
        try:
            data, descriptors = _receive(self._ours)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for payload in self._frames.feed(data):
            self.facts |= json.loads(payload)
        for descriptor in descriptors:
            self._keep(socket.socket(fileno=descriptor))
        supervisor = self.facts.get("started")
        if isinstance(supervisor, int):
            self._supervisor = supervisor
            _settle(self.begun)
        # With its report a supervisor has said everything; its own end need not be waited for.
        if not data or REPORTED in self.facts:
            self._loop.remove_reader(self._ours)
            _settle(self.begun)
            _settle(self.ended)

    def _keep(self, listener: socket.socket) -> None:
        if self.listener.done():
            listener.close()
            return
        self.listener.set_result(listener)

    def end(self) -> None:
        """Ask the supervisor to end the call."""
        try:
            self._ours.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def kill(self) -> None:
        """Give up on a supervisor that does not answer; the launcher ends what it leaves behind."""
        # It holds the other end of a socket that has not ended, so this number is still its own.
        if self._supervisor is not None and not self.ended.done():
            os.kill(self._supervisor, signal.SIGKILL)

    def close(self) -> None:
        """Let go of the socket."""
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        self._ours.close()
        self.theirs.close()
        if self.listener.done() and not self.listener.cancelled():
            self.listener.result().close()
        self.listener.cancel()


def _receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """The next bytes and the descriptor that may come with them; socket.recv_fds would let programs inherit it."""
    data, ancillary, _, _ = line.recvmsg(_READ_BYTES, socket.CMSG_LEN(_INTEGER.size), _CLOSED_ON_EXEC)
    descriptors = [
        number
        for level, kind, payload in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for (number,) in _INTEGER.iter_unpack(payload[: len(payload) - len(payload) % _INTEGER.size])
    ]
    return data, descriptors


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
