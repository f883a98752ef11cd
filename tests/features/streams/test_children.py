"""Files of code, scripts and handlers that yield or print lines: their chunks come from the sandbox while they run."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.features.streams.conftest import SECONDS, streamed

from toolcrib import Chunk, Crib, Kind

EXAMPLE = Path(__file__).parents[3] / "examples" / "client"
SCHEMA = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many."}}}
PLAIN = '''import time
from collections.abc import Iterator

def plain(count: int, waits: bool = False) -> Iterator[dict]:
    """Count.

    Args:
        count: How many.
        waits: Whether to wait.
    """
    for number in range(count):
        yield {"number": number}
        while waits:
            time.sleep(0.005)
'''
ASYNC = '''import asyncio
from collections.abc import AsyncIterator

async def asynchronous(count: int) -> AsyncIterator[str]:
    """Count.

    Args:
        count: How many.
    """
    for number in range(count):
        await asyncio.sleep(0)
        yield str(number)
'''
METADATA = """__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "demo"
__tool_description__ = "Stream"
"""
SCRIPT = (
    METADATA
    + '''
def main(count: int = 2):
    """Count.

    Args:
        count: How many.
    """
    for number in range(count):
        yield number
'''
)
JOINED = SCRIPT.replace("yield number", 'yield f"{number},"').replace(
    METADATA, METADATA + '__output_schema__ = {"type": "string"}\n'
)
ROWS = (
    METADATA
    + """__stream__ = True
__output_schema__ = {"type": "array", "items": {"type": "object"}}

if __name__ == "__main__":
    import json
    for number in range(2):
        print(json.dumps({"number": number}))
"""
)
LINES = """#!/usr/bin/env bash
# version: 1.0.0
# tool_type: script
# executor_id: bash
# category: demo
# description: Print lines.
# requires: [shell.execute]
# stream: true
echo first
read -t 20 < <(sleep 0.05) || true
printf 'second\\nlast'
"""
ENDLESS = LINES.partition("echo first")[0] + "while true; do echo 1; sleep 0.01; done\n"
BAD_ROWS = LINES.partition("echo first")[0] + "# output_schema: {type: array}\necho '{\"a\": 1}'\necho 'no JSON'\n"
NODE = """/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category demo
 * @description Yield
 */
export async function* main({ count = 2 }) {
  for (let number = 0; number < count; number += 1) yield { number };
}
"""
HANDLER = """
async def execute(args, context):
    for number in range(args.get("count", 2)):
        yield {"number": number}
"""
PLAIN_HANDLER = HANDLER.replace("async def", "def")
NODE_HANDLER = """
export async function* execute({ args }) {
  for (let number = 0; number < (args.count ?? 2); number += 1) yield { number };
}
"""
FAILING_HANDLER = """
export async function* execute({ args }) {
  yield 1;
  const problem = new Error("gone");
  problem.name = "ToolError";
  problem.type = "NOT_FOUND";
  throw problem;
}
"""
NUMBERS: list[object] = [{"number": 0}, {"number": 1}]


def write_folder(folder: Path, tool_id: str, handler: str, code: str) -> None:
    """A tool folder like that of the example, with another handler."""
    shutil.copytree(EXAMPLE / "tools" / "show-folders", folder)
    (folder / "handler.py").unlink()
    (folder / handler).write_text(code)
    schema = json.loads((folder / "schema.json").read_text().replace("show_folders", tool_id))
    schema["parameters"]["properties"] = SCHEMA["properties"]
    (folder / "schema.json").write_text(json.dumps(schema))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "toolcrib.toml").write_text('[builtins]\nenabled = false\n[grants]\n"*" = ["shell.execute"]\n')
    scripts = folder / ".ai" / "tools" / "demo"
    scripts.mkdir(parents=True)
    files = {"script.py": SCRIPT, "joined.py": JOINED, "rows.py": ROWS, "node.js": NODE}
    files |= {"lines.sh": LINES, "endless.sh": ENDLESS, "bad_rows.sh": BAD_ROWS}
    for name, code in files.items():
        (scripts / name).write_text(code)
    tools = folder / "tools"
    tools.mkdir()
    (tools / "plain.py").write_text(PLAIN)
    (tools / "asynchronous.py").write_text(ASYNC)
    write_folder(tools / "handler-py", "handler_py", "handler.py", HANDLER)
    write_folder(tools / "plain-handler", "plain_handler", "handler.py", PLAIN_HANDLER)
    write_folder(tools / "handler-js", "handler_js", "handler.js", NODE_HANDLER)
    write_folder(tools / "failing-js", "failing_js", "handler.js", FAILING_HANDLER)
    with Crib(folder) as crib:
        assert [problem for built in crib.registries.build(strict=False) for problem in built.problems] == []
    return folder


@pytest.fixture
async def crib(project):
    async with Crib(project) as opened:
        assert opened.problems == []
        yield opened


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize(
    ("name", "chunks", "value"),
    [
        ("plain", NUMBERS, NUMBERS),
        ("asynchronous", ["0", "1"], ["0", "1"]),
        ("script", [0, 1], [0, 1]),
        ("joined", ["0,", "1,"], "0,1,"),
        ("node", NUMBERS, NUMBERS),
        ("handler_py", NUMBERS, NUMBERS),
        ("plain_handler", NUMBERS, NUMBERS),
        ("handler_js", NUMBERS, NUMBERS),
    ],
)
async def test_what_a_child_yields_comes_in_chunks_and_is_its_value_with_and_without_a_reader(
    crib, name, chunks, value
):
    found, result = await streamed(crib, name, count=2)
    assert result.error is None
    assert (found, result.value) == (chunks, value)
    assert (await crib.call(name, count=2)).value == value


@pytest.mark.spec("S1-92")
async def test_lines_that_a_script_prints_come_while_it_runs(crib):
    chunks, result = await streamed(crib, "lines")
    assert chunks in (["first\n", "second\n", "last"], ["first\n", "second\nlast"])
    assert result.value == (await crib.call("lines")).value == "first\nsecond\nlast"


async def test_each_line_of_a_script_that_promises_a_list_is_an_item(crib):
    chunks, result = await streamed(crib, "rows")
    assert (chunks, result.value) == (NUMBERS, NUMBERS)
    assert (await crib.call("rows")).value == NUMBERS


async def test_a_line_that_is_not_json_fails_the_call_behind_its_chunks(crib):
    chunks, result = await streamed(crib, "bad-rows")
    assert chunks == [{"a": 1}, "no JSON"]
    assert result.error.kind is Kind.OUTPUT_INVALID
    assert "line 2 of what bad_rows printed" in result.error.message


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize(("name", "arguments"), [("endless", {}), ("plain", {"count": 5, "waits": True})])
async def test_a_reader_that_leaves_ends_the_process(crib, name, arguments):
    async with asyncio.timeout(SECONDS), aclosing(crib.stream(name, arguments)) as events:
        assert isinstance(await anext(events), Chunk)
    # No process is left: the fixtures of the suite look for one.
    *_, line = crib.journal.read()
    assert (line["event"], line["error"]) == ("call", Kind.CANCELLED)


async def test_a_handler_that_fails_in_the_middle_has_its_chunks_and_its_error(crib):
    chunks, result = await streamed(crib, "failing_js")
    assert (chunks, result.error.kind, result.error.message) == ([1], Kind.NOT_FOUND, "gone")
    # The warm process is as it was.
    assert (await streamed(crib, "failing_js"))[0] == [1]


@pytest.mark.parametrize("name", ["plain", "handler_py", "handler_js", "node"])
async def test_a_child_that_floods_meets_the_limit_and_is_ended(crib, monkeypatch, name):
    monkeypatch.setattr("toolcrib.core.call_state.MAX_CHUNKS", 10)
    chunks, result = await streamed(crib, name, count=100_000)
    assert len(chunks) == 10
    assert result.error.kind is Kind.LIMIT_EXCEEDED
    assert (await crib.call(name, count=1)).value == [{"number": 0}]


@pytest.mark.parametrize("name", ["plain", "handler_js"])
async def test_a_child_waits_for_a_reader_that_is_slower_and_nothing_is_lost(crib, name):
    async with asyncio.timeout(SECONDS), aclosing(crib.stream(name, count=3_000)) as events:
        await anext(events)
        for _ in range(500):
            await asyncio.sleep(0)
        rest = [event async for event in events]
    assert [event.value["number"] for event in rest[:-1]] == [*range(1, 3_000)]
    assert len(rest[-1].value) == 3_000
