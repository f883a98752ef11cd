"""Calls find the tools of the host program without the catalog; a change of this process counts for the very next call."""

from dataclasses import replace
from time import monotonic

import pytest

from toolcrib import Call, Crib, Kind, Result, Session, Tool, tool, tool_of
from toolcrib.core.sources import ListedSource, ToolList, seen_through
from toolcrib.features.access.view import make_view
from toolcrib.model.tool import Entry


@tool
def hello() -> str:
    """Greet."""
    return "hello"


class Undeclared(ListedSource):
    """A source whose bundles are not known beforehand, and whose tool is looked for at every call."""

    rank = -1
    settled = False
    tool: Tool | None = None

    def entries(self, session: Session | None = None) -> list[Entry]:
        return [] if self.tool is None else [Entry(tool=self.tool)]

    def generation(self) -> object:
        return self.tool


def kind_of(result: Result) -> Kind | None:
    return None if result.error is None else result.error.kind


@pytest.fixture
async def crib(tmp_path, monkeypatch):
    # So long that only what is changed here, and not the time, can make a call ask the catalog again.
    monkeypatch.setattr("toolcrib.core.catalog.KNOWN_SECONDS", 600.0)
    async with Crib(tmp_path, tools=[hello]) as crib:
        # Found once, it is known to the calls that follow.
        for _ in range(3):
            assert (await crib.call("hello")).value == "hello"
        yield crib


async def test_a_tool_that_is_disabled_here_is_refused_in_the_next_call(crib):
    for _ in range(3):
        crib.switch_tool("hello", on=False)
        assert kind_of(await crib.call("hello")) is Kind.DISABLED
        crib.switch_tool("hello", on=True)
        assert (await crib.call("hello")).value == "hello"


@pytest.fixture
async def address(crib):
    """The tool by the id of its bundle and its version, as an invoke over HTTP names it; known to the calls that follow."""
    kept = next(kept for kept in crib.bundles.list_tools().items if kept.slug == "hello")
    address = Call(name="hello", bundle=kept.bundle.id, version=kept.version)
    for _ in range(3):
        assert (await crib.call(address)).value == "hello"
    return address


async def test_a_tool_that_was_called_by_its_address_is_refused_in_the_call_after_it_was_disabled(crib, address):
    for _ in range(3):
        crib.switch_tool("hello", on=False)
        assert kind_of(await crib.call(address)) is Kind.DISABLED
        crib.switch_tool("hello", on=True)
        assert (await crib.call(address)).value == "hello"
    with seen_through(make_view(tools=frozenset({"other"}))):
        assert kind_of(await crib.call(address)) is Kind.NOT_FOUND
    assert kind_of(await crib.call(replace(address, version="9.9.9"))) is Kind.NOT_FOUND


async def test_a_tool_that_was_called_by_its_address_and_is_removed_is_not_found_a_moment_later(crib, address):
    crib._catalog.remove(crib._catalog.find("hello").tool)
    deadline = monotonic() + 30
    while (kind := kind_of(await crib.call(address))) is None and monotonic() < deadline:
        pass
    assert kind is Kind.NOT_FOUND


async def test_a_source_in_front_may_come_to_have_what_was_called_by_its_address(crib, address):
    """A source that does not name its bundles may have a tool of any at the next call, so it is asked each time."""
    in_front = Undeclared()
    crib._catalog.add_source(in_front)
    assert (await crib.call(address)).value == "hello"

    @tool(name="hello", version=address.version)
    def other() -> str:
        """Greet otherwise."""
        return "good day"

    in_front.tool = replace(tool_of(other), bundle=address.bundle)
    assert (await crib.call(address)).value == "good day"


async def test_a_limited_caller_does_not_find_what_an_unlimited_one_called_before(crib):
    with seen_through(make_view(tools=frozenset({"other"}))):
        assert kind_of(await crib.call("hello")) is Kind.NOT_FOUND
        assert kind_of(await crib.call(Call(name="hello"))) is Kind.NOT_FOUND
    assert (await crib.call(Call(name="hello"))).value == "hello"


async def test_a_call_of_another_version_or_bundle_is_not_the_known_tool(crib):
    assert kind_of(await crib.call(Call(name="hello", version="9.9.9"))) is Kind.NOT_FOUND
    assert kind_of(await crib.call(Call(name="hello", bundle="other"))) is Kind.NOT_FOUND


async def test_a_tool_that_is_removed_and_one_that_takes_its_name_count_at_once(crib):
    catalog = crib._catalog
    known = catalog.find("hello").tool
    catalog.remove(known)
    assert kind_of(await crib.call("hello")) is Kind.NOT_FOUND
    catalog.add(known)
    assert (await crib.call("hello")).value == "hello"

    @tool(name="hello", version="3.0.0")
    def other() -> str:
        """Greet otherwise."""
        return "good day"

    catalog.add_source(ToolList(-1, [tool_of(other)]))
    assert (await crib.call("hello")).value == "good day"


async def test_a_switch_that_is_moved_elsewhere_counts_a_moment_later(tmp_path):
    async with Crib(tmp_path, tools=[hello]) as crib, Crib(tmp_path, tools=[hello]) as elsewhere:
        assert (await crib.call("hello")).value == "hello"
        elsewhere.switch_tool("hello", on=False)
        deadline = monotonic() + 30
        while (kind := kind_of(await crib.call("hello"))) is None and monotonic() < deadline:
            pass
        assert kind is Kind.DISABLED
