"""Another process interferes at the worst moment."""

import json
import math
from contextlib import contextmanager, nullcontext

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage import MemoryStore

DAY = 86_400.0


class Meddling(MemoryStore):
    """A store in which something happens before a lock is taken, or before a document is created."""

    def __init__(self):
        super().__init__()
        self.before_lock = self.before_create = lambda: None
        self.is_locking = True

    def lock(self, name, seconds=10.0):
        return self._lock_late(name, seconds) if self.is_locking else nullcontext()

    @contextmanager
    def _lock_late(self, name, seconds):
        meddle, self.before_lock = self.before_lock, lambda: None
        meddle()
        with super().lock(name, seconds):
            yield

    def create(self, key, document):
        meddle, self.before_create = self.before_create, lambda: None
        meddle()
        return super().create(key, document)


@pytest.fixture
def store():
    return Meddling()


@pytest.fixture
def now():
    return [1_800_000_000.0]


@pytest.fixture
def open_bundles(store, now):
    def make(index=None, **settings):
        given = {"entries": list, "functions": {}, "key": lambda: b"k" * 32} | settings
        return Bundles(store, index or Index(None), clock=lambda: now[0], monotonic=lambda: now[0], **given)

    return make


@pytest.fixture
def bundles(open_bundles):
    return open_bundles()


@pytest.fixture
def rival(open_bundles):
    return open_bundles()


def refused(kind, door, *arguments):
    with pytest.raises(ToolError) as caught:
        door(*arguments)
    assert caught.value.kind is kind


@pytest.mark.spec("S1-75", "S1-73")
def test_what_happens_to_a_bundle_before_its_lock_is_taken_counts(bundles, rival, store, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    store.before_lock = lambda: rival.switch_bundle(id_, False)
    refused(Kind.DISABLED, bundles.put_tool, id_, "wind", "v1", tool_document())
    rival.switch_bundle(id_, True)
    store.before_lock = lambda: rival.switch_bundle(id_, False)
    refused(Kind.DISABLED, bundles.switch_tool, id_, "weather", "v1", False)
    rival.switch_bundle(id_, True)
    store.before_lock = lambda: rival.delete_tool(id_, "weather", "v1")
    refused(Kind.NOT_FOUND, bundles.switch_tool, id_, "weather", "v1", False)
    store.before_lock = lambda: rival.put_tool(id_, "wind", "v1", tool_document())
    refused(Kind.CONFLICT, bundles.delete_bundle, id_)
    rival.delete_tool(id_, "wind", "v1")
    store.before_lock = lambda: rival.delete_bundle(id_)
    refused(Kind.CONFLICT, bundles.put_tool, id_, "wind", "v1", tool_document())
    assert store.keys(f"bundles/{id_}/") == [f"bundles/{id_}/bundle.json"]


@pytest.mark.spec("S1-84")
def test_even_without_locks_no_writer_overwrites_a_tool(bundles, rival, store, put_bundle, tool_document):
    id_ = put_bundle(bundles)
    store.is_locking = False
    store.before_create = lambda: rival.put_tool(id_, "weather", "v1", tool_document(displayName="Rival"))
    refused(Kind.CONFLICT, bundles.put_tool, id_, "weather", "v1", tool_document(displayName="Late"))
    assert bundles.tool(id_, "weather", "v1").tool.display_name == "Rival"


@pytest.mark.spec("S1-74")
def test_a_bundle_that_is_written_again_or_filled_before_the_reaper_has_its_lock_stays(
    bundles, rival, store, put_bundle, bundle_document, tool_document, now
):
    id_ = put_bundle(bundles)
    bundles.delete_bundle(id_)
    now[0] += 3 * DAY
    store.before_lock = lambda: rival.put_bundle(id_, bundle_document("back"))
    assert bundles.reap() == []
    assert bundles.bundle(id_).slug == "back"
    rival.delete_bundle(id_)
    bundles.reap()
    now[0] += 3 * DAY
    store.before_lock = lambda: store.create(f"bundles/{id_}/weather@v1.json", b"{}")
    assert bundles.reap() == []
    store.remove(f"bundles/{id_}/weather@v1.json")

    def live_and_die():
        rival.put_bundle(id_, bundle_document("back"))
        rival.delete_bundle(id_)

    store.before_lock = live_and_die
    assert bundles.reap() == []
    assert store.get(f"bundles/{id_}/bundle.json") is not None


def stop_walking(bundles):
    """Have only the quick way of following left."""
    bundles._syncing._walk_at = math.inf


class Late(Index):
    """An index that several share, in which something happens between the reading of documents and the writing of rows."""

    def __init__(self):
        super().__init__(None)
        self.before_put = self.before_remove = lambda: None

    def put(self, rows):
        rows = list(rows)
        meddle, self.before_put = self.before_put, lambda: None
        meddle()
        super().put(rows)

    def remove(self, ids):
        ids = list(ids)
        meddle, self.before_remove = self.before_remove, lambda: None
        meddle()
        super().remove(ids)


def test_the_newer_row_is_the_last_in_any_order_of_writers(open_bundles, store, put_bundle, tool_document):
    """What was read before another write is not what stands in the index after it."""
    index = Late()
    writer = open_bundles(index)
    id_ = put_bundle(writer)
    writer.put_tool(id_, "weather", "v1", tool_document())
    writer.put_tool(id_, "wind", "v1", tool_document())
    late = open_bundles(index)
    stop_walking(late)
    document = json.loads(store.get(f"bundles/{id_}/weather@v1.json"))
    store.replace(f"bundles/{id_}/weather@v1.json", json.dumps(document | {"description": "By hand"}).encode())
    index.before_put = lambda: writer.switch_tool(id_, "weather", "v1", False)
    late._syncing.look()
    row = index.get(f"{id_}/weather@v1")
    assert (row.enabled, row.stamp) == (False, store.stamp(row.key))
    store.replace(f"bundles/{id_}/weather@v1.json", json.dumps(document).encode())
    index.before_put = lambda: writer.delete_tool(id_, "weather", "v1")
    later = open_bundles(index)
    stop_walking(later)
    later._syncing.look()
    assert index.get(f"{id_}/weather@v1") is None


def test_a_row_stays_whose_document_came_back(open_bundles, store, put_bundle, tool_document):
    index = Late()
    writer = open_bundles(index)
    id_ = put_bundle(writer)
    writer.put_tool(id_, "weather", "v1", tool_document())
    data = store.get(f"bundles/{id_}/weather@v1.json")
    assert writer.list_tools().items

    class Hiding(Meddling):
        """Lists documents as they were a moment ago."""

        def stamps(self, prefix):
            found = super().stamps(prefix)
            return {key: stamp for key, stamp in found.items() if "weather" not in key}

    store.replace(f"bundles/{id_}/weather@v1.json", data)
    store.__class__ = Hiding
    open_bundles(index)._syncing.look()
    assert index.get(f"{id_}/weather@v1") is not None


def test_who_writes_a_tool_still_sees_what_others_did_to_the_bundle(
    open_bundles, put_bundle, bundle_document, tool_document
):
    index = Index(None)
    writer, other, third = open_bundles(index), open_bundles(index), open_bundles(index)
    stop_walking(writer)
    id_ = put_bundle(writer)
    writer.put_tool(id_, "weather", "v1", tool_document())
    writer.list_tools()
    # The writer looks no more until it has written; meanwhile the bundle changes and the index is made complete again.
    writer._syncing._look_at = math.inf
    other.put_bundle(id_, bundle_document("after"))
    third._syncing.look_at_everything()
    writer.put_tool(id_, "wind", "v1", tool_document())
    writer._syncing._look_at = 0.0
    assert [bundle.slug for bundle in writer.list_bundles().items] == ["after"]


def test_a_document_that_could_not_be_read_once_is_read_again(
    open_bundles, store, put_bundle, tool_document, eventually
):
    writer = open_bundles()
    id_ = put_bundle(writer)
    writer.put_tool(id_, "weather", "v1", tool_document())

    class Failing(Meddling):
        """Has too many files open."""

        def get(self, key, *limit):
            if "weather" in key:
                raise ToolError(Kind.PERMANENT, "too many open files", details={"path": "/somewhere/weather"})
            return super().get(key, *limit)

    store.__class__ = Failing
    bundles = open_bundles()
    assert bundles.list_tools().items == ()
    assert "too many open files" in bundles.list_tools(include_disabled=True).items[0].reason
    store.__class__ = Meddling
    assert eventually(lambda: [kept.slug for kept in bundles.list_tools().items] == ["weather"])


def settle(bundles):
    """Have the catalogue know everything there is, and look again only when it is told to."""
    stop_walking(bundles)
    for _ in range(2):
        bundles._syncing._look_at = 0.0
        bundles._syncing.look()
    bundles._syncing._look_at = math.inf


def names_after_a_look(bundles):
    bundles._syncing._look_at = 0.0
    return sorted(kept.slug for kept in bundles.list_tools().items)


@pytest.mark.spec("S1-70")
def test_an_index_that_lost_everything_is_filled_again_although_nothing_was_written(
    open_bundles, put_bundle, tool_document
):
    index = Index(None)
    bundles = open_bundles(index)
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    settle(bundles)
    index.close()
    assert names_after_a_look(bundles) == ["weather"]


def test_what_a_killed_writer_did_not_tell_the_index_is_found_although_another_wrote_since(
    open_bundles, store, put_bundle, tool_document
):
    bundles = open_bundles()
    id_ = put_bundle(bundles)
    bundles.put_tool(id_, "weather", "v1", tool_document())
    settle(bundles)
    document = tool_document(slug="rain", version="v1", bundleID=id_)
    store.create(f"bundles/{id_}/rain@v1.json", json.dumps(document).encode())
    bundles.put_tool(id_, "wind", "v1", tool_document())
    assert names_after_a_look(bundles) == ["rain", "weather", "wind"]
