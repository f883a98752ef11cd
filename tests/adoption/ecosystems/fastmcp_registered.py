# /// script
# dependencies = ["fastmcp"]
# ///
"""Plain functions, tested as such, that are registered at the end."""

import datetime as dt

from fastmcp import FastMCP


def days_between(start: dt.date, end: dt.date) -> int:
    """Whole days from one date to another."""
    return (end - start).days


def is_leap(year: int) -> bool:
    """Whether a year is a leap year."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


server = FastMCP("calendar")
server.tool(days_between)
server.tool(is_leap, name="is_leap_year")

if __name__ == "__main__":
    server.run(transport="stdio")
