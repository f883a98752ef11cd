from core.types import HOUSE_CURRENCY, ToolResult
from tool.bases import BaseTool, create_json_schema, money


class Instalments(BaseTool):
    name = "instalments"
    description = "Divide an amount into instalments."
    parameters = create_json_schema(
        {
            "amount": {"type": "number", "description": "The amount", "minimum": 1},
            "count": {"type": "integer", "description": "How many", "default": 2},
        },
        ["amount"],
    )

    async def execute(self, arguments):
        each = round(arguments["amount"] / arguments.get("count", 2), 2)
        return ToolResult("", output={"each": money(each, HOUSE_CURRENCY)})
