# /// script
# dependencies = ["fastmcp"]
# ///
"""Text utilities as an MCP server: `fastmcp run fastmcp_text_server.py`."""

from typing import Annotated, Literal

from fastmcp import FastMCP
from pydantic import Field

mcp = FastMCP("Text utilities")


@mcp.tool
def change_case(
    text: Annotated[str, Field(description="Text to change", min_length=1)],
    style: Literal["upper", "lower", "title", "swap"] = "title",
) -> str:
    """Change the case of a text."""
    return {
        "upper": text.upper,
        "lower": text.lower,
        "title": text.title,
        "swap": text.swapcase,
    }[style]()


@mcp.tool()
def split_every(text: str, size: Annotated[int, Field(ge=1, le=100)] = 3) -> list[str]:
    """Split a text into pieces of the same size."""
    return [text[i : i + size] for i in range(0, len(text), size)]


if __name__ == "__main__":
    mcp.run()
