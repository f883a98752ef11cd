"""The tokens of the pages of /crib/tools: good for the list that they were made for, and for nothing else."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from toolcrib import tool


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
