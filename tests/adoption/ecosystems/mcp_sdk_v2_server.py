# /// script
# dependencies = ["mcp>=2"]
# ///
from mcp.server import MCPServer

mcp = MCPServer("roman")

NUMERALS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
            (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


@mcp.tool()
def to_roman(number: int) -> str:
    """Write a number between 1 and 3999 as a Roman numeral."""
    if not 1 <= number <= 3999:
        raise ValueError("number must be between 1 and 3999")
    out = ""
    for value, letters in NUMERALS:
        while number >= value:
            out += letters
            number -= value
    return out


@mcp.tool(name="from_roman", description="Read a Roman numeral.")
def parse(numeral: str) -> int:
    total, rest = 0, numeral.upper()
    for value, letters in NUMERALS:
        while rest.startswith(letters):
            total += value
            rest = rest[len(letters):]
    return total
