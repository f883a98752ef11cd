from typing import Any, Dict

from ..core.types import ToolResult
from .bases import BaseTool, create_json_schema


class LongestWord(BaseTool):
    @property
    def name(self) -> str:
        return "longest_word"

    @property
    def description(self) -> str:
        return "Find the longest word of a text"

    @property
    def parameters(self) -> Dict[str, Any]:
        return create_json_schema(
            properties={"text": {"type": "string", "description": "The text"}},
            required=["text"],
        )

    async def execute(self, arguments: Dict[str, Any]) -> ToolResult:
        words = arguments["text"].split()
        if not words:
            return ToolResult(tool_call_id="", output="", error="The text has no words", success=False)
        return ToolResult(tool_call_id="", output=max(words, key=len), success=True)
