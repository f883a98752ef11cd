"""Look-ups for calls: which tool a name means, and whether it can be used in this process."""

import pytest

from toolcrib import Kind, ToolError
from toolcrib.lib.names import function_name
from toolcrib.model.errors import cure_of

KEY = "github.com/acme/agent/tools.Weather"


@pytest.mark.spec("S1-47")
def test_of_several_versions_the_newest_made_is_meant_under_any_name(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    for version in ("v2", "v10", "v1"):
        bundles.put_tool(id_, "weather", version, tool_document())
        shop.clock.pass_by(1)
    assert bundles.find("weather", None, None).tool.version == "v1"
    assert bundles.find("weather", "acme", None).tool.version == "v1"
    assert bundles.find("weather", id_, "v10").tool.version == "v10"
    assert bundles.find("weather", None, "v3") is None
    bundles.delete_tool(id_, "weather", "v1")
    assert bundles.find("weather", None, None).tool.version == "v10"


def test_of_several_bundles_the_first_by_slug_is_meant_and_one_that_is_off_the_last(
    bundles, put_bundle, tool_document, shop
):
    ids = {}
    for slug in ("b", "a", "c"):
        ids[slug] = put_bundle(bundles, slug)
        bundles.put_tool(ids[slug], "weather", "v1", tool_document())
        shop.clock.pass_by(1)
    assert bundles.find("weather", None, None).tool.bundle == "a"
    bundles.switch_bundle(ids["a"], False)
    assert bundles.find("weather", None, None).tool.bundle == "b"
    # A tool that is off keeps its name within its bundle.
    bundles.switch_tool(ids["b"], "weather", "v1", False)
    entry = bundles.find("weather", None, None)
    assert (entry.tool.bundle, entry.enabled) == ("b", False)
    bundles.switch_bundle(ids["b"], False)
    bundles.switch_bundle(ids["c"], False)
    assert not bundles.find("weather", None, None).enabled


def test_a_slug_that_two_bundles_have_means_the_earlier_one_and_addresses_stay_unique(
    bundles, put_bundle, bundle_document, tool_document, shop
):
    first = put_bundle(bundles, "acme")
    shop.clock.pass_by(1)
    second = put_bundle(bundles, "acme")
    for id_ in (second, first):
        bundles.put_tool(id_, "weather", "v1", tool_document(displayName=id_))
    assert bundles.find("weather", "acme", None).tool.display_name == first
    assert bundles.find("weather", second, None).tool.display_name == second
    assert bundles.find("weather", "acme", None).tool.address == "acme/weather@v1"
    assert bundles.entry(second, "weather", "v1").tool.address == f"{second}/weather@v1"
    bundles.put_bundle(first, bundle_document("other"))
    assert bundles.entry(second, "weather", "v1").tool.address == "acme/weather@v1"
    assert bundles.find("weather", "acme", None).tool.display_name == second


def test_the_same_object_is_handed_out_until_the_tool_is_another(shop, put_bundle, tool_document, bundle_document):
    functions = {KEY: lambda context, arguments: 1}
    bundles = shop.open(functions=functions)
    id_ = put_bundle(bundles)
    kept = bundles.put_tool(id_, "weather", "v1", tool_document(KEY))
    found = [
        bundles.entry(id_, "weather", "v1").tool,
        bundles.find("weather", None, None).tool,
        bundles.tool(id_, "weather", "v1").tool,
        bundles.list_tools().items[0].tool,
        bundles.switch_tool(id_, "weather", "v1", False).tool,
        bundles.switch_tool(id_, "weather", "v1", True).tool,
        bundles.entry(id_, "weather", "v1").tool,
    ]
    assert all(tool is kept.tool for tool in found)
    functions[KEY] = lambda context, arguments: 2
    assert bundles.entry(id_, "weather", "v1").tool is not kept.tool
    assert bundles.entry(id_, "weather", "v1").tool.run.call(None, {}) == 2


@pytest.mark.spec("S1-14", "S1-26")
def test_a_tool_waits_for_its_function_and_its_document_stays_as_it_is(shop, put_bundle, tool_document):
    functions = {}
    bundles = shop.open(functions=functions)
    id_ = put_bundle(bundles)
    kept = bundles.put_tool(id_, "weather", "v1", tool_document(KEY))
    before = shop.read(id_, "weather@v1.json")
    reason = f"no function is registered under {KEY!r} in this process"
    assert (kept.enabled, kept.reason, kept.tool.run.key) == (True, reason, KEY)
    entry = bundles.find("weather", None, None)
    assert (entry.enabled, entry.reason) == (False, reason)
    assert KEY in cure_of(entry.cure).operator
    assert bundles.list_tools().items == ()
    assert bundles.list_tools(include_disabled=True).items[0].reason == reason

    async def weather(context, arguments):
        return arguments

    functions[KEY] = weather
    entry = bundles.entry(id_, "weather", "v1")
    assert entry.enabled
    run = entry.tool.run
    assert (run.call, run.is_async, run.takes_whole) == (weather, True, True)
    assert bundles.find("weather", None, None).tool is entry.tool
    assert [kept.slug for kept in bundles.list_tools().items] == ["weather"]
    del functions[KEY]
    assert bundles.entry(id_, "weather", "v1").reason == reason
    assert not bundles.find("weather", None, None).enabled
    assert shop.read(id_, "weather@v1.json") == before


def test_an_object_that_is_called_may_be_async_too(shop, put_bundle, tool_document):
    class Weather:
        async def __call__(self, context, arguments):
            return 1

    bundles = shop.open(functions={KEY: Weather()})
    bundles.put_tool(id_ := put_bundle(bundles), "weather", "v1", tool_document(KEY))
    assert bundles.entry(id_, "weather", "v1").tool.run.is_async


@pytest.mark.spec("S1-14")
def test_a_tool_waits_for_its_model(shop, put_bundle, tool_document):
    bundles = shop.open(models=frozenset({"small"}))
    id_ = put_bundle(bundles)
    impl = tool_document()["impl"]
    bundles.put_tool(id_, "a", "v1", tool_document(impl=impl | {"model": "large"}))
    before = shop.read(id_, "a@v1.json")
    bundles.put_tool(id_, "b", "v1", tool_document(impl=impl | {"model": "small"}))
    assert bundles.entry(id_, "a", "v1").reason == "the model 'large' is not available"
    assert [kept.slug for kept in bundles.list_tools().items] == ["b"]
    assert shop.open().entry(id_, "a", "v1").enabled
    assert shop.open(models=frozenset({"large"})).entry(id_, "a", "v1").enabled
    assert shop.read(id_, "a@v1.json") == before


def test_a_name_that_models_are_shown_leads_to_its_tool(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    for slug in ("größe", "1-up", "weather"):
        bundles.put_tool(id_, slug, "v1", tool_document())
    for slug in ("größe", "1-up"):
        assert bundles.find(function_name(slug), None, None).tool.slug == slug
    assert bundles.find("_weather_00000000", None, None) is None


def test_a_name_that_nothing_is_called_leads_nowhere(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    for name in ("", "x" * 10_000, "\0", "../x", "a/b", "%", "'; drop table rows", "*", "\ud800"):
        assert bundles.find(name, None, None) is None
        assert bundles.find("weather", name, None) is None
        assert bundles.find("weather", None, name) is None
        assert bundles.entry(name, "weather", "v1") is None
        assert bundles.entry(id_, name, "v1") is None
        assert bundles.entry(id_, "weather", name) is None


def test_a_broken_document_keeps_its_name(shop, put_bundle, tool_document):
    bundles = shop.open()
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    shop.store.create(f"bundles/{id_}/weather@v2.json", b"{ half")
    fresh = shop.open()
    for door in (lambda: fresh.find("weather", None, None), lambda: fresh.entry(id_, "weather", "v2")):
        with pytest.raises(ToolError, match="its file is broken") as caught:
            door()
        assert caught.value.kind is Kind.DISABLED
    assert fresh.find("weather", None, "v1").enabled
    assert fresh.entry(id_, "weather", "v1").enabled


@pytest.mark.spec("S1-81")
def test_how_often_a_tool_was_called_is_shown_and_changes_nothing_else(shop, put_bundle, tool_document):
    from toolcrib.infra.call_counts import Count

    counts = {}
    bundles = shop.open(metrics=lambda: counts)
    id_ = put_bundle(bundles)
    before = bundles.put_tool(id_, "weather", "v1", tool_document())
    assert (before.calls, before.last_called_at) == (0, "")
    counts[before.id] = Count(calls=3, last_called_at="2027-01-01T00:00:00.000Z")
    for kept in (
        bundles.tool(id_, "weather", "v1"),
        bundles.list_tools().items[0],
        bundles.search("wea").items[0].kept,
    ):
        assert (kept.calls, kept.last_called_at) == (3, "2027-01-01T00:00:00.000Z")
        assert (kept.modified_at, kept.stamp) == (before.modified_at, before.stamp)


@pytest.mark.spec("S1-71")
def test_hits_come_in_their_tiers_and_then_the_newest_first(bundles, put_bundle, tool_document, shop):
    id_ = put_bundle(bundles)
    quiet = {"displayName": "Other", "description": "Other"}
    for slug, more in (
        ("forecast", quiet | {"description": "Says the weather"}),
        ("weather-old", quiet),
        ("weather-new", quiet),
        ("wether", quiet),
    ):
        bundles.put_tool(id_, slug, "v1", tool_document(**more))
        shop.clock.pass_by(1)
    found = [(each.kept.slug, each.tier) for each in bundles.search("weather").items]
    assert found[:3] == [("weather-new", "prefix"), ("weather-old", "prefix"), ("forecast", "word")]
    assert found[3:] == [("wether", "fuzzy")]


def test_tools_that_answer_the_text_as_a_question_follow_those_that_match_it(bundles, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    for slug, description in (
        ("refund", "Refund a customer."),
        ("reimburse", "Pay for a refund, in money."),
        ("money-back", "Says the rules."),
        ("cash", "Counts it."),
        ("exchange", "Changes a currency."),
        ("time", "Tells the time."),
    ):
        bundles.put_tool(id_, slug, "v1", tool_document(displayName=slug, description=description))

    def hits(page):
        return [(each.kept.slug, str(each.tier)) for each in page.items]

    assert dict(hits(bundles.search("give money back")))["refund"] == "relevance"
    everything = hits(bundles.search("money"))
    assert [tier for _, tier in everything] == ["prefix", "word", "relevance", "relevance"]
    assert [slug for slug, _ in everything[:2]] == ["money-back", "reimburse"]
    first = bundles.search("money", page_size=3)
    bundles.put_tool(id_, "money", "v1", tool_document(displayName="money"))
    second = bundles.search("money", page_size=3, page_token=first.next_token)
    assert hits(first) + hits(second) == everything, "the token continues the second part, where it was"
    assert not second.next_token
    tiers = [tier for _, tier in hits(bundles.search("money", page_size=3))]
    assert tiers == ["prefix", "prefix", "word"], "a full page of matches is followed by nothing else"
