"""The index follows the documents, changed by other processes, people with editors, and processes that were killed."""

import json
import math
import os
import shutil
from dataclasses import replace

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.bundles import index_sync
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage.file_store import FileStore


@pytest.fixture
def stocked(file_shop, put_bundle, tool_document):
    """A bundle with two tools, in files."""
    bundles = file_shop.open()
    id_ = put_bundle(bundles)
    for slug in ("rain", "snow"):
        bundles.put_tool(id_, slug, "v1", tool_document(displayName=slug.title()))
    return bundles, id_


def listed(bundles, **query):
    return sorted(kept.slug for kept in bundles.list_tools(**query).items)


def found(bundles, text):
    return sorted(each.kept.slug for each in bundles.search(text).items)


@pytest.mark.spec("S1-70")
def test_what_one_process_writes_the_others_find(shop, put_bundle, tool_document, eventually):
    one, other = shop.open(), shop.open()
    assert listed(other) == []
    id_ = put_bundle(one)
    one.put_tool(id_, "weather", "v1", tool_document())
    assert other.tool(id_, "weather", "v1").usable
    assert eventually(lambda: listed(other) == ["weather"] and other.find("weather", None, None))
    assert found(other, "wea") == ["weather"]
    one.switch_tool(id_, "weather", "v1", False)
    assert not other.tool(id_, "weather", "v1").usable
    assert eventually(lambda: listed(other) == [] and not other.find("weather", None, None).enabled)
    one.switch_tool(id_, "weather", "v1", True)
    one.switch_bundle(id_, False)
    assert eventually(lambda: not other.entry(id_, "weather", "v1").enabled)
    one.delete_tool(id_, "weather", "v1")
    assert eventually(lambda: listed(other, include_disabled=True) == [] and not other.find("weather", None, None))
    one.delete_bundle(id_)
    assert eventually(lambda: other.list_bundles(include_disabled=True).items == ())


@pytest.mark.spec("S1-70")
def test_an_index_that_is_deleted_or_broken_is_made_anew_with_the_same_answers(
    tmp_path, put_bundle, tool_document, request
):

    path = tmp_path / "index.sqlite3"

    def open_bundles():
        bundles = Bundles(FileStore(tmp_path / "store"), Index(path), entries=list, functions={}, key=lambda: b"k" * 32)
        request.addfinalizer(bundles.close)
        return bundles

    bundles = open_bundles()
    id_ = put_bundle(bundles)
    for number in range(5):
        bundles.put_tool(id_, f"weather-{number}", "v1", tool_document())
    answers = (listed(bundles), found(bundles, "wea"), found(bundles, "weathr"))
    bundles.close()
    for damage in (b"no database at all", b"SQLite format 3\0" + b"x" * 5_000, None):
        for file in tmp_path.glob("index.sqlite3*"):
            file.unlink()
        if damage is not None:
            path.write_bytes(damage)
        again = open_bundles()
        assert (listed(again), found(again, "wea"), found(again, "weathr")) == answers
        again.close()


@pytest.mark.spec("S1-70")
def test_an_index_that_is_deleted_under_a_running_process_is_made_anew(
    tmp_path, sqlite_shop, put_bundle, tool_document, eventually
):
    bundles = sqlite_shop.open()
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    assert listed(bundles) == ["weather"]
    bundles._syncing._walk_at = math.inf
    for file in tmp_path.glob("index.sqlite3*"):
        file.unlink()
    assert eventually(lambda: listed(bundles) == ["weather"] and found(bundles, "wea") == ["weather"])
    for file in tmp_path.glob("index.sqlite3*"):
        file.unlink()
    bundles.put_tool(id_, "wind", "v1", tool_document())
    assert eventually(lambda: listed(bundles) == ["weather", "wind"])


def test_an_index_of_another_layout_is_filled_anew(stocked, file_shop):
    bundles, _ = stocked
    index = bundles._index
    index.put([replace(row, slug="wrong") for row in index.page(limit=9)])
    index.note({"layout": "0"})
    bundles._syncing._look_at = 0.0
    assert bundles.find("rain", None, None).tool.slug == "rain"


@pytest.mark.spec("S1-51")
def test_a_change_by_hand_moves_the_time_and_leaves_the_file_alone(stocked, file_shop, edit, eventually, tool_document):
    bundles, id_ = stocked
    before = bundles.tool(id_, "rain", "v1")
    path = file_shop.path(id_, "rain@v1.json")
    edit(path, description="Says when it snows", note="mine")
    os.utime(path, (2_000_000_000, 2_000_000_000))
    data = path.read_bytes()
    after = bundles.tool(id_, "rain", "v1")
    assert after.tool.description == "Says when it snows"
    assert after.modified_at == "2033-05-18T03:33:20.000Z"
    assert (after.created_at, after.id, after.toggled_at) == (before.created_at, before.id, "")
    assert after.tool is not before.tool
    assert eventually(lambda: bundles.find("rain", None, None).tool.description == "Says when it snows")
    assert eventually(lambda: "rain" in found(bundles, "snows"))
    assert path.read_bytes() == data
    # A switch keeps the time of the change, and what the person wrote.
    off = bundles.switch_tool(id_, "rain", "v1", False)
    assert (off.modified_at, off.document["note"]) == (after.modified_at, "mine")
    on = bundles.switch_tool(id_, "rain", "v1", True)
    assert on.modified_at == after.modified_at
    assert file_shop.open().tool(id_, "rain", "v1").modified_at == after.modified_at


def test_a_switch_or_a_time_that_is_changed_by_hand_is_no_change_of_the_tool(stocked, file_shop, edit):
    bundles, id_ = stocked
    before = bundles.tool(id_, "rain", "v1")
    path = file_shop.path(id_, "rain@v1.json")
    edit(path, isEnabled=False)
    os.utime(path, (2_000_000_000, 2_000_000_000))
    after = bundles.tool(id_, "rain", "v1")
    assert (after.enabled, after.modified_at) == (False, before.modified_at)


def test_a_file_from_before_it_was_made_is_not_changed_before_it_was_made(stocked, file_shop, edit):
    bundles, id_ = stocked
    path = file_shop.path(id_, "rain@v1.json")
    edit(path, description="other")
    os.utime(path, (1_000, 1_000))
    kept = bundles.tool(id_, "rain", "v1")
    assert kept.modified_at == kept.created_at


@pytest.mark.spec("S1-82")
def test_a_file_that_a_person_adds_or_takes_away_is_noticed(stocked, file_shop, tool_document, eventually):
    bundles, id_ = stocked
    written = json.dumps(tool_document(slug="wind", version="v3", bundleID=id_, createdAt="2024-05-14T13:44:00Z"))
    file_shop.path(id_, "wind@v3.json").write_text(f"// by hand\n{written}")
    assert eventually(lambda: listed(bundles) == ["rain", "snow", "wind"])
    kept = bundles.tool(id_, "wind", "v3")
    assert kept.created_at == "2024-05-14T13:44:00.000Z"
    assert kept.id == file_shop.open().tool(id_, "wind", "v3").id
    file_shop.path(id_, "rain@v1.json").unlink()
    assert eventually(lambda: listed(bundles) == ["snow", "wind"] and bundles.find("rain", None, None) is None)


def test_a_copy_that_still_has_the_id_of_its_original_is_a_tool_of_its_own(stocked, file_shop, edit, eventually):
    bundles, id_ = stocked
    copy = file_shop.path(id_, "rain@v2.json")
    copy.write_bytes(file_shop.path(id_, "rain@v1.json").read_bytes())
    edit(copy, version="v2")
    assert eventually(lambda: len(bundles.list_tools().items) == 3)
    assert {bundles.tool(id_, "rain", version).version for version in ("v1", "v2")} == {"v1", "v2"}


@pytest.mark.spec("S1-82")
def test_a_broken_document_is_reported_and_listed_and_left_alone_and_the_others_are_served(
    stocked, file_shop, eventually, tool_document
):
    bundles, id_ = stocked
    path = file_shop.path(id_, "rain@v1.json")
    path.write_text("{ half a docu")
    assert eventually(lambda: listed(bundles) == ["snow"])
    (broken,) = [kept for kept in bundles.list_tools(include_disabled=True).items if kept.tool is None]
    assert (broken.slug, broken.version, broken.usable) == ("rain", "v1", False)
    assert "its file is broken" in broken.reason
    assert f"bundles/{id_}/rain@v1.json" in broken.reason
    assert bundles.tool(id_, "rain", "v1").reason == broken.reason
    (problem,) = bundles.problems()
    assert f"bundles/{id_}/rain@v1.json" in problem.message
    with pytest.raises(ToolError, match="repair the file") as caught:
        bundles.switch_tool(id_, "rain", "v1", False)
    assert caught.value.kind is Kind.CONFLICT
    with pytest.raises(ToolError, match="already"):
        bundles.put_tool(id_, "rain", "v1", tool_document())
    bundles.switch_bundle(id_, False)
    bundles.switch_bundle(id_, True)
    assert path.read_text() == "{ half a docu"
    assert bundles.entry(id_, "snow", "v1").enabled
    # A broken tool is a tool: the bundle is not empty until it is deleted.
    bundles.delete_tool(id_, "snow", "v1")
    with pytest.raises(ToolError, match="not empty"):
        bundles.delete_bundle(id_)
    bundles.delete_tool(id_, "rain", "v1")
    assert not path.exists()
    assert bundles.problems() == []
    bundles.delete_bundle(id_)


@pytest.mark.spec("S1-82")
def test_a_tool_whose_file_says_that_it_is_another_is_broken(stocked, file_shop, edit):
    bundles, id_ = stocked
    edit(file_shop.path(id_, "rain@v1.json"), slug="hail")
    assert "rain@v1.json" in bundles.tool(id_, "rain", "v1").reason
    edit(file_shop.path(id_, "snow@v1.json"), bundleID="018faf50-b7b6-7a01-9a05-a22a6e0af101")
    assert "bundleID" in bundles.tool(id_, "snow", "v1").reason
    assert len(bundles.problems()) == 2


def test_a_bundle_whose_document_is_broken_or_gone_is_off_until_it_is_repaired(stocked, file_shop, eventually):
    bundles, id_ = stocked
    path = file_shop.path(id_)
    good = path.read_bytes()
    for damage in (path.unlink, lambda: path.write_bytes(b"[]")):
        damage()
        assert eventually(lambda: listed(bundles) == [])
        assert "the file of its bundle is broken" in bundles.list_tools(include_disabled=True).items[0].reason
        assert not bundles.entry(id_, "rain", "v1").enabled
        (shown,) = bundles.list_bundles(include_disabled=True).items
        assert (shown.id, shown.enabled) == (id_, False)
        assert bundles.list_bundles().items == ()
        assert any("bundle.json" in problem.message for problem in bundles.problems())
        with pytest.raises(ToolError) as caught:
            bundles.bundle(id_)
        assert caught.value.kind in (Kind.NOT_FOUND, Kind.CONFLICT)
    with pytest.raises(ToolError, match="broken"):
        bundles.put_bundle(id_, {"slug": "a", "displayName": "a", "isEnabled": True})
    assert path.read_bytes() == b"[]"
    path.write_bytes(good)
    assert eventually(lambda: listed(bundles) == ["rain", "snow"])
    assert bundles.problems() == []


def test_a_folder_that_a_person_takes_away_is_a_bundle_no_more(stocked, file_shop, eventually):
    bundles, id_ = stocked
    assert listed(bundles) == ["rain", "snow"]
    shutil.rmtree(file_shop.path(id_).parent)
    assert eventually(lambda: bundles.list_bundles(include_disabled=True).items == ())
    assert listed(bundles, include_disabled=True) == []
    assert bundles.find("rain", None, None) is None


def test_what_is_none_of_ours_breaks_nothing(stocked, file_shop, eventually):
    _, id_ = stocked
    folder = file_shop.path(id_).parent
    for name in ("README.md", ".rain@v1.json.swp", "rain@v1.json~", "notes.txt", "4913", "a@b@c.json", "@v1.json"):
        (folder / name).write_text("not for you")
    (folder / "sub").mkdir()
    (folder / "sub" / "rain@v1.json").write_text("{}")
    (folder / "rain@v9.json").mkdir()
    (folder.parent / "stray.json").write_text("{}")
    (folder.parent / "no-bundle").mkdir()
    (folder.parent / "no-bundle" / "bundle.json").write_text("{}")
    fresh = file_shop.open()
    assert listed(fresh) == ["rain", "snow"]
    assert len(fresh.list_bundles(include_disabled=True).items) == 1
    assert [problem.message.partition(" ")[0] for problem in fresh.problems()] == ["bundles/no-bundle"]
    assert fresh.tool(id_, "rain", "v1").usable
    assert fresh.entry(id_, "rain", "v9") is None
    assert (folder / "README.md").exists()


def test_a_link_in_place_of_a_document_is_reported_and_not_followed(stocked, file_shop, tmp_path):
    _, id_ = stocked
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    path = file_shop.path(id_, "hail@v1.json")
    path.symlink_to(secret)
    fresh = file_shop.open()
    assert listed(fresh) == ["rain", "snow"]
    assert "top secret" not in repr(fresh.list_tools(include_disabled=True))


class Counting(FileStore):
    """Counts what is read and listed."""

    def __init__(self, root):
        super().__init__(root)
        self.read, self.listed = [], []

    def get(self, key, *limit):
        self.read.append(key)
        return super().get(key, *limit)

    def stamps(self, prefix):
        self.listed.append(prefix)
        return super().stamps(prefix)


def test_the_first_page_reads_no_more_documents_than_it_shows(tmp_path, put_bundle, tool_document):
    def open_bundles(store):
        index = Index(tmp_path / "index.sqlite3")
        return Bundles(store, index, entries=list, functions={}, key=lambda: b"k" * 32)

    first = open_bundles(FileStore(tmp_path / "store"))
    id_ = put_bundle(first)
    for number in range(40):
        first.put_tool(id_, f"weather-{number}", "v1", tool_document())
    first.list_tools()
    first.close()
    store = Counting(tmp_path / "store")
    second = open_bundles(store)
    assert len(second.list_tools(page_size=5).items) == 5
    assert len([key for key in store.read if "@" in key]) <= 6
    second.close()


def test_a_write_is_known_without_looking_at_the_whole_bundle(tmp_path, put_bundle, tool_document, monkeypatch):
    monkeypatch.setattr(index_sync, "LOOK_SECONDS", 0.0)
    store = Counting(tmp_path / "store")
    bundles = Bundles(store, Index(None), entries=list, functions={}, key=lambda: b"k" * 32)
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "a", "v1", tool_document())
    bundles.list_tools()
    store.listed.clear()
    bundles.put_tool(id_, "b", "v1", tool_document())
    bundles.switch_tool(id_, "a", "v1", False)
    assert listed(bundles) == ["b"]
    assert f"bundles/{id_}/" not in store.listed
    # A write of another process is looked at.
    other = Bundles(FileStore(tmp_path / "store"), Index(None), entries=list, functions={}, key=lambda: b"k" * 32)
    other.put_tool(id_, "c", "v1", tool_document())
    assert listed(bundles) == ["b", "c"]
    assert f"bundles/{id_}/" in store.listed


def test_a_long_look_through_all_documents_blocks_no_caller(stocked, file_shop, edit, eventually, monkeypatch):
    _, id_ = stocked
    monkeypatch.setattr(index_sync, "QUICK_WALK_DOCUMENTS", 0)
    monkeypatch.setattr(index_sync, "QUICK_WALK_SECONDS", 0.0)
    bundles = file_shop.open()
    assert listed(bundles) == ["rain", "snow"]
    edit(file_shop.path(id_, "rain@v1.json"), description="Says when it snows", isEnabled=False)
    assert eventually(lambda: listed(bundles) == ["snow"] and not bundles.find("rain", None, None).enabled)
    bundles.close()


def test_an_index_that_fails_fails_no_write(stocked, tool_document, file_shop, monkeypatch, eventually):
    bundles, id_ = stocked

    def fail(*_):
        raise ToolError(Kind.TRANSIENT, "the index is busy")

    with monkeypatch.context() as patched:
        patched.setattr(bundles._index, "put", fail)
        kept = bundles.put_tool(id_, "wind", "v1", tool_document())
        assert kept.usable
    assert bundles.tool(id_, "wind", "v1") == kept
    assert eventually(lambda: listed(bundles) == ["rain", "snow", "wind"])
