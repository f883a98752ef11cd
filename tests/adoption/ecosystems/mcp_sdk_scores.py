# /// script
# dependencies = ["mcp[cli]<2"]
# ///
"""Scoring helpers, as `uv run mcp dev mcp_sdk_scores.py` takes them."""

import statistics
from typing import Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel

mcp = FastMCP("scores")


class Summary(BaseModel):
    mean: float
    median: float
    best: Optional[str] = None


class Entry(BaseModel):
    player: str
    points: float


@mcp.tool()
def summarize_scores(entries: list[Entry], decimals: int = 1) -> Summary:
    """Summarize the scores of a round."""
    points = [entry.points for entry in entries]
    best = max(entries, key=lambda entry: entry.points).player
    return Summary(
        mean=round(statistics.mean(points), decimals),
        median=round(statistics.median(points), decimals),
        best=best,
    )


@mcp.tool()
def handicap(scores: list[float]) -> float:
    """Average of the best three scores."""
    return statistics.mean(sorted(scores)[:3])


if __name__ == "__main__":
    mcp.run()
