"""Ten thousand tools: how long they take to load, and what a call costs among them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from run import compare, show
from toolcrib import Crib, tool

MANY = 10_000
FEW = 10
LIMIT_SECONDS = 2.0

FILE = """
def tool_{number}(a: int, b: int = 2) -> int:
    \"\"\"Add two numbers and {number}.

    Args:
        a: the first number
        b: the second number
    \"\"\"
    return a + b + {number}
"""


def functions(count: int) -> list[object]:
    def make(number: int) -> object:
        def add(a: int, b: int = 2) -> int:
            """Add two numbers.

            Args:
                a: the first number
                b: the second number
            """
            return a + b + number

        return tool(name=f"add_{number}")(add)

    return [make(number) for number in range(count)]


async def run() -> bool:
    made = functions(MANY)
    started = time.perf_counter()
    many = Crib(tools=made)
    assert many.find("add_9999") is not None
    functions_took = time.perf_counter() - started
    few = Crib(tools=functions(FEW))
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools"
        tools.mkdir()
        for number in range(MANY):
            (tools / f"tool_{number}.py").write_text(FILE.format(number=number))
        started = time.perf_counter()
        files = Crib(folder)
        assert files.find("tool_9999") is not None
        files_took = time.perf_counter() - started
        await files.close()
    medians = await compare(
        {
            "few": lambda: few.call("add_7", a=1),
            "many": lambda: many.call("add_7777", a=1),
        }
    )
    return show(
        f"{MANY:,} tools",
        [
            ("functions loaded, in units of the limit of 2 s", functions_took, functions_took / LIMIT_SECONDS, 1),
            ("files loaded, in units of the limit of 2 s", files_took, files_took / LIMIT_SECONDS, 1),
            (f"a call among {FEW}", medians["few"], 1.0, None),
            (f"a call among {MANY:,}", medians["many"], medians["many"] / medians["few"], 1.25),
        ],
    )
