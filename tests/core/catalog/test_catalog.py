"""One catalogue over many sources: any spelling finds the tool that is meant, and no other."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_tools import host_tool
from toolcrib import Kind, ToolError
from toolcrib.core.catalog import Catalog
from toolcrib.core.sources import LateSource, Rank, ToolList
from toolcrib.lib.names import function_name
from toolcrib.model.errors import cure_of


def addresses(catalog: Catalog) -> list[str]:
    return [entry.tool.address for entry in catalog.entries()]


def found(catalog: Catalog, *arguments, **more) -> str | None:
    entry = catalog.find(*arguments, **more)
    return None if entry is None else entry.tool.address


@pytest.mark.parametrize("registered", ["kb_search_all", "kb-search-all", "kb-search_all"])
@pytest.mark.parametrize(
    "spelling",
    [
        "kb_search_all",
        "kb-search-all",
        "kb_search-all",
        "host/kb_search_all",
        "host/kb-search-all@1.0.0",
        "kb_search_all@1.0.0",
    ],
)
def test_every_spelling_finds_the_tool(make_tool, registered, spelling):
    catalog = Catalog()
    catalog.add(make_tool(registered))
    assert found(catalog, spelling) == "host/kb-search-all@1.0.0"


@pytest.mark.parametrize(
    "spelling",
    ["", "x", "Kb_Search", "other/kb_search", "kb_search@2", "host/kb_search@2", "/", "@", "host/", "a/host/kb_search"],
)
def test_another_spelling_finds_nothing(make_tool, spelling):
    catalog = Catalog()
    catalog.add(make_tool("kb_search"))
    assert catalog.find(spelling) is None


def test_bundle_and_version_may_stand_beside_the_name(make_tool):
    catalog = Catalog()
    for bundle, version in (("a", "1"), ("a", "2"), ("b", "1")):
        catalog.add(make_tool("x", bundle, version))
    assert found(catalog, "x", bundle="b") == "b/x@1"
    assert found(catalog, "x", version="1") == "a/x@1"
    assert found(catalog, "x", "b", "2") is None
    # What the address says is meant; what it leaves out may be said beside it.
    assert found(catalog, "b/x", bundle="a") == "b/x@1"
    assert found(catalog, "x@1", bundle="b") == "b/x@1"


def test_a_bundle_may_be_named_like_any_folder(make_tool):
    catalog = Catalog()
    catalog.add(make_tool("x", "my tools @ home/new"))
    assert found(catalog, "my tools @ home/new/x@1.0.0") == "my tools @ home/new/x@1.0.0"


def test_of_equal_names_the_earlier_bundle_is_meant_and_in_a_bundle_the_newest(make_tool):
    catalog = Catalog()
    for bundle, version in (("a", "2"), ("b", "9"), ("a", "1")):
        catalog.add(make_tool("x", bundle, version))
    assert found(catalog, "x") == "a/x@1"
    assert found(catalog, "a/x") == "a/x@1"
    assert addresses(catalog) == ["a/x@1", "a/x@2", "b/x@9"]
    entry = catalog.find("x")
    assert catalog.same_name(entry.tool) == ["a/x@2", "b/x@9"]
    catalog.remove(entry.tool)
    assert found(catalog, "x") == "a/x@2"


def test_names_that_differ_in_the_dash_alone_are_one_name(make_tool):
    catalog = Catalog()
    catalog.add(make_tool("kb_search"))
    with pytest.raises(ToolError, match="already registered") as caught:
        catalog.add(make_tool("kb-search"))
    assert caught.value.kind is Kind.CONFLICT
    catalog.add(make_tool("kb-search", "other"))
    assert found(catalog, "kb-search") == "host/kb-search@1.0.0"
    assert catalog.find("kb-search") is catalog.find("kb_search")


@pytest.mark.parametrize("name", ["größe", "天気", "1st", "9"])
def test_a_tool_is_found_by_the_name_that_models_are_shown(make_tool, name):
    catalog = Catalog()
    catalog.add(make_tool(name))
    assert found(catalog, function_name(name)) == f"host/{name}@1.0.0"


def test_a_tool_that_is_really_called_so_comes_before_one_that_models_are_shown_so(make_tool):
    catalog = Catalog()
    catalog.add(make_tool("天気"))
    catalog.add(make_tool(function_name("天気"), "other"))
    assert catalog.find(function_name("天気")).tool.bundle == "other"
    (problem,) = catalog.problems()
    assert "look alike to models; rename one of them" in problem.message


@pytest.mark.parametrize(
    "word",
    ["my_tool", "my-tool", "host/my_tool", "host/my-tool", "host/my_tool@1.0.0", "my_tool@1.0.0", "host/*"],
)
def test_a_tool_is_switched_off_by_any_spelling(make_tool, word):
    catalog = Catalog(frozenset({word}), "disabled in toolcrib.toml")
    catalog.add(make_tool("my_tool"))
    catalog.add(make_tool("other", "elsewhere"))
    entry = catalog.find("my_tool")
    assert not entry.enabled
    assert entry.reason == f"{word!r} stands in disabled in toolcrib.toml"
    assert cure_of(entry.cure).operator == f"take {word!r} out of disabled in toolcrib.toml"
    assert catalog.find("other").enabled
    assert catalog.problems() == []


@pytest.mark.parametrize("word", ["my_tol", "host/my_tool@2", "other/my_tool", "*", "hst/*", "MY_TOOL"])
def test_a_word_that_switches_nothing_off_is_reported(make_tool, word):
    catalog = Catalog(frozenset({word}), "disabled in toolcrib.toml")
    catalog.add(make_tool("my_tool"))
    assert catalog.find("my_tool").enabled
    (problem,) = catalog.problems()
    assert problem.message.startswith(f"disabled in toolcrib.toml: {word!r} is the name of no tool; ")


def test_an_unknown_name_is_met_with_the_nearest_ones(make_tool):
    catalog = Catalog()
    for name in ("weather_now", "weather_later", "other"):
        catalog.add(make_tool(name))
    assert catalog.suggest("wether_now") == "did you mean weather_now or weather_later?"
    assert catalog.suggest("zzz") == ""


def test_tools_that_are_made_later_are_made_when_a_name_first_leads_there_and_once(make_tool):
    catalog, made = Catalog(), []
    catalog.add(make_tool("mine"))
    catalog.add(make_tool("shell", "builtin"))

    def make():
        made.append(1)
        return [ToolList(Rank.BUILTINS, [make_tool("shell", "builtin"), make_tool("fetch", "builtin")])]

    catalog.add_source(LateSource(Rank.BUILTINS, make, bundles=["builtin"]))
    assert found(catalog, "mine") == "host/mine@1.0.0"
    assert made == []
    assert found(catalog, "fetch") == "builtin/fetch@1.0.0"
    assert found(catalog, "nothing") is None
    assert addresses(catalog) == ["host/mine@1.0.0", "builtin/shell@1.0.0", "builtin/fetch@1.0.0"]
    assert made == [1]
    assert catalog.problems() == []


def test_tools_that_could_not_be_made_are_not_simply_gone(make_tool):
    catalog, is_broken = Catalog(), [True]

    def make():
        if is_broken:
            raise ToolError(Kind.PERMANENT, "no workspace")
        return [ToolList(Rank.BUILTINS, [make_tool("fetch", "builtin")])]

    catalog.add_source(LateSource(Rank.BUILTINS, make))
    for _ in range(2):
        with pytest.raises(ToolError, match="no workspace"):
            catalog.find("fetch")
    is_broken.clear()
    assert found(catalog, "fetch") == "builtin/fetch@1.0.0"


class Counted(dict):
    """A dictionary that counts how often it is walked through."""

    walks = 0

    def values(self):
        self.walks += 1
        return super().values()

    def __iter__(self):
        self.walks += 1
        return super().__iter__()

    items = values


def test_finding_one_of_a_thousand_walks_through_none(make_tool, monkeypatch):
    catalog = Catalog()
    for number in range(1_000):
        catalog.add(make_tool(f"tool_{number}"))
    assert found(catalog, "tool_0")
    index = catalog.host.index
    counted = {part: Counted(getattr(index, part)) for part in ("names", "slugs")}
    for part, values in counted.items():
        monkeypatch.setattr(index, part, values)
    for spelling in ("tool_{}", "tool-{}", "host/tool_{}", "host/tool-{}@1.0.0", "tool_{}@1.0.0"):
        for number in (0, 500, 999):
            assert found(catalog, spelling.format(number)) == f"host/tool-{number}@1.0.0", spelling
        assert sum(part.walks for part in counted.values()) == 0, spelling
    assert max(len(places) for places in index.slugs.values()) == 1


def test_threads_find_everything_while_others_add(make_tool):
    catalog = Catalog()
    tools = [make_tool(f"tool_{number}") for number in range(300)]
    catalog.add(tools[0])
    added, lost = [tools[0]], []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def look():
        while len(added) < len(tools):
            for tool in (added[0], added[-1]):
                if catalog.find(tool.name) is None:
                    lost.append(tool.name)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    try:
        for looker in lookers:
            looker.start()
        for tool in tools[1:]:
            catalog.add(tool)
            added.append(tool)
    finally:
        sys.setswitchinterval(before)
        for looker in lookers:
            looker.join(20)
    assert lost == []
    assert len(addresses(catalog)) == len(tools)


NAMES = st.sampled_from(["a", "a_b", "a-b", "b", "ab"])
KEPT = st.tuples(NAMES, st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]))


@given(st.lists(KEPT, max_size=12), st.lists(st.integers(0, 11), max_size=4))
def test_an_address_always_means_exactly_one_tool(kept, removed):
    catalog, there = Catalog(), {}
    for name, bundle, version in kept:
        tool = host_tool(name, bundle=bundle, version=version)
        if tool.address in there:
            with pytest.raises(ToolError):
                catalog.add(tool)
        else:
            catalog.add(tool)
            there[tool.address] = tool
    for place in removed:
        if place < len(kept) and there:
            address = sorted(there)[place % len(there)]
            catalog.remove(there.pop(address))
    assert sorted(addresses(catalog)) == sorted(there)
    for address, tool in there.items():
        assert catalog.find(address).tool is tool
        assert catalog.find(tool.name).tool.slug == tool.slug
        assert len(catalog.same_name(tool)) == sum(other.slug == tool.slug for other in there.values()) - 1
