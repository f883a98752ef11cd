"""From cold: importing the package, and one call from the command line."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import show

ROUNDS = 25
BARE = "import asyncio, dataclasses, jsonschema_rs, orjson\nasync def main(): pass\nasyncio.run(main())\n"
MODULE = """
from toolcrib import tool


@tool
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    return a + b
"""
FILE = """
def multiply(a: int, b: int) -> int:
    \"\"\"Multiply two numbers.\"\"\"
    return a * b
"""


async def run() -> bool:
    crib = str(Path(sys.executable).parent / "crib")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "toolcrib.toml").write_text('modules.tools = ["mine"]\n')
        (project / "mine.py").write_text(MODULE)
        (project / "tools").mkdir()
        (project / "tools" / "multiply.py").write_text(FILE)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import toolcrib": [sys.executable, "-c", "import toolcrib"],
            "bare": [sys.executable, "-c", BARE],
            "crib call of a host function": [crib, "call", "add", "a=1", "b=2"],
            "crib call of a file tool": [crib, "call", "multiply", "a=1", "b=2"],
        }
        # Installed packages are compiled once; a variable that forbids that would have us measure the compiler.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(ROUNDS + 2):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
                if turn >= 2:
                    times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in times.items()}
    empty, bare = medians["python -c pass"], medians["bare"]
    return show(
        "From cold",
        [
            ("python -c pass", empty, 1.0, None),
            ("import toolcrib, in empty starts", medians["import toolcrib"], medians["import toolcrib"] / empty, 4),
            ("bare: asyncio, dataclasses, jsonschema_rs, orjson", bare, 1.0, None),
            (
                "crib call of a host function, in bare starts",
                medians["crib call of a host function"],
                medians["crib call of a host function"] / bare,
                1.5,
            ),
            (
                "crib call of a file tool, in bare starts",
                medians["crib call of a file tool"],
                medians["crib call of a file tool"] / bare,
                2.5,
            ),
        ],
    )
