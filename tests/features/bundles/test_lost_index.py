"""An index may be lost at any time: calls go on as if it were there, lists wait until it is."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.features.bundles.conftest import Shop

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.index_rows import light_row, row_of
from toolcrib.infra.search.index import Index
from toolcrib.lib.names import function_name, new_id

MANY = 120
DOCUMENT = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Gizmo",
    "type": "http",
    "isEnabled": True,
    "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://api.example.com/?q=${city}"},
}


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """A folder with a store and its index, and the id of the bundle in it with more tools than are read while a call waits."""
    folder = tmp_path_factory.mktemp("stock")
    shop, id_ = Shop("sqlite", folder / "store"), new_id()
    bundles = shop.open()
    bundles.put_bundle(id_, {"slug": "acme", "displayName": "Acme", "isEnabled": True, "description": ""})
    for number in range(MANY):
        document = {**DOCUMENT, "description": f"gizmo {number}"}
        bundles.put_tool(id_, f"tool-{number}", "v1", document)
    bundles.close()
    return folder, id_


@pytest.fixture
def stocked(sqlite_shop, stock):
    """The id of that bundle, in the store of the test."""
    folder, id_ = stock
    shutil.copytree(folder, sqlite_shop.root.parent, dirs_exist_ok=True)
    return id_


def lose(shop):
    for path in shop.root.parent.glob("index.sqlite3*"):
        path.unlink(missing_ok=True)


@pytest.fixture
def stuck_index(monkeypatch):
    """Nothing gets into an index until the event is set; what asks for it in vain is let go after ten seconds."""
    let_go = threading.Event()
    put = Index.put

    def wait_and_put(self, rows):
        assert let_go.wait(25)
        put(self, rows)

    monkeypatch.setattr(Index, "put", wait_and_put)
    yield let_go
    let_go.set()


def test_a_call_does_not_wait_until_a_lost_index_is_filled_again(sqlite_shop, stocked, stuck_index):
    lose(sqlite_shop)
    bundles = sqlite_shop.open()
    assert bundles.find("tool-7").tool.slug == "tool-7"
    assert bundles.find("tool-8", "acme", "v1").tool.slug == "tool-8"
    assert bundles.find("tool-8", "acme", "v2") is None
    assert bundles.find("no-such") is None
    assert bundles.entry(stocked, "tool-9", "v1").enabled
    assert bundles.tool(stocked, "tool-10", "v1").usable
    stuck_index.set()
    assert len(bundles.list_tools(page_size=256).items) == MANY


def test_a_listing_that_does_not_wait_says_that_stored_tools_are_still_being_indexed(sqlite_shop, stocked, stuck_index):
    lose(sqlite_shop)
    bundles = sqlite_shop.open()
    pages = [bundles.list_tools(patience=0), bundles.search("gizmo", patience=0), bundles.ask("gizmo", patience=0)]
    assert [(page.items, page.indexing) for page in pages] == [((), True)] * 3
    assert [bundle.id for bundle in bundles.list_bundles().items] == [stocked]
    stuck_index.set()
    page = bundles.list_tools(page_size=256)
    assert (len(page.items), page.indexing) == (MANY, False)


def test_without_an_index_the_same_tools_are_meant(sqlite_shop, stocked, put_bundle, tool_document, stuck_index):
    stuck_index.set()
    bundles = sqlite_shop.open()
    other, off = put_bundle(bundles, "aaa"), put_bundle(bundles, "aa")
    for id_, version in ((stocked, "v2"), (other, "v1"), (other, "v3"), (off, "v1")):
        sqlite_shop.clock.pass_by(1)
        bundles.put_tool(id_, "tool-1", version, tool_document())
    names = ["größe", "長" * 64, "-dash", "Capital"]
    for name in names:
        bundles.put_tool(stocked, name, "v1", tool_document())
    bundles.switch_bundle(off, False)

    shown = [function_name(kept.slug) for kept in bundles.list_tools(bundle_ids=[stocked], page_size=256).items]
    asked = [("tool-1", None, None), ("tool-1", "acme", None), ("tool-1", None, "v1"), ("tool-1", "aa", None)]
    asked += [(name, None, None) for name in (*names, *shown)]

    def meant(catalogue):
        entries = [catalogue.find(*each) for each in asked]
        return [(entry.tool.bundle, entry.tool.slug, entry.tool.version, entry.enabled) for entry in entries]

    expected = meant(bundles)
    lose(sqlite_shop)
    stuck_index.clear()
    assert meant(sqlite_shop.open()) == expected


def test_a_tool_is_never_missing_while_the_index_is_deleted_again_and_again(sqlite_shop, stocked, eventually):
    bundles = sqlite_shop.open()
    bundles.list_tools()
    is_over = threading.Event()
    missing = []

    def call():
        while not is_over.is_set():
            missing.extend(name for name in ("tool-3", "tool-99") if bundles.find(name) is None)

    def walk():
        while not is_over.is_set():
            found = len(bundles.list_tools(page_size=256).items), len(bundles.search("gizmo", page_size=256).items)
            if found != (MANY, MANY):
                missing.append(found)

    def delete():
        try:
            for _ in range(3):
                lose(sqlite_shop)
                eventually((sqlite_shop.root.parent / "index.sqlite3").exists)
                bundles.list_tools()
        finally:
            is_over.set()

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work) for work in (call, call, walk, delete)]:
            future.result(30)
    assert missing == []


def test_a_row_made_lightly_is_the_row_of_the_whole_document(bundles, shop, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    shapes = (
        {},
        {"tags": ["a", "b"], "description": "", "isEnabled": False},
        {"argSchema": {"type": "object", "properties": {"a": {"description": "b"}, "c": {}, "d": True}}},
        {"argSchema": {}, "description": "naïve 長", "somethingElse": [1.5, 2**60]},
    )
    for number, shape in enumerate(shapes):
        slug = f"{'長' * 60}-{number}"
        bundles.put_tool(id_, slug, "V1", tool_document(**shape))
        bundles.switch_tool(id_, slug, "V1", False)
        documents = bundles._lookup.documents
        shelved = next(each for each in documents._read.values() if each.slug == slug)
        row = light_row(documents.data(shelved.slot), slot=shelved.slot, stamp=shelved.stamp)
        assert row == row_of(shelved)


def test_what_a_person_touched_is_read_as_a_whole(bundles, shop, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    slot = f"{id_}/weather@v1"
    data = bundles._lookup.documents.data(slot)
    document = json.loads(data)
    assert light_row(data, slot=slot, stamp="s") is not None
    touched = [
        b"// mine\n" + data,
        b"[]",
        b"{",
        json.dumps(document | {"description": "other"}).encode(),
        json.dumps({name: value for name, value in document.items() if name != "digest"}).encode(),
        json.dumps(document | {"createdAt": "yesterday"}).encode(),
        json.dumps(document | {"tags": 1}).encode(),
        json.dumps(document | {"isEnabled": "yes"}).encode(),
    ]
    assert [light_row(each, slot=slot, stamp="s") for each in touched] == [None] * len(touched)
    assert light_row(data, slot=f"{id_}/other@v1", stamp="s") is None


def test_broken_documents_are_still_reported_after_the_index_was_lost(sqlite_shop, stocked, edit):
    edit(sqlite_shop.path(stocked, "tool-5@v1.json"), impl={"nothing": True})
    lose(sqlite_shop)
    bundles = sqlite_shop.open()
    assert [problem.kind for problem in bundles.problems()] == [Kind.VALIDATION]
    with pytest.raises(ToolError, match="tool-5@v1 cannot be used"):
        bundles.find("tool-5")


def test_closing_amid_the_learning_leaves_the_rest_to_the_next_caller(sqlite_shop, stocked):
    lose(sqlite_shop)
    bundles = sqlite_shop.open()
    assert bundles.find("tool-7") is not None
    bundles.close()
    again = sqlite_shop.open()
    assert len(again.list_tools(page_size=256).items) == MANY
