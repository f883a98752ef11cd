# /// script
# dependencies = ["pydantic-ai-slim"]
# ///
"""An agent for board-game night; its tools are plain functions."""

import random

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry

agent = Agent("test", system_prompt="You referee board games.")


class Roll(BaseModel):
    dice: list[int]
    total: int = Field(description="Sum of the dice")


@agent.tool_plain
def roll_dice(sides: int, count: int = 1, seed: int = 0) -> Roll:
    """Roll dice.

    Args:
        sides: Sides of each die.
        count: How many dice.
        seed: The same seed rolls the same dice.
    """
    if sides < 2:
        raise ModelRetry("a die has at least two sides")
    rng = random.Random(seed)
    dice = [rng.randint(1, sides) for _ in range(count)]
    return Roll(dice=dice, total=sum(dice))


@agent.tool_plain(retries=2)
async def winner(scores: dict[str, int]) -> str:
    """Who has the highest score; the first one wins a tie."""
    return max(scores, key=scores.__getitem__)
