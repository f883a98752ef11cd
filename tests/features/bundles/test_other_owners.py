"""Tools that are written down elsewhere: shown like all others, read only, and switched here."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.stored_documents import etag_of
from toolcrib.lib.names import is_uuid7, stable_id
from toolcrib.model.tool import Entry

BUILTIN = stable_id("bundle", "builtin")
HOST = stable_id("bundle", "")
FILES = stable_id("bundle", "tools")


@pytest.fixture
def tools(make_tool):
    return [make_tool("read_file"), make_tool("shell"), make_tool("greet", ""), make_tool("sum", "tools", "2.0.0")]


@pytest.fixture
def shared(shop, tools):
    """A catalogue beside other sources, of which one tool is switched off by the settings."""
    off = Entry(tool=tools[3], enabled=False, reason="'sum' stands in disabled", cure="take it out")
    return shop.open(entries=lambda: [*(Entry(tool=tool) for tool in tools[:3]), off])


def refused(kind, door, *arguments, **more):
    with pytest.raises(ToolError) as caught:
        door(*arguments, **more)
    assert caught.value.kind is kind, caught.value
    return caught.value


@pytest.mark.spec("S1-06", "S1-85", "S1-103")
def test_they_are_listed_with_ids_that_stay(shared, tools):
    found = {kept.slug: kept for kept in shared.list_tools(include_disabled=True).items}
    assert {kept.bundle.slug: kept.bundle.owner for kept in found.values()} == {
        "builtin": "builtin",
        "host": "host",
        "tools": "files",
    }
    assert found["read-file"].bundle.built_in
    assert found["read-file"].tool is tools[0]
    assert found["sum"].reason == "'sum' stands in disabled"
    for kept in found.values():
        assert is_uuid7(kept.id)
        assert is_uuid7(kept.bundle.id)
        assert kept.id == stable_id("tool", kept.tool.address)
        assert shared.tool(kept.bundle.id, kept.slug, kept.version) == kept
        assert shared.entry(kept.bundle.id, kept.slug, kept.version).tool is kept.tool
    assert {kept.slug for kept in shared.list_tools().items} == {"read-file", "shell", "greet"}
    assert shared.search("read").items[0].kept.tool is tools[0]
    assert shared.find("read_file", None, None) is None


@pytest.mark.spec("S1-06", "S1-68", "S1-103")
def test_what_they_are_cannot_be_changed_here(shared, bundle_document, tool_document, shop):
    for id_, slug, version in ((BUILTIN, "read-file", "1.0.0"), (FILES, "sum", "2.0.0"), (HOST, "greet", "1.0.0")):
        before = shared.tool(id_, slug, version)
        for door, *arguments in (
            (shared.put_bundle, id_, bundle_document()),
            (shared.delete_bundle, id_),
            (shared.put_tool, id_, "new", "v1", tool_document()),
            (shared.put_tool, id_, slug, version, tool_document()),
            (shared.delete_tool, id_, slug, version),
        ):
            assert "it can only be enabled or disabled" in refused(Kind.BLOCKED, door, *arguments).message
        assert shared.tool(id_, slug, version) == before
    assert shop.store.keys() == []


@pytest.mark.spec("S1-06", "S1-69")
def test_a_switch_of_theirs_survives_and_every_process_obeys_it(shop, shared, tools, make_tool):
    assert shared.switched_off(tools[0]) == ""
    off = shared.switch_tool(BUILTIN, "read-file", "1.0.0", False)
    assert (off.enabled, off.reason) == (False, "its isEnabled is false")
    assert off.toggled_at
    assert shared.switched_off(tools[0]) == "its isEnabled is false"
    assert shared.switched_off(tools[1]) == ""
    assert not shared.entry(BUILTIN, "read-file", "1.0.0").enabled
    assert [kept.slug for kept in shared.list_tools(bundle_ids=[BUILTIN]).items] == ["shell"]
    assert shared.search("read").items == ()
    assert shared.search("read", include_disabled=True).items[0].kept.reason == "its isEnabled is false"
    later = shop.open(entries=lambda: [Entry(tool=make_tool("read_file"))])
    assert not later.tool(BUILTIN, "read-file", "1.0.0").enabled
    assert not later.entry(BUILTIN, "read-file", "1.0.0").enabled
    assert later.switched_off(tools[0])
    on = shared.switch_tool(BUILTIN, "read-file", "1.0.0", True)
    assert on.usable
    assert shared.entry(BUILTIN, "read-file", "1.0.0").enabled


@pytest.mark.spec("S1-69", "S1-75", "S1-03")
def test_a_tool_of_a_bundle_that_is_switched_off_cannot_be_switched(shared, tools):
    off = shared.switch_bundle(BUILTIN, False)
    assert not off.enabled
    assert off.toggled_at
    for slug in ("read-file", "shell"):
        assert "disabled" in refused(Kind.DISABLED, shared.switch_tool, BUILTIN, slug, "1.0.0", False).message
    assert shared.switched_off(tools[1]) == "its bundle is disabled"
    kept = shared.tool(BUILTIN, "shell", "1.0.0")
    assert (kept.enabled, kept.reason) == (True, "its bundle is disabled")
    assert shared.list_tools(bundle_ids=[BUILTIN]).items == ()
    assert BUILTIN not in {bundle.id for bundle in shared.list_bundles().items}
    assert BUILTIN in {bundle.id for bundle in shared.list_bundles(include_disabled=True).items}
    assert shared.switch_bundle(BUILTIN, True).enabled
    assert shared.switch_tool(BUILTIN, "shell", "1.0.0", False).reason == "its isEnabled is false"


def test_a_switch_is_only_moved_by_who_knows_how_it_stands(shared):
    old = etag_of(shared.tool(BUILTIN, "shell", "1.0.0"))
    shared.switch_tool(BUILTIN, "shell", "1.0.0", False, if_match=old)
    assert (
        refused(Kind.CONFLICT, shared.switch_tool, BUILTIN, "shell", "1.0.0", True, if_match=old).details["etag"] != old
    )
    bundle = etag_of(shared.bundle(BUILTIN))
    shared.switch_bundle(BUILTIN, False, if_match=bundle)
    refused(Kind.CONFLICT, shared.switch_bundle, BUILTIN, True, if_match=bundle)
    refused(Kind.NOT_FOUND, shared.switch_tool, BUILTIN, "nobody", "1.0.0", True)
    refused(Kind.NOT_FOUND, shared.tool, BUILTIN, "shell", "2.0.0")


def test_broken_switches_switch_everything_off_and_are_left_alone(shop, shared, tools):
    shop.store.create(f"switches/{BUILTIN}.json", b"{ half")
    fresh = shop.open(entries=lambda: [Entry(tool=tool) for tool in tools])
    assert "switches" in fresh.switched_off(tools[0])
    assert not fresh.bundle(BUILTIN).enabled
    assert not fresh.entry(BUILTIN, "shell", "1.0.0").enabled
    assert fresh.switched_off(tools[2]) == ""
    refused(Kind.CONFLICT, fresh.switch_bundle, BUILTIN, True)
    assert shop.store.get(f"switches/{BUILTIN}.json") == b"{ half"
    assert any("switches" in problem.message for problem in fresh.problems())


def test_switches_that_say_something_else_count_as_broken(shop, make_tool):
    strange = (b"[]", b'{"isEnabled": 1}', b'{"tools": []}', b'{"tools": {"a@1": false}}', b'{"toggledAt": 7}', b"\xff")
    for document in strange:
        shop.store.replace(f"switches/{BUILTIN}.json", document)
        assert shop.open().switched_off(make_tool("shell"))
    for document in (b"{}", b'// by hand\n{"tools": {}}'):
        shop.store.replace(f"switches/{BUILTIN}.json", document)
        assert shop.open().switched_off(make_tool("shell")) == ""
    shop.store.create("switches/readme.txt", b"{ half")
    assert shop.open().problems() == []


def test_a_tool_that_comes_or_goes_is_noticed(shop, make_tool, eventually):
    tools = [make_tool("one")]
    bundles = shop.open(entries=lambda: [Entry(tool=tool) for tool in tools])
    assert [kept.slug for kept in bundles.list_tools().items] == ["one"]
    tools.append(make_tool("two", "tools"))
    assert eventually(lambda: [kept.slug for kept in bundles.list_tools().items if kept.slug == "two"])
    del tools[0]
    assert eventually(lambda: [kept.slug for kept in bundles.list_tools().items] == ["two"])
    assert bundles.entry(BUILTIN, "one", "1.0.0") is None


def test_a_bundle_of_the_store_is_not_called_by_a_name_that_others_have(shop, make_tool, put_bundle, tool_document):
    before = shop.open()
    id_ = put_bundle(before, "tools")
    before.put_tool(id_, "weather", "v1", tool_document())
    # Only now a folder of that name is made.
    bundles = shop.open(entries=lambda: [Entry(tool=make_tool("weather", "tools", "v1"))])
    assert bundles.find("weather", None, None).tool.address == f"{id_}/weather@v1"
    assert len({kept.tool.address for kept in bundles.list_tools().items}) == 2


def test_the_sources_may_ask_back_while_they_are_asked(shop, make_tool):
    tool = make_tool("shell")

    def entries():
        return [Entry(tool=tool, enabled=not bundles.switched_off(tool), reason="off")]

    bundles = shop.open(entries=entries)
    bundles.switch_tool(BUILTIN, "shell", "1.0.0", False)
    assert not bundles.entry(BUILTIN, "shell", "1.0.0").enabled
    assert bundles.switch_tool(BUILTIN, "shell", "1.0.0", True).usable


def test_a_caller_that_comes_while_they_are_first_asked_waits_for_the_answer(shop, tools):
    asked, go_on = threading.Event(), threading.Event()

    def entries():
        asked.set()
        assert go_on.wait(25)
        return [Entry(tool=tool) for tool in tools]

    bundles = shop.open(entries=entries)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(bundles.list_tools)
        assert asked.wait(25)
        second = threads.submit(bundles.list_tools)
        go_on.set()
        assert len(first.result(25).items) == len(second.result(25).items) == len(tools)
