"""A tool of every format, from its file through every interface to the same result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.interfaces.http.conftest import Client
from tests.interfaces.mcp.conftest import NEW, OLD, McpClient, meta
from tests.interfaces.mcp.formats import ARGUMENTS, NAMES, RESULT, write_project
from tests.interfaces.mcp.test_stdio import Program

from app_lifespan import local_app
from toolcrib import Crib

WORDS = [f"{name}={value}" for name, value in ARGUMENTS.items()]


@pytest.fixture(scope="module")
def formats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for all: Python loads its module of host functions once."""
    project = tmp_path_factory.mktemp("formats")
    write_project(project)
    return project


def content_of(result: dict) -> tuple[object, object]:
    """What a result of the protocol says, as text and structured."""
    (block,) = result["content"]
    assert not result.get("isError"), result
    return json.loads(block["text"]), result["structuredContent"]


async def test_a_tool_of_every_format_gives_one_result_in_python_and_over_http_and_mcp(formats):
    async with Crib(formats) as crib:
        app = local_app(crib)
        newer = McpClient(app)
        older = await newer.open(OLD)
        for name in NAMES:
            assert (await crib.call(name, **ARGUMENTS)).value == RESULT
            reply = await Client(app).ask("POST", f"/call/{name}", ARGUMENTS)
            assert reply.json["value"] == RESULT
            for client in (newer, older):
                assert content_of((await client.call(name, ARGUMENTS)).result) == (RESULT, RESULT)


def test_a_tool_of_every_format_gives_the_same_result_on_the_command_line(formats, cli):
    for name in NAMES:
        called = cli("call", "-C", str(formats), name, *WORDS)
        assert called.code == 0
        assert json.loads(called.out) == RESULT


def test_a_tool_of_every_format_gives_the_same_result_over_stdio(formats):
    program = Program(formats)
    try:
        for name in NAMES:
            called = program.ask("tools/call", {"name": name, "arguments": ARGUMENTS, "_meta": meta(NEW)})
            assert content_of(called["result"]) == (RESULT, RESULT)
        assert program.end()[0] == 0
    finally:
        program.process.kill()
        program.process.communicate()
