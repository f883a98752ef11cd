__tool_type__ = "runtime"
__version__ = "1.0.0"
__executor_id__ = "python"
__category__ = "sinks"
__tool_description__ = "Keep streaming events in memory"

from typing import List


class MemorySink:
    """Keep streaming events."""

    def __init__(self, limit: int = 100):
        self.limit = limit
        self.events: List[str] = []

    async def write(self, event: str) -> None:
        self.events = (self.events + [event])[-self.limit:]
