"""What every store keeps to."""

import stat
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.file_store import FileStore
from toolcrib.lib.document_format import LONGEST, to_filename
from toolcrib.lib.names import new_id
from warm_python import WarmPython

HOSTILE = [
    "",
    "/",
    "a",
    "a/",
    "/a/b",
    "a//b",
    "a/../b",
    "../a/b",
    "a/..",
    "a/.",
    "a/.b",
    "a/-b",
    "a/@b",
    "_a/b",
    ".locks/b",
    "./a/b",
    "a/b\0",
    "a/b\n",
    "A/b",
    "a/B",
    "a/ü",
    "a\\b/c",
    "a/b c",
    "a/" + "b" * 300,
    "a/~",
    "a/*",
    "a/\ud800",
]


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "deep" / "store")


class TestDocuments:
    def test_a_document_beyond_the_limit_of_its_reader_is_refused(self, store):
        store.create("a/b", b"12345")
        assert store.get("a/b", 5) == b"12345"
        with pytest.raises(ToolError, match=r"a/b'? has more than 4 bytes; make it smaller, or move it away") as caught:
            store.get("a/b", 4)
        assert caught.value.kind is Kind.LIMIT_EXCEEDED

    def test_a_document_is_kept_until_it_is_removed(self, store):
        assert store.get("a/b") is None
        assert store.create("a/b", b"\0 any bytes \xff")
        assert store.get("a/b") == b"\0 any bytes \xff"
        assert store.remove("a/b")
        assert not store.remove("a/b")
        assert store.get("a/b") is None
        assert store.create("a/b", b"")
        assert store.get("a/b") == b""

    def test_a_key_that_is_taken_is_not_given_away(self, store):
        assert store.create("a/b", b"first")
        assert not store.create("a/b", b"second")
        # Not even for the same content.
        assert not store.create("a/b", b"first")
        assert store.get("a/b") == b"first"

    def test_a_document_is_replaced_whether_it_is_there_or_not(self, store):
        store.replace("a/b", b"first, and longer")
        store.replace("a/b", b"second")
        assert store.get("a/b") == b"second"
        assert not store.create("a/b", b"third")
        assert store.keys() == ["a/b"]

    def test_keys_are_sorted_and_chosen_by_their_beginning(self, store):
        for key in ("b/2", "a/1", "a/10", "a/2", "ab/1", "a/x.y-z", "c/d/e"):
            store.create(key, b"")
        assert store.keys() == ["a/1", "a/10", "a/2", "a/x.y-z", "ab/1", "b/2", "c/d/e"]
        assert store.keys("a") == ["a/1", "a/10", "a/2", "a/x.y-z", "ab/1"]
        assert store.keys("a/") == ["a/1", "a/10", "a/2", "a/x.y-z"]
        assert store.keys("a/1") == ["a/1", "a/10"]
        assert store.keys("c/d/") == store.keys("c/d") == ["c/d/e"]
        assert store.keys("z") == store.keys("z/y/") == []

    @pytest.mark.parametrize("key", HOSTILE)
    def test_a_key_that_could_lead_elsewhere_is_refused_at_every_door(self, store, key):
        doors = (
            store.get,
            store.remove,
            store.stamp,
            lambda key: store.create(key, b"x"),
            lambda key: store.replace(key, b"x"),
        )
        for door in doors:
            with pytest.raises(ToolError, match="cannot be a key of a store") as caught:
                door(key)
            assert caught.value.kind is Kind.VALIDATION
        assert store.keys() == []

    @pytest.mark.parametrize(
        "prefix", ["..", "../", "/", "/etc/", "a/../", "a/./", "a//", "A", "a*", "\0", "a" * 300, ".", ".locks", "_a"]
    )
    def test_a_beginning_that_could_lead_elsewhere_is_refused(self, store, prefix):
        store.create("a/b", b"")
        for door in (store.keys, store.stamps, store.folders, store.discard):
            with pytest.raises(ToolError, match="cannot be the beginning of a key") as caught:
                door(prefix)
            assert caught.value.kind is Kind.VALIDATION
        assert store.keys() == ["a/b"]

    def test_the_longest_names_of_a_tool_are_a_key(self, store):
        slug, version = to_filename("天" * 64), to_filename("V" * 64)
        key = f"bundles/{new_id()}/{slug}@{version}.json"
        assert len(slug) == len(version) == LONGEST
        assert store.create(key, b"tool")
        assert store.keys("bundles/") == [key]
        assert store.get(key) == b"tool"


class TestStamps:
    def test_a_stamp_changes_with_every_change_of_its_document_and_with_no_other(self, store):
        assert store.stamp("a/b") is None
        store.create("a/b", b"one")
        seen = [store.stamp("a/b")]
        store.create("a/c", b"")
        store.create("a/b", b"refused")
        assert store.stamp("a/b") == seen[0]
        for document in (b"two", b"two", b"six"):
            store.replace("a/b", document)
            seen.append(store.stamp("a/b"))
        store.remove("a/b")
        assert store.stamp("a/b") is None
        store.create("a/b", b"one")
        seen.append(store.stamp("a/b"))
        assert len(set(seen)) == 5

    def test_documents_of_one_length_that_follow_quickly_never_share_a_stamp(self, store):
        seen = []
        for number in range(100):
            store.replace("a/b", b"%03d" % number)
            seen.append((store.stamp("a/b"), store.folders("a"), store.generation("a")))
        assert len({stamp for stamp, _, _ in seen}) == 100
        assert len({generation for _, _, generation in seen}) == 100

    def test_the_stamps_of_many_are_those_of_each(self, store):
        for key in ("a/b", "a/c/d", "a/c/e", "b/c"):
            store.create(key, key.encode())
        assert store.stamps("a/") == {key: store.stamp(key) for key in ("a/b", "a/c/d", "a/c/e")}
        assert store.stamps("a/c/") == {key: store.stamp(key) for key in ("a/c/d", "a/c/e")}
        assert sorted(store.stamps("")) == store.keys()
        assert store.stamps("z/") == {}

    def test_a_document_says_when_it_last_changed(self, store):
        assert store.changed_at("a/b") is None
        before = time.time()
        store.create("a/b", b"one")
        first = store.changed_at("a/b")
        store.create("a/b", b"refused")
        assert store.changed_at("a/b") == first
        store.replace("a/b", b"two")
        assert before - 1 <= first < store.changed_at("a/b") <= time.time() + 1
        with pytest.raises(ToolError, match="cannot be a key of a store"):
            store.changed_at("../b")

    def test_a_stamp_of_a_longer_or_shorter_key_is_no_stamp(self, store):
        store.create("a/b/c", b"")
        assert store.stamp("a/b") is None
        assert store.stamp("a/b/c/d") is None


class TestFolders:
    def test_folders_are_the_words_between_a_beginning_and_longer_keys(self, store):
        for key in ("a/file", "a/x/1", "a/x/2", "a/y/z/1", "b/x/1"):
            store.create(key, b"")
        assert sorted(store.folders("a")) == sorted(store.folders("a/")) == ["x", "y"]
        assert sorted(store.folders("a/y")) == ["z"]
        assert store.folders("a/x") == store.folders("a/file") == store.folders("c") == {}

    @pytest.mark.parametrize("key", ["a/x/1", "a/x/y/1"])
    def test_the_stamp_of_a_folder_changes_when_something_below_comes_goes_or_is_replaced(self, store, key):
        store.create("a/x/stays", b"")
        store.create("a/other/1", b"")
        store.create("a/x/y/stays", b"")
        other, seen = store.folders("a")["other"], [store.folders("a")["x"]]
        for change in (lambda: store.create(key, b"1"), lambda: store.replace(key, b"2"), lambda: store.remove(key)):
            change()
            seen.append(store.folders("a")["x"])
        assert len(set(seen)) == 4
        assert store.folders("a")["other"] == other

    def test_a_folder_is_discarded_with_everything_below_it_and_nothing_else(self, store):
        for key in ("a/x/1", "a/x/y/2", "a/xy/1", "a/w", "b/x/1"):
            store.create(key, b"kept")
        store.discard("a/x")
        store.discard("a/x")
        store.discard("a/never/was")
        assert store.keys() == ["a/w", "a/xy/1", "b/x/1"]
        assert sorted(store.folders("a")) == ["xy"]
        assert store.get("a/x/1") is None
        assert store.create("a/x/1", b"new")
        assert store.keys("a/x/") == ["a/x/1"]
        store.discard("a/")
        assert store.keys() == ["b/x/1"]

    def test_the_whole_store_is_no_folder(self, store):
        store.create("a/b", b"")
        for door in (store.discard, store.folders):
            with pytest.raises(ToolError, match="the whole store is not a folder of keys; name a space"):
                door("")
        assert store.keys() == ["a/b"]


class TestGenerations:
    def test_every_change_in_a_space_changes_its_generation_and_no_others(self, store):
        other, seen = store.generation("b"), [store.generation("a")]
        changes = (
            lambda: store.create("a/x/1", b"1"),
            lambda: store.create("a/2", b"2"),
            lambda: store.replace("a/2", b"2"),
            lambda: store.replace("a/2", b"2"),
            lambda: store.remove("a/2"),
            lambda: store.discard("a/x"),
        )
        for change in changes:
            change()
            seen.append(store.generation("a"))
            assert store.generation("a") == seen[-1]
        assert len(set(seen)) == 7
        assert store.generation("b") == other

    def test_what_changes_nothing_leaves_the_generation_as_it_is(self, store):
        store.create("a/1", b"1")
        before = store.generation("a")
        assert not store.create("a/1", b"2")
        assert not store.remove("a/2")
        store.discard("a/3")
        assert store.generation("a") == before

    @pytest.mark.parametrize("space", ["", "a/b", "..", "A", ".", "a\n", "/", "a" * 300, "_", "a-b"])
    def test_a_space_is_one_plain_word(self, store, space):
        with pytest.raises(ToolError, match="cannot be a space of a store"):
            store.generation(space)


class TestLocks:
    @pytest.mark.parametrize("name", ["", "/", "a/", "/a", "../a", "a/../b", "A", "a b", "a\0", "a" * 300, "a/.b"])
    def test_a_name_that_could_lead_elsewhere_is_no_lock(self, store, name):
        with pytest.raises(ToolError, match="cannot be a lock of a store"), store.lock(name):
            pass

    def test_a_lock_lets_one_thread_in_at_a_time(self, store):
        store.create("a/count", b"0")

        def count():
            for _ in range(20):
                with store.lock("bundle/1"):
                    store.replace("a/count", b"%d" % (int(store.get("a/count")) + 1))

        threads = [threading.Thread(target=count) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert store.get("a/count") == b"100"

    def test_a_caller_that_waits_for_a_lock_is_refused_at_the_deadline_and_may_try_again(self, store):
        held, done = threading.Event(), threading.Event()

        def hold():
            with store.lock("store"):
                held.set()
                done.wait(20)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(25)
        try:
            with pytest.raises(ToolError, match="the lock 'store' was not free within 0.05 s") as caught:
                store.lock("store", 0.05).__enter__()
            assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
            assert caught.value.details["lock"] == "store"
            with store.lock("store/other", 1):
                pass
        finally:
            done.set()
            holder.join(20)
        with store.lock("store", 1):
            pass

    def test_a_lock_is_free_again_after_any_failure_under_it(self, store):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError), store.lock("store", 1):
                raise ZeroDivisionError
        with store.lock("store", 1):
            pass

    def test_taking_a_lock_twice_is_an_error_and_no_deadlock(self, store):
        with store.lock("store"), store.lock("bundle/1"):
            with pytest.raises(ToolError, match="this thread holds the lock 'bundle/1' already") as caught:
                store.lock("bundle/1", 30).__enter__()
            assert caught.value.kind is Kind.INTERNAL
        with store.lock("bundle/1", 1):
            pass


class TestManyAtOnce:
    def test_of_many_threads_exactly_one_creates(self, store):
        start, won = threading.Barrier(8), []

        def race(number):
            for turn in range(25):
                start.wait(25)
                if store.create(f"race/{turn}", str(number).encode()):
                    won.append((turn, str(number).encode()))

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(turn for turn, _ in won) == list(range(25))
        assert all(store.get(f"race/{turn}") == winner for turn, winner in won)

    def test_keys_can_be_read_while_others_create_remove_and_discard(self, store):
        stop, failures = threading.Event(), []

        def read():
            while not stop.is_set():
                try:
                    store.keys("x/")
                    store.stamps("x/")
                    store.folders("x")
                except BaseException as problem:
                    failures.append(repr(problem))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for number in range(60):
                store.create(f"x/{number}", b"")
                store.replace(f"x/y{number % 3}/{number}", b"")
                store.discard(f"x/y{number % 2}")
            for number in range(60):
                store.remove(f"x/{number}")
        finally:
            stop.set()
            reader.join(20)
        assert failures == []

    @pytest.mark.parametrize("turn", range(2))
    def test_a_folder_is_discarded_for_readers_as_a_whole(self, store, turn):
        seen, started, stop = set(), threading.Event(), threading.Event()

        def read():
            while not stop.is_set():
                seen.update(len(store.keys(prefix)) for prefix in ("x/", "x/f/", "x/f/g/"))
                started.set()

        for number in range(50):
            store.create(f"x/f/g/{number}", b"")
        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert started.wait(25)
            store.discard("x/f")
        finally:
            stop.set()
            reader.join(20)
        assert seen <= {0, 50}
        assert store.keys() == []

    def test_keys_in_memory_are_copied_in_one_step(self):
        store, stop, failures = MemoryStore(), threading.Event(), []
        for number in range(2_000):
            store.create(f"y/{number}", b"")
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)

        def change():
            while not stop.is_set():
                store.create("x/1", b"")
                store.remove("x/1")

        changer = threading.Thread(target=change)
        changer.start()
        try:
            for _ in range(100):
                store.keys("y/")
        except RuntimeError as problem:
            failures.append(problem)
        finally:
            stop.set()
            sys.setswitchinterval(before)
            changer.join(20)
        assert failures == []


KEYS = st.sampled_from(["a/1", "a/2", "b/1", "b/1.x", "b/_x@1.json", "b/f/1", "b/f/2", "b/g/1"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "replace"]), KEYS, st.binary(max_size=3)),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("discard"), st.sampled_from(["a", "b/f", "b/g/"])),
)


@given(st.lists(STEPS, max_size=12))
@settings(max_examples=50)
def test_both_stores_do_the_same(tmp_path_factory, steps):
    memory, files = MemoryStore(), FileStore(tmp_path_factory.mktemp("store"))
    for verb, key, *document in steps:
        before = memory.generation("b"), files.generation("b")
        stamps = memory.stamps("b/"), files.stamps("b/")
        assert getattr(memory, verb)(key, *document) == getattr(files, verb)(key, *document)
        assert memory.keys() == files.keys()
        assert list(map(memory.get, memory.keys())) == list(map(files.get, files.keys()))
        assert set(memory.folders("b")) <= set(files.folders("b"))
        # A folder that is empty is none in memory.
        assert memory.generation("b") == before[0] or files.generation("b") != before[1]
        assert (memory.stamps("b/") == stamps[0]) is (files.stamps("b/") == stamps[1])


def test_files_survive_a_restart_and_are_for_their_owners_eyes_only(tmp_path):
    FileStore(tmp_path / "store").create("a/b", b"kept")
    assert FileStore(tmp_path / "store").get("a/b") == b"kept"
    assert stat.S_IMODE((tmp_path / "store" / "a" / "b").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


@pytest.mark.spec("S1-84")
def test_of_many_processes_exactly_one_creates(tmp_path):
    program = (
        "import sys, pathlib\nfrom toolcrib.infra.storage.file_store import FileStore\nstore = FileStore(pathlib.Path(sys.argv[1]))\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "print([n for n in range(20) if store.create(f'race/{n}', sys.argv[2].encode())])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [
        WarmPython([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        won = [eval(process.communicate(timeout=20)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(turn for turns in won for turn in turns) == list(range(20))
    store = FileStore(tmp_path)
    assert all(store.get(f"race/{turn}") == str(number).encode() for number, turns in enumerate(won) for turn in turns)


def test_a_store_says_what_lies_between_its_documents_and_is_none(store, tmp_path):
    store.create("bundles/a/one.json", b"1")
    store.create("bundles/a/deeper/two.json", b"2")
    assert store.other_files("bundles/a") == []
    assert store.other_files("bundles/b") == []
    if isinstance(store, FileStore):
        folder = tmp_path / "deep" / "store" / "bundles" / "a"
        (folder / "README.md").write_text("mine")
        (folder / ".swp").write_text("")
        (folder / f".crib-{'0' * 16}.part").write_text("left by a writer")
        assert store.other_files("bundles/a") == [".swp", "README.md"]
