"""core/types.py - the shapes that pass between model, tools and loop."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: Dict[str, Any]


@dataclass
class ToolResult:
    tool_call_id: str
    output: str
    error: Optional[str] = None
    success: bool = True
    metadata: Dict[str, Any] = field(default_factory=dict)
