"""An answer that says of itself whether it is one: `{"result": …, "success": …, "error": …}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.model.tool import Script, Tool

KEYS = frozenset({"result", "success", "error"})
MAX_MESSAGE_LETTERS = 2_000


def open_envelope(tool: Tool, script: Script, value: object) -> object:
    """What is in it; raises ToolError, with what was achieved, if it tells of a failure. Any other value is itself."""
    if (
        not script.enveloped
        or not isinstance(value, dict)
        or value.keys() != KEYS
        or not isinstance(value["success"], bool)
    ):
        return value
    if value["success"]:
        return value["result"]
    said = value["error"] if isinstance(value["error"], str) else ""
    message = said[:MAX_MESSAGE_LETTERS] or f"{tool.name} failed and does not say why; have it say so in error"
    raise ToolError(Kind.PERMANENT, message, partial_side_effects=True, value=value["result"])
