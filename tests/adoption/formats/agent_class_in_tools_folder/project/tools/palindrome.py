from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class PalindromeTool(BaseTool):
    name = "palindrome"
    description = "Whether a text reads the same backwards."
    parameters = create_json_schema({"text": {"type": "string", "description": "The text"}}, required=["text"])

    async def execute(self, arguments):
        letters = [c.lower() for c in arguments["text"] if c.isalnum()]
        return ToolResult(tool_call_id="", output=letters == letters[::-1])
