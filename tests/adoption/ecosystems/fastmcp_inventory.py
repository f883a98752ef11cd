# /// script
# requires-python = ">=3.10"
# dependencies = ["fastmcp>=2"]
# ///
from __future__ import annotations

from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

mcp = FastMCP(name="inventory", instructions="Ask me about the shelves.")

STOCK = {"lamp": 4, "chair": 0, "desk": 11}


@dataclass
class Level:
    item: str
    pieces: int
    low: bool


@mcp.resource("stock://all")
def all_stock() -> dict:
    return STOCK


@mcp.prompt
def ask_restock(item: str) -> str:
    return f"Should we order more of {item}?"


@mcp.tool(name="stock_level", tags={"stock"}, annotations={"readOnlyHint": True})
async def level(item: str, ctx: Context, threshold: int = 5) -> Level:
    """How many pieces of an item are on the shelves."""
    await ctx.info(f"looking up {item}")
    if item not in STOCK:
        raise ToolError(f"unknown item: {item}")
    return Level(item=item, pieces=STOCK[item], low=STOCK[item] < threshold)


@mcp.tool(description="Names of all items that are sold out")
def sold_out() -> list[str]:
    return [name for name, n in STOCK.items() if n == 0]
