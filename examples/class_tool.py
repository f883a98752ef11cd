"""A tool written as a class; `crib run` and the setting `modules.tools` load it as code of your own."""

from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class Reverse(BaseTool):
    name = "reverse"
    description = "Turn a text around."
    parameters = create_json_schema(
        {"text": {"type": "string", "description": "The text."}},
        required=["text"],
    )

    async def execute(self, arguments):
        return ToolResult(tool_call_id="", output=arguments["text"][::-1])
