# /// script
# dependencies = ["mcp"]
# ///
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("bmi")


@mcp.tool()
def calculate_bmi(weight_kg: float, height_m: float) -> float:
    """Calculate BMI given weight in kg and height in meters"""
    return round(weight_kg / (height_m**2), 1)
