from core.types import ToolResult
from tool.bases import BaseTool


class Upper(BaseTool):
    name = "upper"
    description = "Upper case"
    parameters = {"type": "string", "description": "The text"}

    async def execute(self, arguments):
        return ToolResult(tool_call_id="", output=str(arguments).upper())
