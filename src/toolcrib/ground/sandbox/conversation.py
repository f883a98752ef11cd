"""The host's end of a channel: JSON objects, one to a line, to and from a job."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.ground.channel import MAX_LINE_BYTES, LineCutter, to_line
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_json

if TYPE_CHECKING:
    import socket

_READ_BYTES = 65536


class Lines:
    """A conversation with a job. What comes from there may be anything: garbage ends the conversation and nothing else."""

    def __init__(self, connection: socket.socket, max_bytes: int = MAX_LINE_BYTES) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._max_bytes = max_bytes
        self._cutter = LineCutter(max_bytes)
        self._writing = asyncio.Lock()
        self._over = False

    async def read(self) -> dict[str, object] | None:
        """The next message, None when there will be no other."""
        while not self._over:
            try:
                line = self._cutter.next()
                if line is not None:
                    return self._parse(line)
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
        """Send a message; one that has ended hears nothing. Raises LIMIT_EXCEEDED if it is too long for a line."""
        try:
            line = to_line(message, self._max_bytes)
        except (TypeError, ValueError, RecursionError) as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer cannot be sent to the script: {problem}") from problem
        async with self._writing:  # lines of several answers must not mix
            try:
                await asyncio.get_running_loop().sock_sendall(self._connection, line)
            except OSError:
                return

    async def _receive(self) -> bytes:
        try:
            return await asyncio.get_running_loop().sock_recv(self._connection, _READ_BYTES)
        except OSError:
            return b""

    def _parse(self, line: bytes) -> dict[str, object]:
        message = read_json(line, place="the line", max_bytes=self._max_bytes)
        if not isinstance(message, dict):
            raise ValueError('the line is not a JSON object; write {"id": 1, "tool": "name", "arguments": {}}')
        return message

    async def _refuse(self, reason: str) -> None:
        error = {"type": str(Kind.VALIDATION), "message": f"{reason}; nothing more is read here", "retryable": False}
        await self.write({"id": None, "ok": False, "error": error})
