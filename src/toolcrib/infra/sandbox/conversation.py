"""The host's end of a job's channel: JSON objects, one per line, in both directions."""

from __future__ import annotations

import asyncio
import select
import socket
from typing import TYPE_CHECKING

from toolcrib.infra.channel import MAX_LINE_BYTES, LineCutter, to_line
from toolcrib.lib.documents import MAX_DEPTH, read_json
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES = 65536
# After this many messages or bytes in a row, other tasks get a turn; a longer line is parsed in a thread.
_IN_A_ROW = 32
_LONG_BYTES = 16_000
# An argument sent by a script may be nested as deep as any other, inside the object of the message.
_MAX_DEPTH = MAX_DEPTH + 8
_CUT = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Lines:
    """The channel to a job. Input is untrusted: an invalid line ends the channel and nothing else.

    `problem` says what was wrong with it. `end_job` ends the job, from any thread.
    """

    def __init__(
        self,
        connection: socket.socket,
        max_bytes: int = MAX_LINE_BYTES,
        end_job: Callable[[], None] = lambda: None,
    ) -> None:
        self.problem = ""
        self.end_job = end_job
        connection.settimeout(0)
        self._connection = connection
        self._max_bytes = max_bytes
        self._cutter = LineCutter(max_bytes)
        self._writing = asyncio.Lock()
        self._over = False
        self._in_a_row = self._bytes_in_a_row = 0

    @property
    def is_silent(self) -> bool:
        """Whether the job is connected and has sent nothing that is still unread."""
        if self._over or not self._cutter.is_empty:
            return False
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def is_cut(self) -> bool:
        """Whether the other end was closed."""
        if self._connection.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._connection, 0)
        return any(events & _CUT for _, events in poll.poll(0))

    async def read(self) -> dict[str, object] | None:
        """The next message, None at the end of the channel."""
        while not self._over:
            try:
                line = self._cutter.next()
                if line is not None:
                    await self._let_others_go_on(len(line))
                    return self._parse(line) if len(line) < _LONG_BYTES else await asyncio.to_thread(self._parse, line)
            except (ToolError, ValueError) as problem:
                await self._refuse(str(problem))
                break
            data = await self._receive()
            if not data:
                break
            self._cutter.feed(data)
        self._over = True
        return None

    async def write(self, message: dict[str, object]) -> None:
        """Send a message; does nothing if the job has ended. Raises LIMIT_EXCEEDED if it is too long for a line."""
        try:
            line = to_line(message, self._max_bytes)
        except (TypeError, ValueError, RecursionError) as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer cannot be sent to the script: {problem}") from problem
        async with self._writing:  # concurrent answers must not interleave
            try:
                await asyncio.get_running_loop().sock_sendall(self._connection, line)
            except OSError:
                return

    async def _receive(self) -> bytes:
        try:
            return await asyncio.get_running_loop().sock_recv(self._connection, _READ_BYTES)
        except OSError:
            return b""

    async def _let_others_go_on(self, length: int) -> None:
        """Yield to other tasks: reading what is already buffered never waits, so a busy job would block the event loop."""
        self._in_a_row += 1
        self._bytes_in_a_row += length
        if self._in_a_row >= _IN_A_ROW or self._bytes_in_a_row >= _LONG_BYTES:
            self._in_a_row = self._bytes_in_a_row = 0
            await asyncio.sleep(0)

    def _parse(self, line: bytes) -> dict[str, object]:
        message = read_json(line, place="the line", max_bytes=self._max_bytes, max_depth=_MAX_DEPTH)
        if not isinstance(message, dict):
            raise ValueError('the line is not a JSON object; write {"id": 1, "tool": "name", "arguments": {}}')
        return message

    async def _refuse(self, reason: str) -> None:
        self.problem = reason
        error = {"type": str(Kind.VALIDATION), "message": f"{reason}; nothing more is read here", "retryable": False}
        await self.write({"id": None, "ok": False, "error": error})
