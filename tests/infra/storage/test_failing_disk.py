"""Whichever call of a write fails, and how: the old state is intact, the error names the cure, and nothing is left open."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.files import Disk
from toolcrib.infra.storage.file_store import FileStore

CURES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the quota is used up; free some space",
    errno.EROFS: "read-only file system; use another folder",
    errno.EMFILE: "too many open files; raise the limit of open files",
    errno.EIO: "the disk reports an error; check the disk",
    errno.EINTR: "fails with: Interrupted system call; check the file and its disk",
}
CALLS = (
    "open",
    "write",
    "overwrite",
    "sync",
    "link",
    "rename",
    "exchange",
    "unlink",
    "make_folder",
    "touch",
    "sync_files",
)


class FailingDisk(Disk):
    """Fails the n-th call and, where `lasting`, every one after it; writes at most `most` bytes at once."""

    def __init__(self, number, *, lasting=False, most=1_000_000):
        self.number, self.lasting, self.most = number, lasting, most
        self.left = -1
        self.failed = []

    def arm(self, n):
        self.left, self.failed = n, []

    def write(self, descriptor, data):
        return super().write(descriptor, data[: self.most])

    def sync(self, descriptor):
        """Succeeds at once: whether something lasts is not asked here, so there is no need to wait for the disk."""


def failing(name):
    real = getattr(FailingDisk, name)

    def call(self, *arguments, **options):
        self.left -= 1
        if self.left == 0 or (self.lasting and self.left < 0 and self.failed):
            self.failed.append(name)
            raise OSError(self.number, os.strerror(self.number))
        return real(self, *arguments, **options)

    return call


for _name in CALLS:
    setattr(FailingDisk, _name, failing(_name))


def documents_of(store):
    keys = store.keys()
    return dict(zip(keys, map(store.get, keys), strict=True))


def half_done(root):
    return list(root.rglob(".crib-*"))


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


OLD = {"a/x/1": b"old", "a/x/2": b"other"}
ACTIONS = {
    "create": (lambda store: store.create("a/x/3", b"new" * 50), {**OLD, "a/x/3": b"new" * 50}),
    "create in a new folder": (lambda store: store.create("a/y/1", b"new"), {**OLD, "a/y/1": b"new"}),
    "replace": (lambda store: store.replace("a/x/1", b"new" * 50), {**OLD, "a/x/1": b"new" * 50}),
    "remove": (lambda store: store.remove("a/x/1"), {"a/x/2": b"other"}),
    "create a folder": (
        lambda store: store.create_folder("a/y", {"1": b"new" * 50, "2": b"two"}),
        {**OLD, "a/y/1": b"new" * 50, "a/y/2": b"two"},
    ),
    "replace a folder": (
        lambda store: store.create_folder("a/x", {"1": b"new" * 50, "3": b"three"}, replacing=True),
        {"a/x/1": b"new" * 50, "a/x/3": b"three"},
    ),
    "discard": (lambda store: store.discard("a/x"), {}),
}


# Which error; whether it lasts; how much is written at once.
WAYS = [
    *((number, False, 1_000_000) for number in CURES),
    (errno.EROFS, True, 1_000_000),
    (errno.ENOSPC, True, 7),
]


@pytest.mark.parametrize(("number", "lasting", "most"), WAYS)
@pytest.mark.parametrize("action", ACTIONS)
def test_whichever_call_fails_the_old_state_is_intact_and_nothing_is_left(tmp_path, action, number, lasting, most):
    perform, new = ACTIONS[action]
    for n in range(1, 100):
        root = tmp_path / str(n)
        disk = FailingDisk(number, lasting=lasting, most=most)
        store = FileStore(root, disk=disk)
        for key, document in OLD.items():
            store.create(key, document)
        if n % 2:  # a store that has not yet written to the folder does more
            store = FileStore(root, disk=disk)
        before = open_descriptors()
        disk.arm(n)
        try:
            perform(store)
        except ToolError as error:
            problem = error
        else:
            problem = None
        failed = disk.failed
        disk.arm(-1)
        assert open_descriptors() == before
        if problem is None:
            assert documents_of(store) == new
            if not failed:
                break
            continue
        assert CURES[number] in problem.message
        assert str(root) in problem.message
        assert problem.kind is Kind.PERMANENT
        assert documents_of(store) == (new if problem.partial_side_effects else OLD)
        assert half_done(root) == []
    assert n > 4
    assert documents_of(store) == new
    assert half_done(root) == []


def test_what_is_in_place_but_perhaps_not_to_stay_is_said_to_be_so(tmp_path):
    disk = FailingDisk(errno.EIO)
    store = FileStore(tmp_path, disk=disk)
    store.create("a/1", b"old")
    outcomes = set()
    for n in range(1, 20):
        store.replace("a/1", b"old")
        disk.arm(n)
        try:
            store.replace("a/1", b"new")
        except ToolError as error:
            outcomes.add((error.partial_side_effects, *disk.failed))
        disk.arm(-1)
    assert (True, "sync") in outcomes  # of the folder
    assert (False, "sync") in outcomes  # of the file
    assert (True, "rename") not in outcomes


def test_a_sync_that_failed_is_not_tried_again(tmp_path):
    syncs = []

    class Watched(Disk):
        def sync(self, descriptor):
            syncs.append(descriptor)
            raise OSError(errno.EIO, "no")

    FileStore(tmp_path).create("a/1", b"old")
    store = FileStore(tmp_path, disk=Watched())
    store._settled.add((tmp_path / "a").stat().st_ino)
    for action in (lambda: store.replace("a/1", b"new"), lambda: store.create("a/2", b"new")):
        syncs.clear()
        with pytest.raises(ToolError, match="the disk reports an error"):
            action()
        assert len(syncs) == 1
    assert FileStore(tmp_path).get("a/1") == b"old"


def test_nothing_that_was_discarded_is_deleted_before_its_new_name_is_there_to_stay(tmp_path):
    class Unsynced(Disk):
        def sync(self, descriptor):
            raise OSError(errno.EIO, "no")

    FileStore(tmp_path).create("a/x/1", b"kept")
    store = FileStore(tmp_path, disk=Unsynced())
    with pytest.raises(ToolError) as caught:
        store.discard("a/x")
    assert caught.value.partial_side_effects
    assert store.keys() == []
    assert [path.name for path in tmp_path.rglob("*.trash/*")] == ["1"]
    assert FileStore(tmp_path).keys() == []
    assert half_done(tmp_path) == []


SMALL = """
import ctypes, os, sys
from pathlib import Path
from toolcrib import ToolError
from toolcrib.infra.storage.file_store import FileStore
library = ctypes.CDLL(None, use_errno=True)
place = sys.argv[1].encode()
if library.unshare(0x00020000) or library.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
if library.mount(b"tmpfs", place, b"tmpfs", 0, b"size=128k"):
    sys.exit(77)
store = FileStore(Path(sys.argv[1]) / "store")
kept = {}
try:
    for number in range(1_000):
        store.create(f"a/{number}", b"x" * 5_000)
        kept[f"a/{number}"] = b"x" * 5_000
except ToolError as error:
    print(error.message.partition(" ")[2])
print({key: store.get(key) for key in store.keys()} == kept, len(kept) > 5)
print([path.name for path in Path(sys.argv[1]).rglob(".crib-*")])
# Room that is given back can be used, and the space hears of it though the disk was full.
before = store.generation("a")
store.remove("a/0")
print(store.generation("a") != before, store.create("a/0", b"again"))
"""


def test_a_disk_that_is_really_full_refuses_and_keeps_what_it_has(tmp_path):
    command = [sys.executable, "-c", SMALL, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if run.returncode == 77:
        pytest.skip("no file system can be mounted here")
    assert run.stderr == ""
    assert run.stdout.splitlines() == ["has no room: the disk is full; free some space", "True True", "[]", "True True"]
