# /// script
# dependencies = ["pydantic-ai-slim"]
# ///
import random
from dataclasses import dataclass

from pydantic_ai import Agent, ModelRetry, RunContext


@dataclass
class Deps:
    name: str


agent = Agent("test", deps_type=Deps, defer_model_check=True)


@agent.tool_plain(retries=2)
def roll(sides: int = 6) -> str:
    """Roll a die.

    Args:
        sides: How many sides.
    """
    if sides < 1:
        raise ModelRetry("a die has sides")
    return str(sides)


@agent.tool
def player(ctx: RunContext[Deps]) -> str:
    """Get the player's name."""
    return ctx.deps.name
