# /// script
# dependencies = ["langchain-core"]
# ///
import asyncio
import re
import unicodedata
from typing import Annotated

from langchain_core.tools import tool


@tool(parse_docstring=True)
async def make_slug(title: str, max_length: int = 40) -> str:
    """Make a URL slug of a title.

    Args:
        title: The title of the article.
        max_length: Longest slug that the CMS takes.
    """
    await asyncio.sleep(0)
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return slug[:max_length].rstrip("-")


@tool
async def reading_time(
    words: Annotated[int, "Number of words in the article"],
    per_minute: Annotated[int, "Reading speed"] = 200,
) -> str:
    """Estimate how long an article takes to read."""
    minutes = max(1, -(-words // per_minute))
    return f"{minutes} min"
