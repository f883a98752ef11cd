# /// script
# dependencies = ["langchain"]
# ///
from typing import Union

from langchain.tools import tool


@tool("celsius-to-fahrenheit")
def c2f(celsius: Union[int, float]) -> str:
    """Converts Celsius to Fahrenheit."""
    return f"{celsius * 9 / 5 + 32:g} °F"
