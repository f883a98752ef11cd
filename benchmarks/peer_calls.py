"""Make the same awkward calls through Toolcrib, FastMCP and LangChain, and print what comes back as a table.

Run it in the environment that `make bench-peers` makes: benchmarks/.envs/peers/bin/python benchmarks/peer_calls.py
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from fastmcp import Client, FastMCP
from langchain_core.tools import tool

from toolcrib import Crib

SOURCE = '''
import os
import time


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def wrong(a: int) -> int:
    """Return something else than is declared."""
    return "text"


def variable(name: str) -> str:
    """Read a variable of the environment."""
    return os.environ.get(name, "not there")


def file(path: str) -> str:
    """Read a file of the user."""
    with open(path) as text:
        return text.read()


def slow(a: int) -> int:
    """Take three seconds."""
    time.sleep(3)
    return a


__tools__ = ["add", "wrong", "variable", "file", "slow"]
'''
NOTES = str(Path(tempfile.gettempdir()) / "peer_notes.txt")
CALLS = [
    ("the text `5` for an integer", "add", {"a": "5"}),
    ("an argument that does not exist", "add", {"a": 5, "c": 1}),
    ("the wrong type returned", "wrong", {"a": 1}),
    ("code that reads a variable of yours", "variable", {"name": "PEER_KEY"}),
    ("code that reads a file of yours", "file", {"path": NOTES}),
    ("three seconds, with a limit of one", "slow", {"a": 1}),
]


def functions() -> dict[str, object]:
    made: dict[str, object] = {}
    exec(
        SOURCE, made
    )  # the text of the file that Toolcrib runs, for frameworks that call functions of their own process
    return made


async def through_toolcrib(name: str, arguments: dict[str, object]) -> str:
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "tools").mkdir()
        (Path(project) / "tools" / "awkward.py").write_text(SOURCE, encoding="utf-8")
        async with Crib(project, calls={"timeout_ms": 1_000}) as crib:
            result = await crib.call(name, arguments)
            return f"value {result.value!r}" if result.ok else f"{result.error.kind}: {result.error.message}"


async def through_fastmcp(name: str, arguments: dict[str, object]) -> str:
    server = FastMCP("peer")
    server.tool(functions()[name], timeout=1)
    async with Client(server) as client:
        result = await client.call_tool(name, arguments, raise_on_error=False)
        return f"error: {result.content[0].text}" if result.is_error else f"value {result.data!r}"


async def through_langchain(name: str, arguments: dict[str, object]) -> str:
    return f"value {await tool(functions()[name]).ainvoke(arguments)!r}"


async def answer(way, name: str, arguments: dict[str, object]) -> str:
    began = time.monotonic()
    try:
        text = await way(name, dict(arguments))
    except Exception as error:
        text = f"raises {type(error).__name__}: {error}"
    took = time.monotonic() - began
    line = text.strip().splitlines()
    return " ".join(line[:2])[:110].replace("|", "\\|") + (f" ({took:.1f} s)" if name == "slow" else "")


def main() -> None:
    logging.disable()
    os.environ["PEER_KEY"] = "hunter2"
    Path(NOTES).write_text("private", encoding="utf-8")
    ways = {
        "Toolcrib, a file": through_toolcrib,
        f"FastMCP {version('fastmcp')}": through_fastmcp,
        f"langchain-core {version('langchain-core')}": through_langchain,
    }
    print("| call | " + " | ".join(ways) + " |")
    print("|---" * (len(ways) + 1) + "|")
    for about, name, arguments in CALLS:
        with contextlib.redirect_stderr(None):
            cells = [asyncio.run(answer(way, name, arguments)) for way in ways.values()]
        print(f"| {about} | " + " | ".join(cells) + " |", flush=True)
    Path(NOTES).unlink()


if __name__ == "__main__":
    main()
