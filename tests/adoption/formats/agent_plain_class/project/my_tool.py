from tool.bases import BaseTool, create_json_schema
from core.types import ToolResult
from typing import Dict, Any
import logging

logger = logging.getLogger(__name__)


class Anagram(BaseTool):
    """Check two words."""

    @property
    def name(self) -> str:
        return "anagram"

    @property
    def description(self) -> str:
        return "Whether two words are anagrams"

    @property
    def parameters(self) -> Dict[str, Any]:
        # CRITICAL: type must be "object"
        return create_json_schema(
            properties={
                "first": {"type": "string", "description": "First word"},
                "second": {"type": "string", "description": "Second word"},
            },
            required=["first", "second"],
        )

    async def execute(self, arguments: Dict[str, Any]) -> ToolResult:
        first, second = arguments["first"], arguments["second"]
        if not first.isalpha():
            logger.warning("odd input")
            raise ValueError(f"{first!r} is not a word")
        same = sorted(first.lower()) == sorted(second.lower())
        return ToolResult(tool_call_id="", output="yes" if same else "no", success=True)
