# /// script
# dependencies = ["fastmcp>=2.10,<3"]
# ///
from typing import Annotated, Literal

from fastmcp import FastMCP
from pydantic import Field

mcp = FastMCP(name="Images")


@mcp.tool(name="resize", description="Resize an image", tags={"image"}, annotations={"readOnlyHint": True})
def process_image(
    width: Annotated[int, Field(description="Target width", ge=1, le=2000)] = 800,
    fmt: Literal["jpeg", "png"] = "jpeg",
) -> dict[str, str | int]:
    """Process."""
    return {"width": width, "fmt": fmt}


@mcp.tool
async def echo(text: str) -> str:
    """Echo a text."""
    return text


@mcp.tool(enabled=False)
def hidden() -> str:
    """Not offered."""
    return "no"


if __name__ == "__main__":
    mcp.run(transport="http", port=8000)
