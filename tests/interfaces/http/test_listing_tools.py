"""Lists and searches of tools over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from toolcrib import tool

LISTS = ("/tools", "/tools/tools")
SEARCHES = ("/tools/search", "/tools/tools/search")


async def walk(world, path: str, token: str = "") -> list[str]:
    """The slugs of all pages, from the one that the token asks for."""
    seen = []
    mark = "&" if "?" in path else "?"
    for _ in range(100):
        page = (await world.client.get(f"{path}{mark}pageToken={token}" if token else path)).json
        seen += [found["slug"] for found in page["tools"]]
        token = page["nextPageToken"]
        if token is None:
            return seen
    raise AssertionError("the pages never end")


@pytest.mark.spec("S1-64")
@pytest.mark.parametrize("path", LISTS)
async def test_tools_of_all_bundles_are_listed_by_tags_and_bundles(world, path):
    await world.with_bundle()
    await world.with_bundle(world.other, slug="news")
    await world.with_tool("one", tags=["sky", "now"])
    await world.with_tool("two", tags=["sky"])
    await world.with_tool("three", bundle_id=world.other, tags=["sky"])
    both = f"bundleIDs={world.bundle},{world.other}"
    assert sorted(await walk(world, f"{path}?{both}")) == ["one", "three", "two"]
    assert sorted(await walk(world, f"{path}?{both}&tags=sky")) == ["one", "three", "two"]
    assert await walk(world, f"{path}?{both}&tags=sky,now") == ["one"]
    assert await walk(world, f"{path}?{both}&tags=sky&tags=now") == ["one"]
    assert await walk(world, f"{path}?bundleIDs={world.other}") == ["three"]
    assert await walk(world, f"{path}?bundleIDs={world.bundle}&tags=absent") == []


@pytest.mark.spec("S1-64", "S1-66")
async def test_pages_show_every_tool_once_and_their_size_is_a_recommendation(world):
    await world.with_bundle()
    names = [f"tool-{number}" for number in range(7)]
    for name in names:
        await world.with_tool(name)
    own = f"/tools?bundleIDs={world.bundle}"
    for word in ("recommendedPageSize", "pageSize"):
        for size in (1, 2, 3, 7, 256, 100_000):
            assert sorted(await walk(world, f"{own}&{word}={size}")) == names
        assert len((await world.client.get(f"{own}&{word}=2")).json["tools"]) == 2


async def test_the_two_words_for_the_size_of_a_page_are_one_too_many(world):
    reply = await world.client.get("/tools?recommendedPageSize=2&pageSize=2")
    assert (reply.status, "write one of them" in reply.json["detail"]) == (400, True)


@pytest.mark.spec("S1-64")
async def test_the_tools_of_one_bundle_are_listed_under_its_own_path(world):
    await world.with_bundle()
    await world.with_bundle(world.other, slug="news")
    for number in range(3):
        await world.with_tool(f"tool-{number}", tags=["odd"] if number % 2 else ["even"])
    await world.with_tool("elsewhere", bundle_id=world.other, tags=["odd"])
    own = f"{world.bundle_path()}/tools"
    assert (await world.client.get(own)).json == (await world.client.get(f"/tools?bundleIDs={world.bundle}")).json
    assert sorted(await walk(world, f"{own}?pageSize=2")) == ["tool-0", "tool-1", "tool-2"]
    assert await walk(world, f"{own}?tags=odd") == ["tool-1"]
    await world.client.patch(world.tool_path("tool-1"), {"isEnabled": False})
    assert await walk(world, f"{own}?tags=odd") == []
    assert await walk(world, f"{own}?tags=odd&includeDisabled=true") == ["tool-1"]


async def test_the_tools_of_a_bundle_that_is_none_are_not_listed(world):
    await world.with_bundle()
    own = f"{world.bundle_path()}/tools"
    assert (await world.client.get(f"{own}?bundleIDs={world.bundle}")).status == 400
    assert (await world.client.get("/tools/bundles/b1/tools")).status == 400
    assert (await world.client.get(f"{world.bundle_path(world.other)}/tools")).status == 404


@pytest.mark.spec("S1-66")
async def test_what_survives_is_seen_although_others_come_and_go_between_the_pages(world):
    await world.with_bundle()
    for number in range(6):
        await world.with_tool(f"tool-{number}")
    own = f"/tools?bundleIDs={world.bundle}&recommendedPageSize=2"
    first = (await world.client.get(own)).json
    seen = [found["slug"] for found in first["tools"]]
    gone = seen[-1]
    await world.client.delete(world.tool_path(gone))
    await world.with_tool("newcomer")
    seen += await walk(world, own, first["nextPageToken"])
    survivors = {f"tool-{number}" for number in range(6)} - {gone}
    assert survivors <= set(seen)
    assert len(seen) == len(set(seen))


async def test_a_bad_query_of_a_list_is_refused(world):
    for query in ["recommendedPageSize=0", "recommendedPageSize=x", "pageSize=0", "tags=", "tags=a,,b", "bundleIDs=b1"]:
        assert (await world.client.get("/tools", query=query)).status == 400, query


@pytest.mark.spec("S1-65")
@pytest.mark.parametrize("path", SEARCHES)
async def test_tools_are_found_by_what_was_typed(world, path):
    await world.with_bundle()
    await world.with_tool("weather", description="Tell of the sky.")
    await world.with_tool("news", description="Tell of the weather in the papers.")
    found = (await world.client.get(f"{path}?q=weather")).json["tools"]
    assert [tool["slug"] for tool in found][:2] == ["weather", "news"]
    assert found[0]["match"] == "prefix"
    assert next(tool["slug"] for tool in (await world.client.get(f"{path}?q=wea")).json["tools"]) == "weather"


@pytest.mark.spec("S1-65")
async def test_a_search_for_nothing_or_for_two_things_is_refused(world):
    for query in [
        "",
        "q=",
        "q=%20%09",
        "q=a&question=b",
        "q=a&q=b",
        "question=",
        "q=a&pageSize=999",
        "q=a&pageToken=x",
        "q=%zz",
        "q=a%",
        "q=%ff",
        "q=" + "x" * 1001,
    ]:
        reply = await world.client.get("/tools/search", query=query)
        assert (reply.status, reply.json["kind"]) == (400, "VALIDATION"), query


async def test_a_question_in_plain_words_finds_the_relevant_tool(world):
    await world.with_bundle()
    await world.with_tool("forecast", description="Tell whether it will rain in a city tomorrow.")
    await world.with_tool("invoice", description="Write a bill for a customer.")
    found = (await world.client.get("/tools/search?question=will+it+rain+in+my+city%3F&pageSize=5")).json["tools"]
    assert found[0]["slug"] == "forecast"
    assert found[0]["match"] == "relevance"


@pytest.mark.spec("S1-66")
async def test_a_search_is_walked_without_losing_or_repeating_a_hit(world):
    await world.with_bundle()
    names = [f"weather-{number}" for number in range(9)]
    for name in names:
        await world.with_tool(name)
    await world.client.patch(world.tool_path("weather-3"), {"isEnabled": False})
    for size in (1, 2, 4, 9):
        assert sorted(await walk(world, f"/tools/search?q=weather&pageSize={size}")) == sorted(
            set(names) - {"weather-3"}
        )
    token = (await world.client.get("/tools/search?q=weather&pageSize=2")).json["nextPageToken"]
    assert (await world.client.get(f"/tools/search?q=other&pageSize=2&pageToken={token}")).status == 400


@pytest.mark.spec("S1-72")
async def test_what_is_switched_off_is_neither_listed_nor_found_unless_asked_for(world):
    await world.with_bundle()
    await world.with_tool("weather")
    await world.client.patch(world.tool_path("weather"), {"isEnabled": False})
    await world.with_bundle(world.other, slug="news")
    await world.with_tool("weather-news", bundle_id=world.other)
    await world.client.patch(world.bundle_path(world.other), {"isEnabled": False})
    assert await walk(world, f"/tools?bundleIDs={world.bundle},{world.other}") == []
    assert await walk(world, "/tools/search?q=weather") == []
    assert sorted(await walk(world, f"/tools?bundleIDs={world.bundle},{world.other}&includeDisabled=true")) == [
        "weather",
        "weather-news",
    ]
    assert sorted(await walk(world, "/tools/search?q=weather&includeDisabled=true")) == ["weather", "weather-news"]


@pytest.mark.spec("S1-04", "S1-07")
async def test_a_palette_finds_a_slug_invokes_it_and_switches_it(make_world):
    world = make_world(builtins={"enabled": False})
    await world.with_bundle()
    await world.with_tool("readfile")
    typed = quote("+readfile")
    [hit] = (await world.client.get(f"/tools/search?q={typed}&pageSize=1")).json["tools"]
    assert (hit["slug"], hit["match"]) == ("readfile", "prefix")
    place = f"/tools/bundles/{hit['bundleID']}/tools/{hit['slug']}/version/{hit['version']}"
    assert (await world.client.post(f"{place}/invoke", {"args": {"city": "Oslo"}})).json["value"] == {"city": "Oslo"}
    assert (await world.client.patch(place, {"isEnabled": False})).status == 200
    assert (await world.client.get(f"/tools/search?q={typed}")).json["tools"] == []


@pytest.mark.spec("S1-04")
async def test_an_unknown_slug_is_an_empty_list_and_calls_nothing(world):
    await world.with_bundle()
    await world.with_tool("weather")
    assert (await world.client.get("/tools/search?q=zzqqxx")).json == {"tools": [], "nextPageToken": None}
    assert world.calls == []


@pytest.mark.spec("S1-103")
async def test_a_tool_of_the_host_program_is_listed_beside_the_others(make_world):
    @tool
    def add_up(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

    world = make_world(add_up)
    [found] = [
        found for found in (await world.client.get("/tools/search?q=add-up")).json["tools"] if found["slug"] == "add-up"
    ]
    assert (found["type"], found["isBuiltIn"]) == ("go", False)
    assert found["source"] not in ("go", "http", "store", "")
    place = f"/tools/bundles/{found['bundleID']}/tools/add-up/version/{found['version']}"
    assert (await world.client.post(place, {"args": {"first": 1, "second": 2}})).json["value"] == 3
