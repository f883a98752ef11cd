"""Find tools by the names that clients use, and list them from prepared pages; of a large catalogue only a search is listed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from typing import TYPE_CHECKING

import orjson

from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.search_tools import definitions
from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.interfaces.mcp.tool_definitions import ServedTool, serve_tool
from toolcrib.interfaces.mcp.versions import FRESH_MS, complete
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.messages import Params, Request
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.mcp")

PAGE = 1_000
TOOLS_KEPT = 50_000
MAX_CURSOR = 64
# How long a prepared list is given out before files are looked at for changes.
LOOK_SECONDS = 0.1

Kind = tuple[bool, bool]


class ToolList:
    """The tools of a crib as clients see them."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._limit = crib.settings.table(McpSettings).list_limit
        self._always = frozenset(crib.settings.table(McpSettings).always)
        self._asks = crib.settings["requests"].missing
        self._served: dict[Tool, ServedTool] = {}
        self._generation: object = None
        self._looked = 0.0
        self._pages: dict[Kind, list[orjson.Fragment]] = {}
        self._preparing = asyncio.Lock()
        self.is_searched = False

    def find(self, name: str) -> ServedTool | None:
        """What is known of the tool that a name means; None if it means none that can be called."""
        try:
            entry = self._crib.find(name)
            return None if entry is None else self.serve(entry.tool)
        except ToolError:
            # The call itself says what is wrong.
            return None

    def called_by(self, request: Request) -> ServedTool | None:
        """What is known of the tool that a request calls, looked up once."""
        if request.tool is ...:
            name = request.params.get("name")
            request.tool = self.find(name) if isinstance(name, str) else None
        return request.tool if isinstance(request.tool, ServedTool) else None

    def serve(self, tool: Tool) -> ServedTool:
        """What is known of a tool; raises ToolError for one that cannot be offered."""
        served = self._served.get(tool)
        if served is None:
            if len(self._served) >= TOOLS_KEPT:
                self._served.clear()
            served = self._served[tool] = serve_tool(tool)
        return served

    async def page(self, wire: Wire, params: Params) -> orjson.Fragment:
        """A page of the list, as it goes over the wire."""
        number = read_cursor(params)
        pages = await self._current(wire)
        if number >= len(pages):
            raise _bad_cursor()
        return pages[number]

    async def is_large(self) -> bool:
        """Whether there are more tools than are listed, so that clients search."""
        await self._look()
        return self.is_searched

    async def _current(self, wire: Wire) -> list[orjson.Fragment]:
        await self._look()
        kind = (wire.has_structure, wire.has_any_structure)
        pages = self._pages.get(kind)
        if pages is None:
            async with self._preparing:
                pages = self._pages.get(kind)
                if pages is None:
                    pages = self._pages[kind] = await asyncio.to_thread(self._prepare, wire)
        return pages

    async def _look(self) -> None:
        """Forget what was prepared if any tool has changed since."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS and self._generation is not None:
            return
        generation = self._crib.generation
        self._looked = now
        if generation != self._generation:
            self._pages.clear()
            async with self._preparing:
                self._offered = await asyncio.to_thread(self._offer)
            self._generation = generation
            self._pages.clear()

    def _offer(self) -> list[ServedTool]:
        """The tools that are listed, by name."""
        found: list[ServedTool] = []
        for tool in self._crib.offered():
            try:
                found.append(self.serve(tool))
            except ToolError as problem:
                logger.warning("%s is not offered to MCP clients: %s", tool.name, problem.message)
        self.is_searched = len(found) > self._limit
        if self.is_searched:
            found = [served for served in found if served.tool.name in self._always or served.name in self._always]
        return sorted(found, key=lambda served: served.name)

    def _prepare(self, wire: Wire) -> list[orjson.Fragment]:
        listed = [served.definition(wire) for served in self._offered]
        if self.is_searched:
            own = definitions(requests=self._asks)
            names = {definition["name"] for definition in own}
            listed = [*own, *(definition for definition in listed if definition["name"] not in names)]
        pages = [listed[start : start + PAGE] for start in range(0, len(listed), PAGE)] or [[]]
        return [_write_page(page, number, len(pages), wire) for number, page in enumerate(pages)]


def _write_page(tools: list[Params], number: int, pages: int, wire: Wire) -> orjson.Fragment:
    result: Params = {"tools": tools}
    if number + 1 < pages:
        result["nextCursor"] = write_cursor(number + 1)
    if wire.is_stateless:
        result = complete({**result, "ttlMs": FRESH_MS, "cacheScope": "private"})
    return orjson.Fragment(orjson.dumps(result))


def write_cursor(number: int) -> str:
    """A place in a list, as a client hands it back."""
    return base64.urlsafe_b64encode(b"p%d" % number).decode()


def read_cursor(params: Params) -> int:
    """The place that a request for a list begins at."""
    cursor = params.get("cursor")
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR:
        raise _bad_cursor()
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise _bad_cursor() from None
    number = text.removeprefix("p")
    if not number.isdecimal() or write_cursor(int(number)) != cursor:
        raise _bad_cursor()
    return int(number)


def _bad_cursor() -> ProtocolError:
    return ProtocolError(Code.INVALID_PARAMS, "cursor: it is none of this list; begin without one")
