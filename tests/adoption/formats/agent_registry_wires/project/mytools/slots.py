from typing import Any, Dict

from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class FreeSlots(BaseTool):
    def __init__(self, opening: int, closing: int):
        self.opening = opening
        self.closing = closing

    @property
    def name(self) -> str:
        return "free_slots"

    @property
    def description(self) -> str:
        return "Hours that are still free"

    @property
    def parameters(self) -> Dict[str, Any]:
        return create_json_schema(
            properties={
                "taken": {"type": "array", "items": {"type": "integer"}, "description": "Hours that are taken"},
            },
            required=["taken"],
        )

    async def execute(self, arguments: Dict[str, Any]) -> ToolResult:
        free = [h for h in range(self.opening, self.closing) if h not in arguments["taken"]]
        return ToolResult(tool_call_id="", output=free, success=True)
