# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["crewai"]
# ///
"""Used by the market analyst of the crew."""

from crewai.tools import tool


@tool("Percent Change")
def percent_change(old: float, new: float) -> str:
    """Useful to tell by how many percent a number changed. Give the old and the new number."""
    if old == 0:
        return "undefined: the old value is zero"
    return f"{(new - old) / old * 100:+.1f}%"
