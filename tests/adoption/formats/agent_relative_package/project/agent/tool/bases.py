from abc import ABC, abstractmethod
from typing import Any, Dict, List, Optional

from ..core.types import ToolCall, ToolResult


class BaseTool(ABC):
    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def description(self) -> str: ...

    @property
    @abstractmethod
    def parameters(self) -> Dict[str, Any]: ...

    @abstractmethod
    async def execute(self, arguments: Dict[str, Any]) -> ToolResult: ...

    async def call(self, tool_call: ToolCall) -> ToolResult:
        result = await self.execute(tool_call.arguments)
        result.tool_call_id = tool_call.id
        return result


def create_json_schema(properties: Dict[str, Any], required: Optional[List[str]] = None) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}
