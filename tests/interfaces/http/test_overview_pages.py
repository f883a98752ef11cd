"""The tokens of the pages of /crib/tools: good for the list that they were made for, and for nothing else."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from app_lifespan import local_app
from toolcrib import Crib, tool
from toolcrib.features.bundles.stored_documents import Documents


@tool
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


@tool
def subtract(first: int, second: int = 1) -> int:
    """Subtract one number from another."""
    return first - second


@pytest.fixture
def numbers(make_world):
    """A crib with more tools than fit on a page of one."""
    return make_world(add, subtract)


async def status_of(world, query: str) -> int:
    return (await world.client.get(f"/crib/tools?pageSize=1&{query}")).status


@pytest.mark.parametrize("token", ["garbage", "add", "host/add", "AAAA", "\x00", "ü", "a" * 3000, "="])
async def test_no_made_up_token_is_taken_for_a_page_of_facts(numbers, token):
    assert await status_of(numbers, f"pageToken={quote(token)}") == 400


async def test_an_altered_token_is_refused(numbers):
    token = (await numbers.client.get("/crib/tools?pageSize=1")).json["nextPageToken"]
    assert await status_of(numbers, f"pageToken={token}") == 200
    for place in range(len(token)):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        assert await status_of(numbers, f"pageToken={changed}") == 400, place


async def test_a_token_of_another_list_or_query_is_refused(numbers):
    token = (await numbers.client.get("/crib/tools?pageSize=1")).json["nextPageToken"]
    for query in ["tags=x", "executors=true", "q=add", "question=add", "name=add"]:
        assert await status_of(numbers, f"{query}&pageToken={token}") == 400, query
    foreign = (await numbers.client.get("/tools?includeDisabled=true&recommendedPageSize=1")).json["nextPageToken"]
    assert foreign
    assert await status_of(numbers, f"pageToken={foreign}") == 400


async def test_a_token_outlives_the_server_that_gave_it_out(numbers, make_world):
    token = (await numbers.client.get("/crib/tools?pageSize=1")).json["nextPageToken"]
    again = make_world(add, subtract, root=numbers.root)
    assert await status_of(again, f"pageToken={token}") == 200


async def pages_of(world, query: str) -> list[dict]:
    """Every page of the list."""
    pages, token = [], ""
    while True:
        pages.append((await world.client.get(f"/crib/tools?{query}&pageToken={token}")).json)
        if (token := pages[-1]["nextPageToken"]) is None:
            return pages


@pytest.fixture
def stored(make_world):
    """A crib with tools of its own and stored ones."""
    world = make_world(add, subtract)
    world.crib.bundles.put_bundle(world.bundle, world.bundle_body())
    for number in range(7):
        tags = ["Even"] if number % 2 == 0 else []
        world.crib.bundles.put_tool(world.bundle, f"go-{number}", "v1", world.go_body(tags=tags))
    return world


@pytest.mark.parametrize("size", [1, 2, 3, 100])
async def test_pages_hold_every_tool_once_and_tell_the_order_of_the_list(stored, size):
    shown = [tool for page in await pages_of(stored, f"pageSize={size}") for tool in page["tools"]]
    listed = [entry.tool.address for entry in stored.crib.entries]
    assert [tool["address"] for tool in sorted(shown, key=lambda tool: tool["order"])] == listed
    assert len({tool["order"] for tool in shown}) == len(shown)


@pytest.mark.parametrize("tag", ["Even", "even", "EVEN"])
async def test_tags_select_stored_tools_however_they_are_written(stored, tag):
    shown = [tool["name"] for page in await pages_of(stored, f"pageSize=3&tags={tag}") for tool in page["tools"]]
    assert shown == ["go-0", "go-2", "go-4", "go-6"]


async def test_a_page_opens_only_the_documents_that_are_on_it(stored, client_for, monkeypatch):
    again, opened = Crib(stored.root, tools=[add, subtract], functions={"echo": print}), []
    again.bundles.list_tools(page_size=1)
    read = Documents.tool
    monkeypatch.setattr(Documents, "tool", lambda self, slot, *given: opened.append(slot) or read(self, slot, *given))
    own = len(again.unstored_entries)
    page = (await client_for(local_app(again)).get(f"/crib/tools?pageSize={own + 2}")).json
    assert len(page["tools"]) == own + 2
    # Two of the seven, and one more that tells that there is another page.
    assert len(set(opened)) <= 3
    await again.close()
