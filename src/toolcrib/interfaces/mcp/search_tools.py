"""The tools of this interface itself: search a large catalogue, describe and call its tools, and request missing ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.core.sources import current_view
from toolcrib.interfaces.mcp.tool_results import structured
from toolcrib.lib.names import function_name
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from toolcrib.crib import Crib
    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.model.tool import Tool

SEARCH, DESCRIBE, CALL, REQUEST, WATCH = "search_tools", "describe_tool", "call_tool", "request_tool", "watch_request"
UNLIMITED = frozenset({SEARCH, DESCRIBE})
# A tool may be missing in a catalogue of any size.
ALWAYS = frozenset({REQUEST, WATCH})
MAX_FOUND = 50
DEFAULT_FOUND = 10
MAX_WATCH_SECONDS = 300
DEFAULT_WATCH_SECONDS = 60
TEXT: Params = {"type": "string", "minLength": 1, "maxLength": 1_000}


def _object(required: list[str], **properties: object) -> Params:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


DEFINITIONS: dict[str, Params] = {
    SEARCH: {
        "name": SEARCH,
        "description": "Find tools by what they do, in plain words. There are more tools than are listed.",
        "inputSchema": _object(
            ["query"],
            query={**TEXT, "description": "What the tool should do."},
            limit={"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": DEFAULT_FOUND},
        ),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    DESCRIBE: {
        "name": DESCRIBE,
        "description": "Read the parameters, the result and the document of a tool before it is called with call_tool.",
        "inputSchema": _object(
            ["name"], name={**TEXT, "description": "The name of the tool, as search_tools gives it."}
        ),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    CALL: {
        "name": CALL,
        "description": "Call any tool by its name. Its parameters are told by describe_tool.",
        "inputSchema": _object(
            ["name"],
            name={**TEXT, "description": "The name of the tool."},
            arguments={"type": "object", "description": "The arguments of the tool."},
        ),
    },
    REQUEST: {
        "name": REQUEST,
        "description": "Ask for a tool that does not exist yet. It is built and proved, which may take minutes; follow it with "
        "watch_request.",
        "inputSchema": _object(
            ["request"],
            request={
                "type": "string",
                "minLength": 1,
                "maxLength": 100_000,
                "description": "The request in YAML: tool_name, description, inputs, outputs, example_usage.",
            },
        ),
    },
    WATCH: {
        "name": WATCH,
        "description": "Wait until a requested tool is ready, or for a while; then it can be called.",
        "inputSchema": _object(
            ["id"],
            id={**TEXT, "description": "The id that request_tool gave."},
            seconds={
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WATCH_SECONDS,
                "default": DEFAULT_WATCH_SECONDS,
            },
        ),
        "annotations": {"readOnlyHint": True},
    },
}


def definitions(*, search: bool, requests: bool) -> list[Params]:
    """The tools of this interface that are listed: to search a large catalogue, and to ask for tools where that is allowed."""
    names = (*((SEARCH, DESCRIBE, CALL) if search else ()), *((REQUEST, WATCH) if requests else ()))
    return [DEFINITIONS[name] for name in names]


class SearchTools:
    """Runs the tools of this interface, except `call_tool`, which is a call like any other."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._handlers: dict[str, Callable[[Params], Coroutine[object, object, Params]]] = {
            SEARCH: self._search,
            DESCRIBE: self._describe,
        }
        if crib.settings["requests"].missing:
            self._handlers |= {REQUEST: self._request, WATCH: self._watch}

    def has(self, name: str) -> bool:
        """Whether the name is one of these tools; a caller that sees only some tools may not request others."""
        return name in self._handlers and (name in UNLIMITED or current_view() is None)

    async def perform(self, name: str, arguments: Params) -> Params:
        """The result of a call; raises ToolError for one that cannot be carried out."""
        return structured(await self._handlers[name](arguments))

    async def _search(self, arguments: Params) -> Params:
        query, limit = text_of(arguments, "query"), arguments.get("limit", DEFAULT_FOUND)
        if type(limit) is not int or not 1 <= limit <= MAX_FOUND:
            raise ToolError(Kind.VALIDATION, f"limit: must be a whole number from 1 to {MAX_FOUND}")
        found = await asyncio.to_thread(self._crib.find_tools, query, limit=limit)
        return {"tools": [{"name": function_name(tool.name), "description": _summary(tool)} for tool in found]}

    async def _describe(self, arguments: Params) -> Params:
        name = text_of(arguments, "name")
        entry = await asyncio.to_thread(self._crib.require, name)
        tool = entry.tool
        if not entry.enabled:
            # It is disabled, so no model reads its texts.
            raise ToolError(Kind.DISABLED, f"{tool.name} is disabled; find another with search_tools")
        if missing := self._crib.grants.missing(tool):
            raise self._crib.grants.refusal(tool, missing).replace(cure="find another with search_tools")
        described: Params = {
            "name": function_name(tool.name),
            "description": tool.description,
            "inputSchema": tool.parameters,
        }
        if tool.output_schema is not None:
            described["outputSchema"] = tool.output_schema
        if tool.documentation:
            described["document"] = tool.documentation
        if tool.examples:
            described["examples"] = list(tool.examples)
        return described

    async def _request(self, arguments: Params) -> Params:
        submitted = await asyncio.to_thread(self._crib.requests.new, text_of(arguments, "request"))
        return {"id": submitted.filed.id, "status": str(submitted.filed.status), "warnings": list(submitted.warnings)}

    async def _watch(self, arguments: Params) -> Params:
        request_id, seconds = text_of(arguments, "id"), arguments.get("seconds", DEFAULT_WATCH_SECONDS)
        if type(seconds) is not int or not 0 <= seconds <= MAX_WATCH_SECONDS:
            raise ToolError(Kind.VALIDATION, f"seconds: must be a whole number from 0 to {MAX_WATCH_SECONDS}")
        requests = self._crib.requests
        try:
            async with asyncio.timeout(seconds):
                async for _ in requests.watch(request_id):
                    pass
        except TimeoutError:
            pass
        filed = await asyncio.to_thread(requests.show, request_id)
        return filed.to_json()


def text_of(arguments: Params, key: str) -> str:
    """A text among the arguments; raises ToolError where there is none."""
    value = arguments.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(Kind.VALIDATION, f"{key}: must be a text")
    return value


def _summary(tool: Tool) -> str:
    return tool.summary or tool.description.strip().partition("\n\n")[0]
