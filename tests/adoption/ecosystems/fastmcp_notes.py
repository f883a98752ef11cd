from typing import Annotated

from fastmcp import Context, FastMCP
from pydantic import Field

mcp = FastMCP("Notes", instructions="Keep notes")
NOTES = {"todo": "buy milk"}


@mcp.tool(name="get_note", tags={"notes"})
async def read_note(title: Annotated[str, Field(description="Title of the note", min_length=1)], ctx: Context) -> str:
    """Read a note."""
    await ctx.info(f"reading {title}")
    if title not in NOTES:
        raise ValueError(f"no note {title}")
    return NOTES[title]


@mcp.tool
def list_notes(prefix: str = "") -> list[str]:
    """Titles of notes."""
    return [t for t in NOTES if t.startswith(prefix)]


@mcp.resource("notes://all")
def all_notes() -> str:
    return "\n".join(NOTES.values())


@mcp.prompt
def summarize() -> str:
    return "Summarize my notes"


if __name__ == "__main__":
    mcp.run(transport="http", port=8000)
