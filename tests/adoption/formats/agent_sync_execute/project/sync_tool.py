from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class Median(BaseTool):
    name = "median"
    description = "Median of numbers."
    parameters = create_json_schema(
        {"numbers": {"type": "array", "items": {"type": "number"}, "description": "The numbers"}}, required=["numbers"]
    )

    def execute(self, arguments):
        ordered = sorted(arguments["numbers"])
        if not ordered:
            return ToolResult(tool_call_id="", output="", success=False, error="no numbers given")
        middle = len(ordered) // 2
        value = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        return ToolResult(tool_call_id="", output=value)
