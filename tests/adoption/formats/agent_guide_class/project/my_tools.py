from typing import Any, Dict

from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class MyTool(BaseTool):
    @property
    def name(self) -> str:
        return "my_tool"

    @property
    def description(self) -> str:
        return "What my tool does"

    @property
    def parameters(self) -> Dict[str, Any]:
        # CRITICAL: type must be "object"
        return create_json_schema(
            properties={
                "arg1": {
                    "type": "string",
                    "description": "First argument",
                },
            },
            required=["arg1"],
        )

    async def execute(self, arguments: Dict[str, Any]) -> ToolResult:
        if not arguments["arg1"]:
            return ToolResult(tool_call_id="", output="", error="arg1 is empty", success=False)
        return ToolResult(tool_call_id="", output=f"done {arguments['arg1']}", success=True)
