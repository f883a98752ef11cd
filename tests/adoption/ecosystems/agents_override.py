# /// script
# dependencies = ["openai-agents"]
# ///
import json
from typing import Any

from typing_extensions import TypedDict
from agents import Agent, FunctionTool, RunContextWrapper, function_tool


class Location(TypedDict):
    lat: float
    long: float


@function_tool
async def fetch_weather(location: Location) -> str:
    """Fetch the weather for a given location.

    Args:
        location: The location to fetch the weather for.
    """
    return "sunny"


@function_tool(name_override="fetch_data", strict_mode=False)
def read_file(ctx: RunContextWrapper[Any], path: str, directory: str | None = None) -> str:
    """Read the contents of a file.

    Args:
        path: The path to the file to read.
        directory: The directory to read the file from.
    """
    return f"{directory}/{path}"


agent = Agent(name="Assistant", tools=[fetch_weather, read_file])
