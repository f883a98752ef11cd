# /// script
# dependencies = ["pydantic-ai-slim[openai]"]
# ///
from pydantic_ai import Agent

agent = Agent("openai:gpt-4o", instructions="Be concise.")


@agent.tool_plain
def add_vat(net: float, rate: float = 25.0) -> float:
    """Add value added tax to a net price."""
    return round(net * (1 + rate / 100), 2)
