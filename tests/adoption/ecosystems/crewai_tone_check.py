# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["crewai"]
# ///
from typing import List, Type

from crewai.tools import BaseTool
from pydantic import BaseModel, Field


class ToneCheckInput(BaseModel):
    """Input schema for ToneCheckTool."""

    text: str = Field(..., description="The draft to check.")
    banned: List[str] = Field(default_factory=lambda: ["very", "really"], description="Words to avoid.")


class ToneCheckTool(BaseTool):
    name: str = "tone_check"
    description: str = "Find the words of a draft that the style guide does not allow."
    args_schema: Type[BaseModel] = ToneCheckInput

    def _run(self, text: str, banned: List[str]) -> dict:
        words = [w.strip(".,!?").lower() for w in text.split()]
        hits = {word: words.count(word) for word in banned if word in words}
        return {"ok": not hits, "hits": hits}
