from typing import Any, Optional

from dataclasses import dataclass


@dataclass(frozen=True)
class ToolResult:
    tool_call_id: str
    output: Any = None
    success: bool = True
    error: Optional[str] = None


HOUSE_CURRENCY = "NOK"
