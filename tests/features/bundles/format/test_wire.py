"""Tools as clients read them, of every source."""

from pathlib import Path

import pytest

from toolcrib import Bundle, Tool
from toolcrib.features.bundles.definition import found_to_wire, tool_to_wire
from toolcrib.features.bundles.format import read_stored_tool, read_tool
from toolcrib.lib.document_format import write_tool
from toolcrib.lib.names import stable_id
from toolcrib.model.bundle import Found, Kept, Owner
from toolcrib.model.tool import Chained, Function, Script

TOOL_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af103"
STATE = {
    "isEnabled",
    "isBuiltIn",
    "effectiveEnabled",
    "disabledReason",
    "source",
    "createdAt",
    "modifiedAt",
    "toggledAt",
    "callCount",
    "lastCalledAt",
    "warnings",
}


@pytest.fixture
def stored(bundle_id) -> Bundle:
    return Bundle(id=bundle_id, slug="reports")


@pytest.fixture
def kept(read, stored):
    """A tool of the store, kept with these facts."""

    def make(keys=None, **facts) -> Kept:
        document = read(toolID=TOOL_ID, **keys or {}).document
        reading = read_stored_tool(write_tool(document), bundle=stored, place="x.json")
        known = {"id": TOOL_ID, "bundle": stored, "slug": "weather", "version": "v2", "tool": reading.tool}
        return Kept(**known | {"document": reading.document, "warnings": reading.warnings} | facts)

    return make


def foreign(run, *, owner=Owner.FILES, **facts) -> Kept:
    """A tool that the store does not keep."""
    bundle = Bundle(id=stable_id("bundle", "tools"), slug="tools", owner=owner)
    tool = Tool(**{"name": "kb_search", "description": "Search.", "parameters": {"type": "object"}, "run": run} | facts)
    return Kept(id=stable_id("tool", tool.address), bundle=bundle, slug=tool.slug, version=tool.version, tool=tool)


def a_chain(kind: str) -> Chained:
    return Chained(kind=kind, tool_type="http", executor="http_client", folder=Path())


def nothing() -> None:
    """Do nothing."""


@pytest.mark.spec("S1-19")
def test_a_client_reads_every_key_that_the_author_wrote(kept):
    keys = {"tags": ["a"], "preProcessors": ["trim"], "llmCallable": True, "schemaVersion": "xyz", "isBuiltIn": False}
    tool = kept(keys)
    wire = tool_to_wire(tool)
    assert tool.document.items() <= wire.items()
    assert set(wire) - set(tool.document) == (STATE | {"bundleSlug"}) - {"isEnabled", "isBuiltIn"}
    assert wire["schemaVersion"] == "xyz"
    assert wire["source"] == "store"
    assert len(wire["warnings"]) == 3


def test_a_client_reads_the_state_of_now_and_not_that_of_the_file(kept):
    wire = tool_to_wire(
        kept(
            enabled=False,
            reason="it is switched off",
            created_at="2024-05-14T13:44:00.000Z",
            calls=3,
            last_called_at="2024-05-15T13:44:00.000Z",
        )
    )
    assert {name: wire[name] for name in STATE - {"warnings"}} == {
        "isEnabled": False,
        "isBuiltIn": False,
        "effectiveEnabled": False,
        "disabledReason": "it is switched off",
        "source": "store",
        "createdAt": "2024-05-14T13:44:00.000Z",
        "modifiedAt": None,
        "toggledAt": None,
        "callCount": 3,
        "lastCalledAt": "2024-05-15T13:44:00.000Z",
    }


def test_what_a_client_read_can_be_written_again(kept, bundle_id):
    found = Found(kept=kept({"tags": ["a"], "unknown": 1, "isBuiltIn": False}), tier="prefix", score=2.5)
    for wire in (tool_to_wire(found.kept), found_to_wire(found)):
        reading = read_tool(wire, bundle_id=bundle_id, slug="weather", version="v2")
        assert reading.document == found.kept.document
        assert reading.warnings == ("unknown: is kept and not read",)


def test_a_search_says_why_it_found_a_tool(kept):
    tool = kept()
    assert found_to_wire(Found(kept=tool, tier="fuzzy", score=0.5)) == {
        **tool_to_wire(tool),
        "match": "fuzzy",
        "score": 0.5,
    }


def test_what_the_store_notes_for_itself_is_no_clients_business(kept):
    tool = kept()
    noted = Kept(
        id=TOOL_ID, bundle=tool.bundle, slug="weather", version="v2", document={**tool.document, "digest": "x"}
    )
    assert "digest" not in tool_to_wire(noted)


def test_an_absent_description_is_empty_to_a_client(kept):
    wire = tool_to_wire(kept({"description": ...}))
    assert (wire["description"], wire["tags"]) == ("", [])


@pytest.mark.spec("S1-103")
def test_a_tool_of_another_owner_has_everything_that_a_stored_one_has():
    tool = foreign(
        Script(path=Path("a.py"), code=b"", language="python", entry="main"),
        source_type="folder",
        output_schema={"type": "string"},
        tags=("a",),
    )
    assert tool_to_wire(tool) == {
        "schemaVersion": "toolcrib-1",
        "bundleID": tool.bundle.id,
        "bundleSlug": "tools",
        "toolID": tool.id,
        "slug": "kb-search",
        "version": "1.0.0",
        "displayName": "kb_search",
        "description": "Search.",
        "type": "go",
        "argSchema": {"type": "object"},
        "outputSchema": {"type": "string"},
        "impl": {"kind": "script"},
        "tags": ["a"],
        "isEnabled": True,
        "isBuiltIn": False,
        "effectiveEnabled": True,
        "disabledReason": "",
        "source": "folder",
        "createdAt": None,
        "modifiedAt": None,
        "toggledAt": None,
        "callCount": 0,
        "lastCalledAt": None,
        "warnings": [],
    }


@pytest.mark.spec("S1-103")
@pytest.mark.parametrize(
    ("run", "kind"),
    [(a_chain("http"), "http"), (a_chain("subprocess"), "go"), (Function(call=nothing, is_async=False), "go")],
)
def test_a_tool_that_makes_requests_is_of_type_http_and_any_other_of_type_go(run, kind):
    assert tool_to_wire(foreign(run))["type"] == kind


@pytest.mark.spec("S1-103")
def test_a_function_that_asks_leave_to_make_requests_is_of_type_http():
    run = Function(call=nothing, is_async=False)
    assert tool_to_wire(foreign(run, owner=Owner.BUILTIN, requires=frozenset({"net.http"})))["type"] == "http"


@pytest.mark.spec("S1-103")
@pytest.mark.parametrize(
    ("owner", "source_type", "source", "built_in"),
    [
        (Owner.FILES, "folder", "folder", False),
        (Owner.FILES, "", "files", False),
        (Owner.HOST, "BaseTool", "host", False),
        (Owner.BUILTIN, "", "builtin", True),
    ],
)
def test_the_source_says_who_keeps_a_tool_or_what_kind_of_file_it_is(owner, source_type, source, built_in):
    run = Function(call=nothing, is_async=False)
    wire = tool_to_wire(foreign(run, owner=owner, source_type=source_type))
    assert (wire["source"], wire["isBuiltIn"]) == (source, built_in)


def test_of_a_broken_file_what_can_be_known_is_told(stored):
    broken = Kept(id=TOOL_ID, bundle=stored, slug="weather", version="v2", reason="x.json:1: is not JSON")
    wire = tool_to_wire(broken)
    assert set(wire) == STATE | {"schemaVersion", "bundleID", "bundleSlug", "toolID", "slug", "version"}
    assert (wire["effectiveEnabled"], wire["disabledReason"]) == (False, "x.json:1: is not JSON")
    assert (wire["toolID"], wire["slug"], wire["version"]) == (TOOL_ID, "weather", "v2")
