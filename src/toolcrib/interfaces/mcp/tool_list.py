"""Look up tools by the names that clients use, and list them in cached pages; for a large catalogue list the search tools."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import orjson

from toolcrib.core.sources import current_view
from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.search_tools import definitions
from toolcrib.interfaces.mcp.settings import McpSettings
from toolcrib.interfaces.mcp.tool_definitions import ServedTool, serve_tool
from toolcrib.interfaces.mcp.versions import FRESH_MS, complete
from toolcrib.lib.documents import write_json
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from toolcrib.core.sources import View
    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.messages import Params, Request
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.mcp")

PAGE = 1_000
TOOLS_KEPT = 50_000
# Views of callers whose lists are prepared.
VIEWS_KEPT = 64
MAX_CURSOR = 64
# How long a prepared list is used before the files are checked for changes.
LOOK_SECONDS = 0.1

Kind = tuple[bool, bool]


class Listed:
    """What callers with one view are shown: the tools, whether they search for more, and the pages prepared so far."""

    def __init__(self, generation: object, tools: list[ServedTool], *, is_searched: bool) -> None:
        self.generation = generation
        self.tools = tools
        self.is_searched = is_searched
        self.pages: dict[Kind, list[orjson.Fragment]] = {}
        self.looked = time.monotonic()


class ToolList:
    """The tools of a crib as clients see them, for each view of callers apart."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._limit = crib.settings.table(McpSettings).list_limit
        self._always = frozenset(crib.settings.table(McpSettings).always)
        self._asks = crib.settings["requests"].missing
        self._served: dict[Tool, ServedTool] = {}
        self._listed: OrderedDict[View | None, Listed] = OrderedDict()
        self._preparing = asyncio.Lock()

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
        pages = await self._pages(await self._current(), wire)
        if number >= len(pages):
            raise _bad_cursor()
        return pages[number]

    async def is_large(self) -> bool:
        """Whether there are more tools than are listed, so that clients search."""
        return (await self._current()).is_searched

    async def _pages(self, listed: Listed, wire: Wire) -> list[orjson.Fragment]:
        kind = (wire.has_structure, wire.has_any_structure)
        pages = listed.pages.get(kind)
        if pages is None:
            async with self._preparing:
                pages = listed.pages.get(kind)
                if pages is None:
                    pages = listed.pages[kind] = await asyncio.to_thread(self._prepare, listed, wire)
        return pages

    async def _current(self) -> Listed:
        """What the current caller is shown, computed again if any tool has changed since."""
        view = current_view()
        listed = self._listed.get(view)
        if listed is not None and time.monotonic() - listed.looked < LOOK_SECONDS:
            return listed
        generation = self._crib.generation
        if listed is not None and listed.generation == generation:
            listed.looked = time.monotonic()
            return listed
        async with self._preparing:
            listed = await asyncio.to_thread(self._offer, generation)
        self._listed[view] = listed
        self._listed.move_to_end(view)
        if len(self._listed) > VIEWS_KEPT:
            self._listed.popitem(last=False)
        return listed

    def _offer(self, generation: object) -> Listed:
        """The tools that are listed, by name."""
        found: list[ServedTool] = []
        for tool in self._crib.offered():
            try:
                found.append(self.serve(tool))
            except ToolError as problem:
                logger.warning("%s is not offered to MCP clients: %s", tool.name, problem.message)
        is_searched = len(found) + len(definitions(search=False, requests=self._offers_requests())) > self._limit
        if is_searched:
            found = [served for served in found if served.tool.name in self._always or served.name in self._always]
        return Listed(generation, sorted(found, key=lambda served: served.name), is_searched=is_searched)

    def _prepare(self, listed: Listed, wire: Wire) -> list[orjson.Fragment]:
        shown = [served.definition(wire) for served in listed.tools]
        if own := definitions(search=listed.is_searched, requests=self._offers_requests()):
            names = {definition["name"] for definition in own}
            shown = [*own, *(definition for definition in shown if definition["name"] not in names)]
        pages = [shown[start : start + PAGE] for start in range(0, len(shown), PAGE)] or [[]]
        return [_write_page(page, number, len(pages), wire) for number, page in enumerate(pages)]

    def _offers_requests(self) -> bool:
        """Whether the current caller may ask for missing tools; one that sees only some tools may not."""
        return self._asks and current_view() is None


def _write_page(tools: list[Params], number: int, pages: int, wire: Wire) -> orjson.Fragment:
    result: Params = {"tools": tools}
    if number + 1 < pages:
        result["nextCursor"] = write_cursor(number + 1)
    if wire.is_stateless:
        result = complete({**result, "ttlMs": FRESH_MS, "cacheScope": "private"})
    return orjson.Fragment(write_json(result))


def write_cursor(number: int) -> str:
    """The cursor that carries a number."""
    return base64.urlsafe_b64encode(b"p%d" % number).decode()


def read_cursor(params: Params) -> int:
    """The number in the cursor of a request; 0 without one."""
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
