# /// script
# dependencies = ["langchain-core"]
# ///
from typing import List, Tuple

from langchain_core.tools import tool


@tool(response_format="content_and_artifact")
def arithmetic_series(start: int, step: int, count: int) -> Tuple[str, List[int]]:
    """Make an arithmetic series. The numbers go to the artifact, the model sees a summary."""
    numbers = [start + step * i for i in range(count)]
    return f"Series of {count} numbers, sum {sum(numbers)}", numbers
