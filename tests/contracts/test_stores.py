"""What every store keeps to."""

import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.model.errors import Kind, ToolError
from toolcrib.stores.files import FileStore
from toolcrib.stores.memory import MemoryStore

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


def test_a_document_is_kept_until_it_is_removed(store):
    assert store.get("a/b") is None
    assert store.create("a/b", b"\0 any bytes \xff")
    assert store.get("a/b") == b"\0 any bytes \xff"
    assert store.remove("a/b")
    assert not store.remove("a/b")
    assert store.get("a/b") is None
    assert store.create("a/b", b"")
    assert store.get("a/b") == b""


def test_a_key_that_is_taken_is_not_given_away(store):
    assert store.create("a/b", b"first")
    assert not store.create("a/b", b"second")
    # Not even to somebody who brings the same.
    assert not store.create("a/b", b"first")
    assert store.get("a/b") == b"first"


def test_keys_are_sorted_and_chosen_by_their_beginning(store):
    for key in ("b/2", "a/1", "a/10", "a/2", "ab/1", "a/x.y-z", "c/d/e"):
        store.create(key, b"")
    assert store.keys() == ["a/1", "a/10", "a/2", "a/x.y-z", "ab/1", "b/2", "c/d/e"]
    assert store.keys("a") == ["a/1", "a/10", "a/2", "a/x.y-z", "ab/1"]
    assert store.keys("a/") == ["a/1", "a/10", "a/2", "a/x.y-z"]
    assert store.keys("a/1") == ["a/1", "a/10"]
    assert store.keys("c/d/") == store.keys("c/d") == ["c/d/e"]
    assert store.keys("z") == store.keys("z/y/") == []


@pytest.mark.parametrize("key", HOSTILE)
def test_a_key_that_could_lead_elsewhere_is_refused_at_every_door(store, key):
    for door in (store.get, store.remove, lambda key: store.create(key, b"x")):
        with pytest.raises(ToolError, match="cannot be a key of a store") as caught:
            door(key)
        assert caught.value.kind is Kind.VALIDATION
    assert store.keys() == []


@pytest.mark.parametrize("prefix", ["..", "../", "/", "/etc/", "a/../", "a/./", "a//", "A", "a*", "\0", "a" * 300, "."])
def test_a_beginning_that_could_lead_elsewhere_is_refused(store, prefix):
    with pytest.raises(ToolError, match="cannot be the beginning of a key"):
        store.keys(prefix)


def test_of_many_threads_exactly_one_creates(store):
    start, won = threading.Barrier(8), []

    def race(number):
        for turn in range(25):
            start.wait(10)
            if store.create(f"race/{turn}", str(number).encode()):
                won.append((turn, str(number).encode()))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(turn for turn, _ in won) == list(range(25))
    assert all(store.get(f"race/{turn}") == winner for turn, winner in won)


def test_keys_can_be_read_while_others_create_and_remove(store):
    stop, failures = threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                store.keys("x/")
            except BaseException as problem:
                failures.append(repr(problem))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        store.create(f"x/{number}", b"")
    for number in range(100):
        store.remove(f"x/{number}")
    stop.set()
    reader.join(20)
    assert failures == []


def test_keys_in_memory_are_copied_in_one_step():
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


KEYS = st.sampled_from(["a/1", "a/2", "b/1", "b/1.x", "b/1-x"])
STEPS = st.tuples(st.sampled_from(["create", "remove"]), KEYS, st.binary(max_size=3))


@given(st.lists(STEPS, max_size=15))
def test_both_stores_do_the_same(tmp_path_factory, steps):
    memory, files = MemoryStore(), FileStore(tmp_path_factory.mktemp("store"))
    for verb, key, document in steps:
        arguments = (key, document) if verb == "create" else (key,)
        assert getattr(memory, verb)(*arguments) == getattr(files, verb)(*arguments)
        assert memory.keys() == files.keys()
        assert memory.get(key) == files.get(key)


def test_files_survive_a_restart_and_are_for_their_owners_eyes_only(tmp_path):
    FileStore(tmp_path / "store").create("a/b", b"kept")
    assert FileStore(tmp_path / "store").get("a/b") == b"kept"
    assert stat.S_IMODE((tmp_path / "store" / "a" / "b").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700


def test_of_many_processes_exactly_one_creates(tmp_path):
    program = (
        "import sys, pathlib\nfrom toolcrib.stores.files import FileStore\nstore = FileStore(pathlib.Path(sys.argv[1]))\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "print([n for n in range(20) if store.create(f'race/{n}', sys.argv[2].encode())])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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


def test_a_key_whose_path_is_taken_by_a_folder_or_leads_through_a_file_is_no_document(tmp_path):
    store = FileStore(tmp_path)
    store.create("a/b/c", b"x")
    assert store.get("a/b") is None
    assert not store.create("a/b", b"y")
    assert not store.remove("a/b")
    assert store.get("a/b/c/d") is None
    assert not store.remove("a/b/c/d")
    with pytest.raises(ToolError):
        store.create("a/b/c/d", b"z")
    assert store.keys() == ["a/b/c"]


def test_what_a_killed_writer_left_is_no_document(tmp_path):
    store = FileStore(tmp_path)
    store.create("a/b", b"x")
    (tmp_path / "a" / ".crib-0123456789abcdef.part").write_bytes(b"half")
    assert store.keys("a/") == ["a/b"]
