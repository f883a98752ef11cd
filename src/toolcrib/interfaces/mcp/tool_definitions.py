"""Write the definition of a tool as each version of the protocol takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.header_values import header_rules
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.export_schemas.phrases import copy
from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.model.tool import Function, Http

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.interfaces.mcp.header_values import HeaderRule
    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.tool import Tool

# A tool whose output schema says so returns blocks of content, such as images, instead of a value.
CONTENT_KEYWORD = "x-mcp-content"
RESULT = "result"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedTool:
    """What the protocol needs to know of a tool, found out once.

    `may_ask` says whether it gets a context, by which it reaches the client. `headers` are the arguments that are repeated in
    headers of the request. `wraps` says whether the older wire gets its value as `{"result": value}`.
    """

    tool: Tool
    name: str
    base: Params
    may_ask: bool
    returns_content: bool
    headers: tuple[HeaderRule, ...]

    @property
    def output_schema(self) -> Params | None:
        """The schema of its value; none for one that returns content."""
        return None if self.returns_content else self.tool.output_schema

    @property
    def wraps(self) -> bool:
        """Whether its value is something else than an object, which is all that older versions take."""
        schema = self.output_schema
        return schema is not None and schema.get("type") != "object"

    def definition(self, wire: Wire) -> Params:
        """The tool as it is listed."""
        definition = dict(self.base)
        schema = self.output_schema
        if schema is None or not wire.has_structure:
            return definition
        if wire.has_any_structure or not self.wraps:
            definition["outputSchema"] = copy(schema)
        elif (wrapped := wrap_schema(schema)) is not None:
            definition["outputSchema"] = copy(wrapped)
        return definition

    def promises_structure(self, wire: Wire) -> bool:
        """Whether its definition has an output schema there, so that every result must have structured content."""
        return "outputSchema" in self.definition(wire)


def serve_tool(tool: Tool) -> ServedTool:
    """Find out what the protocol needs to know of a tool; raises ToolError for one that cannot be offered."""
    export = export_tool(tool, Provider.MCP)
    base = {key: value for key, value in export.definition.items() if key != "outputSchema"}
    if icons := read_icons(tool.metadata.get(ICONS))[0]:
        base[ICONS] = icons
    return ServedTool(
        tool=tool,
        name=export.name,
        base=base,
        may_ask=_takes_context(tool),
        returns_content=tool.output_schema is not None and tool.output_schema.get(CONTENT_KEYWORD) is True,
        headers=header_rules(tool.parameters),
    )


def wrap_schema(schema: Params) -> Params | None:
    """The schema of `{"result": value}`; None where references of the schema would lead elsewhere in it."""
    inner = {key: part for key, part in schema.items() if key not in {"$schema", "$defs"}}
    if any(not reference.startswith("#/$defs/") for reference in _references(schema)):
        return None
    wrapped: Params = {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}
    return wrapped | {key: schema[key] for key in ("$schema", "$defs") if key in schema}


def _references(schema: object) -> Iterator[str]:
    """What the schema refers to, wherever in it."""
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key in {"$ref", "$dynamicRef"} and isinstance(part, str):
                yield part
            else:
                yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _takes_context(tool: Tool) -> bool:
    run = tool.run
    if isinstance(run, Function):
        return run.takes_whole or run.context_parameter is not None or run.yields
    return not isinstance(run, Http)
