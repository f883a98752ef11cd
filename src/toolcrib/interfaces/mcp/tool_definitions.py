"""Write the definition of a tool for each version of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.header_values import header_rules
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.export_schemas.phrases import copy
from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.model.tool import Function, Http, Sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.interfaces.mcp.header_values import HeaderRule
    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.model.tool import Tool

# A tool whose output schema says so returns blocks of content, such as images, instead of a value.
CONTENT_KEYWORD = "x-mcp-content"
RESULT = "result"
# What stands in place of a value that is too large.
HANDLE = "toolcrib/kept"
HANDLE_SCHEMA: Params = {
    "type": "object",
    "description": "A value that is too large to be given at once; read it as a resource.",
    "properties": {
        HANDLE: {
            "type": "object",
            "properties": {"uri": {"type": "string"}, "bytes": {"type": "integer"}},
            "required": ["uri", "bytes"],
        }
    },
    "required": [HANDLE],
    "additionalProperties": False,
}
SMALL_TYPES = frozenset({"integer", "number", "boolean", "null"})
SMALL_FORMATS = frozenset({"date", "date-time", "time", "uuid", "ipv4", "ipv6"})
SMALL_LETTERS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedTool:
    """What the protocol needs to know of a tool, computed once.

    `may_ask` says whether it gets a context, by which it reaches the client. `headers` are the arguments that are repeated in
    headers of the request. `escaped` maps what its definition shows with escaped characters to the tool's own. `wraps` says whether the older wire gets its value as `{"result": value}`.
    """

    tool: Tool
    name: str
    base: Params
    may_ask: bool
    returns_content: bool
    headers: tuple[HeaderRule, ...]
    escaped: Mapping[str, str]

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
        promised = self._declared_schema(wire)
        if promised is None:
            return dict(self.base)
        return {**self.base, "outputSchema": copy(self._kept_schema(wire) or promised)}

    def may_be_kept(self, wire: Wire) -> bool:
        """Whether the place of a value that is too large may stand in place of the value, by what its definition says."""
        return self._declared_schema(wire) is None or self._kept_schema(wire) is not None

    def _kept_schema(self, wire: Wire) -> Params | None:
        """The declared schema with the place of a value that is too large; None where a value never is, or where that cannot be said."""
        promised = self._declared_schema(wire)
        return None if promised is None or is_small(self.output_schema) else with_handle(promised)

    def _declared_schema(self, wire: Wire) -> Params | None:
        """The schema of the structured content, without regard to values that are too large; None if none is declared."""
        schema = self.output_schema
        if schema is None or not wire.has_structure:
            return None
        return schema if wire.has_any_structure or not self.wraps else wrap_schema(schema)


def serve_tool(tool: Tool) -> ServedTool:
    """Compute what the protocol needs to know of a tool; raises ToolError for one that cannot be offered."""
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
        escaped=export.escaped,
    )


def wrap_schema(schema: Params) -> Params | None:
    """The schema of `{"result": value}`; None where references of the schema would lead elsewhere in it."""
    if not _can_move(schema):
        return None
    inner, root = _split(schema)
    return {"type": "object", "properties": {RESULT: inner}, "required": [RESULT], **root}


def with_handle(schema: Params) -> Params | None:
    """The schema of a value, or of the place where one that is too large can be read; None where that cannot be said.

    Strict clients refuse every result that does not fit the schema, unless it is a failure, and a large one is none.
    """
    if not _can_move(schema):
        return None
    inner, root = _split(schema)
    typed: Params = {"type": "object"} if inner.get("type") == "object" else {}
    return {**typed, "anyOf": [inner, HANDLE_SCHEMA], **root}


def is_small(schema: object) -> bool:
    """Whether every value that fits the schema is small: numbers, words of a list, and objects of them."""
    if not isinstance(schema, dict):
        return False
    if "enum" in schema or "const" in schema:
        return True
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if all(one in SMALL_TYPES for one in kinds):
        return True
    if kind == "string":
        longest = schema.get("maxLength")
        return schema.get("format") in SMALL_FORMATS or (isinstance(longest, int) and longest <= SMALL_LETTERS)
    properties = schema.get("properties", {})
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return kind == "object" and is_closed and isinstance(properties, dict) and all(map(is_small, properties.values()))


def _can_move(schema: Params) -> bool:
    """Whether the schema means the same as a part of another: its references lead to its definitions, and to nothing else."""
    return "$id" not in schema and all(reference.startswith("#/$defs/") for reference in _references(schema))


def _split(schema: Params) -> tuple[Params, Params]:
    """The schema without what has to stand at the root, and that."""
    root: Params = {key: schema[key] for key in ("$schema", "$defs") if key in schema}
    return {key: part for key, part in schema.items() if key not in root}, root


def _references(schema: object) -> Iterator[str]:
    """The references at any depth of the schema."""
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
    return not isinstance(run, Http | Sql)
