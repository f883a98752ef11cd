import asyncio
from collections.abc import AsyncIterator


async def countdown(start: int, step: int = 1) -> AsyncIterator[int]:
    """Count down to zero, as the launch display does."""
    if step <= 0:
        raise ValueError("step must be positive")
    while start >= 0:
        yield start
        await asyncio.sleep(0)
        start -= step
