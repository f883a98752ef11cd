"""toolbox/index.py - registry of all tools"""

from typing import Dict, List, Optional

from .color import BaseTool, HexToRgb


class ToolRegistry:
    def __init__(self):
        self._tools: Dict[str, BaseTool] = {}

    def register(self, tool: BaseTool) -> None:
        if tool.name in self._tools:
            raise ValueError(f"Tool already registered: {tool.name}")
        self._tools[tool.name] = tool

    def get(self, name: str) -> Optional[BaseTool]:
        return self._tools.get(name)

    def list_tools(self) -> List[str]:
        return sorted(self._tools)


def create_default_registry(prefix: str = "#") -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(HexToRgb(prefix))
    return registry
