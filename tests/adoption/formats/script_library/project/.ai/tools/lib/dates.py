__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = None
__category__ = "lib"
__tool_description__ = "Date helpers for other tools"

from datetime import date


def parse(value: str) -> date:
    return date.fromisoformat(value)
