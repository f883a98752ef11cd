"""An agent that lacks a tool asks for it, waits while it is built and proved, and calls it, all over one connection."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.interfaces.mcp.conftest import McpClient, Stream

from toolcrib import Crib, tool

EXAMPLES = Path(__file__).parents[3] / "examples" / "requests"
# The first attempt is wrong, so that what is published was proved by the gate and not just delivered.
AGENT = """import pathlib

package = next(pathlib.Path.cwd().rglob("slug_maker.py"), None)
place = package or pathlib.Path.cwd() / "package" / "slug_maker.py"
right = pathlib.Path("tried").exists()
pathlib.Path("tried").write_text("once")
place.write_text({code!r} if right else "1 / 0\\ndef make_slug(headline: str, words: int = 4) -> dict: ...\\n")
"""


@tool
def present() -> str:
    """Be there."""
    return "present"


def write_project(folder: Path, limit: int) -> None:
    agent = folder / "agent.py"
    agent.write_text(AGENT.format(code=(EXAMPLES / "made" / "slug_maker.py").read_text()))
    project = folder / "project"
    (project / "tools").mkdir(parents=True)
    command = json.dumps([sys.executable, str(agent)])
    settings = (
        f'[builder]\nmaker = "command"\ncommand = {command}\n[requests]\nmissing = true\n[mcp]\nlist_limit = {limit}\n'
    )
    (project / "toolcrib.toml").write_text(settings)


async def names_of(client: McpClient) -> set[str]:
    return {listed["name"] for listed in (await client.ask("tools/list")).result["tools"]}


@pytest.mark.parametrize("wire", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("limit", [100, 1], ids=["listed", "searched"])
async def test_a_missing_tool_is_asked_for_built_proved_and_called_without_connecting_again(
    client_of, tmp_path, wire, limit
):
    write_project(tmp_path, limit)
    client = client_of(present, crib=Crib(tmp_path / "project", tools=[present, tool(name="other")(lambda: "")]))
    crib = client.crib
    if wire != client.version:
        client = await client.open(wire)
    assert {"request_tool", "watch_request"} <= await names_of(client)
    arguments = {"headline": "A Cup of Tea", "words": 2}
    missing = await client.call("slug_maker", arguments)
    assert "Tool 'slug_maker' not found" in missing.error["message"]

    filed = (await client.call("request_tool", {"request": (EXAMPLES / "slug_maker.yaml").read_text()})).result
    request_id = filed["structuredContent"]["id"]
    stop = asyncio.Event()
    said: list[str] = []
    building = asyncio.create_task(crib.builder(say=said.append).run(stop))
    try:
        watched = (await client.call("watch_request", {"id": request_id, "seconds": 15})).result["structuredContent"]
    finally:
        stop.set()
        await asyncio.wait_for(building, 20)

    assert (watched["status"], watched["tool"]) == ("ready", "tools/slug-maker@1.0.0"), watched
    # The gate saw both attempts, and let the second pass.
    assert [line for line in said if "refused" in line or "published" in line] == [
        next(line for line in said if ": refused: import: importing slug_maker.py raises " in line),
        f"{request_id}: published: tools/slug_maker",
    ]
    result = (await client.call("slug_maker", arguments)).result
    assert result["structuredContent"] == {"slug": "a-cup", "dropped": ["of", "tea"]}
    if limit == 1:
        called = await client.call("call_tool", {"name": "slug_maker", "arguments": arguments})
        found = await client.call("search_tools", {"query": "web address of an article"})
        assert called.result["structuredContent"] == result["structuredContent"]
        assert "slug_maker" in [one["name"] for one in found.result["structuredContent"]["tools"]]
    else:
        assert "slug_maker" in await names_of(client)


async def test_who_watches_the_list_hears_of_the_tool_that_was_built(client_of, tmp_path):
    write_project(tmp_path, 100)
    client = client_of(crib=Crib(tmp_path / "project"))
    session = await client.open()
    await names_of(session)
    filed = await session.call("request_tool", {"request": (EXAMPLES / "slug_maker.yaml").read_text()})
    async with Stream(session.send, b"", method="GET") as stream:
        await client.crib.requests.deliver(filed.result["structuredContent"]["id"], EXAMPLES / "made")
        while (await stream.next())["method"] != "notifications/tools/list_changed":
            pass
    assert "slug_maker" in await names_of(session)


@pytest.mark.parametrize(
    ("limit", "listed"),
    [
        (3, {"present", "request_tool", "watch_request"}),
        (2, {"search_tools", "describe_tool", "call_tool", "request_tool", "watch_request"}),
    ],
)
async def test_the_tools_to_ask_for_others_count_against_the_limit_of_the_list(client_of, limit, listed):
    client = client_of(present, requests={"missing": True}, mcp={"list_limit": limit})
    assert await names_of(client) == listed


async def test_without_the_setting_tools_cannot_be_requested(client_of):
    client = client_of(present)
    assert await names_of(client) == {"present"}
    assert "not found" in (await client.call("request_tool", {"request": "tool_name: x"})).error["message"]
