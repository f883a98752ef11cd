"""Tools as model providers want to see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.pure.names import function_name

if TYPE_CHECKING:
    from toolcrib.model.tool import Tool


def to_openai(tool: Tool) -> dict[str, object]:
    """The definition that a chat completion takes in `tools`."""
    function = {"name": function_name(tool.name), "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
