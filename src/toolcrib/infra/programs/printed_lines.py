"""Stream the lines that a program prints to the client of its call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.lib.documents import read_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.values import MAX_ITEMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.model.tool import Tool

MAX_LINE_BYTES = 8 * 1024 * 1024


def prints_values(tool: Tool) -> bool:
    """Whether each line is a JSON value, because the tool declares a list; otherwise the lines are one text."""
    return tool.output_schema is not None and tool.output_schema.get("type") == "array"


def read_lines(tool: Tool, printed: bytes) -> list[object]:
    """The list of the values that a program printed, one in each line; raises ToolError for a line that is not JSON."""
    lines = [line for line in printed.split(b"\n") if line.strip()]
    if len(lines) > MAX_ITEMS:
        message = f"{tool.name} printed more than {MAX_ITEMS:,} lines; print fewer"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    try:
        return [
            read_json(line, place=f"line {number} of what {tool.name} printed", max_bytes=MAX_LINE_BYTES)
            for number, line in enumerate(lines, 1)
        ]
    except ToolError as problem:
        message = f"{tool.name} promises a list and so prints one value in JSON a line, but: {problem.message}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem


class PrintedLines:
    """Sends complete lines: those of a text in batches, values one by one.

    The whole output is stored anyway, up to its limit, so a slow client delays only the end of the call.
    """

    def __init__(self, tool: Tool, send: Callable[[object], Awaitable[None]]) -> None:
        self._send = send
        self._sends_values = prints_values(tool)
        self._unsent = bytearray()
        self._arrived = asyncio.Event()
        self._is_over = False
        self._sending = asyncio.ensure_future(self._send_all())

    def feed(self, data: bytes) -> None:
        """Take what was printed."""
        self._unsent += data
        if b"\n" in data:
            self._arrived.set()

    async def finish(self) -> None:
        """Send the rest; raises ToolError where it was too much."""
        self._is_over = True
        self._arrived.set()
        await self._sending

    async def close(self) -> None:
        """Send nothing more."""
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        while not self._is_over or self._unsent:
            await self._arrived.wait()
            if not self._is_over:
                self._arrived.clear()
            for chunk in self._take():
                await self._send(chunk)

    def _take(self) -> list[object]:
        end = len(self._unsent) if self._is_over else self._unsent.rfind(b"\n") + 1
        ready = bytes(self._unsent[:end])
        del self._unsent[:end]
        if not ready:
            return []
        if not self._sends_values:
            return [ready.decode("utf-8", "replace")]
        return [_as_value(line) for line in ready.split(b"\n") if line.strip()]


def _as_value(line: bytes) -> object:
    """The value in a line; the text itself if it is not JSON, for which the whole result is refused later."""
    try:
        return read_json(line, place="the line", max_bytes=MAX_LINE_BYTES)
    except ToolError:
        return line.decode("utf-8", "replace")
