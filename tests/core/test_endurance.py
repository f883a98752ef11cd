"""A crib that makes very many calls stays as large as it was."""

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from soaks import size
from toolcrib import Kind, ToolError, tool

CALLS = size(100_000)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def wait(text: str) -> str:
    """Wait for a moment."""
    await asyncio.sleep(0)
    return text


@tool(thread=True)
def work() -> int:
    """Work in a thread."""
    return 1


@tool
def fail() -> None:
    """Fail."""
    raise ToolError(Kind.PERMANENT, "no")


def figures(folder: Path) -> dict[str, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len([*Path("/proc/self/fd").iterdir()]),
        "threads": threading.active_count(),
        "files": sum(len(files) for _, _, files in os.walk(folder)),
    }


async def make_calls(crib, number: int) -> None:
    for first in range(0, number, 20):
        made = [crib.call("add", a=each, b=1) for each in range(first, first + 14)]
        others = [crib.call("wait", text=f"{first}.{each}") for each in range(4)]
        *rest, worked, failed = await asyncio.gather(*made, *others, crib.call("work"), crib.call("fail"))
        assert [result.value for result in rest[:14]] == [each + 1 for each in range(first, first + 14)]
        assert [result.value for result in rest[14:]] == [f"{first}.{each}" for each in range(4)]
        assert (worked.value, failed.error.kind) == (1, Kind.PERMANENT)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_very_many_calls_leave_memory_descriptors_threads_and_files_as_they_were(crib_of, project, capsys):
    crib = crib_of(add, wait, work, fail, project=project)
    await make_calls(crib, max(2_000, CALLS // 5))
    before = figures(project)
    await make_calls(crib, CALLS)
    after = figures(project)
    with capsys.disabled():
        print(f"\n{CALLS} calls: {before} -> {after}")
    assert after["descriptors"] == before["descriptors"]
    assert after["threads"] <= before["threads"] + 1
    # The journal and the counts are written behind the answers: their files may come after the first look, and are no more for more calls.
    assert after["files"] <= before["files"] + 4
    assert after["memory"] <= 1.05 * before["memory"]
