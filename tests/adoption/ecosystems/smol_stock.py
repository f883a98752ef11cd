from smolagents import Tool


class StockTool(Tool):
    name = "stock_level"
    description = "Pieces of an item in stock"
    inputs = {
        "item": {"type": "string", "description": "Name of the item"},
        "minimum": {"type": "integer", "description": "At least", "nullable": True},
    }
    output_type = "object"

    def setup(self):
        self.table = {"bolt": 40, "nut": 3}

    def forward(self, item: str, minimum: int | None = None) -> dict:
        count = self.table.get(item, 0)
        return {"item": item, "count": count, "enough": minimum is None or count >= minimum}
