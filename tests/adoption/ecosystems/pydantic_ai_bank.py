# /// script
# dependencies = ["pydantic-ai-slim[openai]"]
# ///
from dataclasses import dataclass

from pydantic_ai import Agent, RunContext


@dataclass
class Deps:
    customer_id: int
    balances: dict[int, float]


agent = Agent("openai:gpt-4o", deps_type=Deps, defer_model_check=True)


@agent.tool
async def customer_balance(ctx: RunContext[Deps], include_pending: bool = False) -> str:
    """The balance of the customer who asks."""
    balance = ctx.deps.balances[ctx.deps.customer_id]
    return f"${balance:.2f}{' (pending included)' if include_pending else ''}"


@agent.tool_plain
def iban_country(iban: str) -> str:
    """The country code of an IBAN."""
    return iban[:2].upper()
