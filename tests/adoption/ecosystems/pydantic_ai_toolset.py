# /// script
# dependencies = ["pydantic-ai-slim"]
# ///
from pydantic_ai import FunctionToolset, Tool


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Keep a value between two bounds."""
    return max(low, min(high, value))


def lerp(a: float, b: float, t: float) -> float:
    """Linear interpolation between a and b."""
    return a + (b - a) * t


toolset = FunctionToolset(tools=[clamp, Tool(lerp, name="interpolate")])
