from dataclasses import dataclass


@dataclass
class ToolResult:
    tool_call_id: str
    output: object = ""
    error: str | None = None
    success: bool = True


class BaseTool:
    pass


class HexToRgb(BaseTool):
    name = "hex_to_rgb"
    description = "Turn a hex colour into RGB"
    parameters = {
        "type": "object",
        "properties": {"color": {"type": "string", "description": "Like #ff8800"}},
        "required": ["color"],
    }

    def __init__(self, prefix: str):
        self.prefix = prefix

    async def execute(self, arguments):
        try:
            digits = arguments["color"].removeprefix(self.prefix)
            return ToolResult("", output=[int(digits[i : i + 2], 16) for i in (0, 2, 4)])
        except ValueError as exc:
            return ToolResult("", success=False, error=f"not a colour: {exc}")
