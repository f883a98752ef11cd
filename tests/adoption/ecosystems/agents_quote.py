import json
from dataclasses import dataclass

from agents import Agent, FunctionTool, RunContextWrapper, function_tool
from pydantic import BaseModel


class Item(BaseModel):
    name: str
    price: float
    quantity: int = 1


@function_tool(name_override="quote", description_override="Price of items")
def make_quote(ctx: RunContextWrapper, items: list[Item], rebate: float = 0.0) -> str:
    """ignored"""
    total = sum(i.price * i.quantity for i in items) * (1 - rebate)
    return json.dumps({"total": round(total, 2)})


agent = Agent(name="sales", tools=[make_quote])
