# /// script
# dependencies = ["crewai"]
# ///
from crewai.tools import BaseTool, tool
from pydantic import BaseModel, Field


@tool("Name of my tool")
def my_tool(question: str) -> str:
    """Clear description for what this tool is useful for, your agent will need this information to use it."""
    return question.upper()


class SearchInput(BaseModel):
    """Input."""

    query: str = Field(..., description="the query")


class SearchTool(BaseTool):
    name: str = "Search notes"
    description: str = "Search the notes"
    args_schema: type[BaseModel] = SearchInput

    def _run(self, query: str) -> str:
        return f"found {query}"
