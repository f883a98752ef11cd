# /// script
# dependencies = ["openai-agents"]
# ///
from dataclasses import dataclass
from typing import Any

from agents import RunContextWrapper, function_tool


@dataclass
class Shop:
    name: str
    open_from: int
    open_to: int


@function_tool
async def is_open(wrapper: RunContextWrapper[Shop], hour: int) -> str:
    """Whether the shop is open at an hour of the day."""
    shop = wrapper.context
    return "open" if shop.open_from <= hour < shop.open_to else "closed"


@function_tool(strict_mode=False)
def format_hours(ctx: RunContextWrapper[Any], start: int, end: int) -> str:
    """Write opening hours out."""
    return f"{start:02d}:00-{end:02d}:00"
