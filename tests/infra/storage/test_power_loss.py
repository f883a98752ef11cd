"""The power fails after every single call: what is found then is the old state or the new one, and what was acknowledged."""

import itertools
import os
import random
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import size
from toolcrib.infra.files import Disk
from toolcrib.infra.storage.file_store import FileStore

# Of so many pending changes every choice is looked at, of more as many choices by chance.
MOST_PENDING = 8
CHOICES = 256
NOTHING, HALF, ALL = 0, 1, 2


class RecordingDisk(Disk):
    """Writes as it is told, and notes down what a power loss could undo.

    A change of a folder stays pending until the folder is synced, the data of a file until the file is; the disk may have
    done any of what is pending, in any choice, and of data also the first half. Marks of generations are left out: they are
    never synced, and nobody believes them after a boot.
    """

    def __init__(self, root):
        self.known = {}
        self.numbers = itertools.count()
        self.state = {}
        self.pending = []
        self.cuts = []
        self.acknowledged = self.coming = {}
        self.root = self.number_of(root.stat().st_ino)
        self.state[self.root] = {}

    def number_of(self, inode, *, new=False):
        if new or inode not in self.known:
            self.known[inode] = next(self.numbers)
        return self.known[inode]

    def of(self, descriptor):
        return self.number_of(os.fstat(descriptor).st_ino)

    def named(self, name, folder):
        return self.number_of(os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino)

    def note(self, *change):
        self.pending.append(change)
        self.cut()

    def cut(self):
        self.cuts.append((dict(self.state), tuple(self.pending), self.acknowledged, self.coming))

    def open(self, path, flags, mode=0o600, *, folder=None):
        descriptor = super().open(path, flags, mode, folder=folder)
        if flags & os.O_EXCL:
            number = self.number_of(os.fstat(descriptor).st_ino, new=True)
            self.state[number] = b""
            self.note("entry", self.of(folder), ((path, number),))
        return descriptor

    def write(self, descriptor, data):
        self.note("data", self.of(descriptor), bytes(data))
        return super().write(descriptor, data)

    def sync(self, descriptor):
        number = self.of(descriptor)
        done = [change for change in self.pending if change[1] == number]
        self.pending = [change for change in self.pending if change[1] != number]
        self.state = after(self.state, [(change, ALL) for change in done])
        self.cut()

    def link(self, name, new, *, folder):
        super().link(name, new, folder=folder)
        self.note("entry", self.of(folder), ((new, self.named(new, folder)),))

    def rename(self, name, new, *, folder):
        super().rename(name, new, folder=folder)
        self.note("entry", self.of(folder), ((new, self.named(new, folder)), (name, None)))

    def exchange(self, name, other, *, folder):
        super().exchange(name, other, folder=folder)
        self.note("entry", self.of(folder), tuple((each, self.named(each, folder)) for each in (name, other)))

    def sync_files(self, names, *, folder):
        for name in names:
            descriptor = os.open(name, os.O_RDONLY, dir_fd=folder)
            self.sync(descriptor)
            os.close(descriptor)

    def unlink(self, name, *, folder):
        super().unlink(name, folder=folder)
        self.note("entry", self.of(folder), ((name, None),))

    def make_folder(self, name, mode, *, folder):
        super().make_folder(name, mode, folder=folder)
        number = self.number_of(os.stat(name, dir_fd=folder).st_ino, new=True)
        self.state[number] = {}
        self.note("entry", self.of(folder), ((name, number),))


class IdleDisk(Disk):
    """The disk after the power loss, of which nothing is asked any more."""

    def sync(self, descriptor):
        pass


def after(state, choices):
    """The state when of each change so much was done."""
    state = dict(state)
    for (kind, number, what), much in choices:
        if kind == "data":
            state[number] = state[number] + what[: len(what) * much // ALL]
        elif much:
            entries = dict(state[number])
            for name, target in what:
                entries.pop(name, None) if target is None else entries.__setitem__(name, target)
            state[number] = entries
    return state


def states(cut):
    """Every state that the disk may be in at this cut; where too much is pending, some of them."""
    state, pending, _, _ = cut
    options = [(NOTHING, HALF, ALL) if change[0] == "data" else (NOTHING, ALL) for change in pending]
    for much in itertools.product(*options) if len(pending) <= MOST_PENDING else some_choices(options):
        yield after(state, list(zip(pending, much, strict=True)))


def some_choices(options):
    """Up to where the changes were done in their order, each one done or missing alone, and choices by chance."""
    nothing, everything = [NOTHING] * len(options), [ALL] * len(options)
    for number in range(len(options)):
        yield everything[:number] + nothing[number:]
        yield nothing[:number] + everything[number : number + 1] + nothing[number + 1 :]
        yield everything[:number] + nothing[number : number + 1] + everything[number + 1 :]
    yield everything
    chance = random.Random(len(options))
    for _ in range(CHOICES):
        yield [chance.choice(each) for each in options]


def lay_out(state, number, folder):
    for name, target in state[number].items():
        if isinstance(state[target], dict):
            (folder / name).mkdir()
            lay_out(state, target, folder / name)
        else:
            (folder / name).write_bytes(state[target])


def documents_of(store):
    keys = store.keys()
    return dict(zip(keys, map(store.get, keys), strict=True))


def found_after(state, root, folder):
    """What a store finds that starts after the power loss; nothing half done may be left."""
    lay_out(state, root, folder)
    store = FileStore(folder, disk=IdleDisk())
    documents = documents_of(store)
    left = [
        path
        for path in folder.rglob(".crib-*")
        if stat.S_ISREG(path.lstat().st_mode) or path.suffix in (".trash", ".staged")
    ]
    assert left == []
    return documents


def perform(documents, step):
    """The documents after the step."""
    verb, key, *content = step
    if verb == "create_folder":
        is_there = any(name.startswith(f"{key}/") for name in documents)
        if is_there and len(content) == 1:
            return documents
        others = {name: document for name, document in documents.items() if not name.startswith(f"{key}/")}
        return {**others, **{f"{key}/{word}": document for word, document in content[0].items()}}
    if verb == "discard":
        return {name: document for name, document in documents.items() if not name.startswith(f"{key}/")}
    if verb == "remove":
        return {name: document for name, document in documents.items() if name != key}
    return documents if verb == "create" and key in documents else {**documents, key: content[0]}


def check(tmp_path, steps, before=lambda disk, root: None):
    """Perform the steps and look at every state that a power loss could leave; the number of those states."""
    root = tmp_path / "store"
    root.mkdir()
    disk = RecordingDisk(root)
    before(disk, root)
    store = FileStore(root, disk=disk)
    for step in steps:
        verb, *arguments = step
        if verb == "create_folder" and len(arguments) == 3 and not (root / arguments[0]).is_dir():
            continue  # only a folder that exists can be replaced
        disk.coming = perform(disk.acknowledged, step)
        options = {"replacing": arguments.pop()} if verb == "create_folder" and len(arguments) == 3 else {}
        getattr(store, verb)(*arguments, **options)
        disk.acknowledged = disk.coming
        disk.cut()
    assert documents_of(store) == disk.acknowledged
    seen = set()
    for cut in disk.cuts:
        for state in states(cut):
            picture = repr((state, cut[2], cut[3]))
            if picture in seen:
                continue
            seen.add(picture)
            with tempfile.TemporaryDirectory(dir=tmp_path) as place:
                assert found_after(state, disk.root, Path(place)) in (cut[2], cut[3])
    return len(seen)


@pytest.mark.spec("S1-82")
def test_documents_are_the_old_or_the_new_whenever_the_power_fails(tmp_path):
    steps = [
        ("create", "a/x/1", b"first of one"),
        ("create", "a/x/2", b"first of two"),
        ("replace", "a/x/1", b"second of one, longer"),
        ("create", "a/x/1", b"refused"),
        ("replace", "a/y/1", b"in another folder"),
        ("remove", "a/x/2"),
        ("replace", "a/x/2", b"two again"),
    ]
    assert check(tmp_path, steps) > 50


@pytest.mark.spec("S1-82")
def test_a_discarded_folder_is_there_as_a_whole_or_gone_whenever_the_power_fails(tmp_path):
    steps = [
        ("create", "a/x/1", b"one"),
        ("create", "a/x/2", b"two"),
        ("create", "a/y/1", b"stays"),
        ("discard", "a/x"),
        ("create", "a/x/1", b"new"),
        ("discard", "a/x"),
        ("discard", "a/y"),
    ]
    assert check(tmp_path, steps) > 50


@pytest.mark.spec("S1-94")
def test_a_folder_of_documents_is_there_as_a_whole_or_not_at_all_whenever_the_power_fails(tmp_path):
    steps = [
        ("create_folder", "a/x", {"1": b"one", "2": b"two"}),
        ("create_folder", "a/x", {"3": b"refused"}),
        ("create_folder", "a/x", {"1": b"another one", "3": b"three"}, True),
        ("create", "a/y/1", b"stays"),
        ("discard", "a/x"),
        ("create_folder", "a/x", {"1": b"back"}),
    ]
    assert check(tmp_path, steps) > 50


def test_a_folder_that_another_process_made_and_did_not_live_to_sync_is_synced_by_the_next_writer(tmp_path):
    def make_and_die(disk, root):
        for name in ("a", "x"):
            root, parent = root / name, os.open(root, os.O_RDONLY)
            disk.make_folder(name, 0o700, folder=parent)
            os.close(parent)

    check(tmp_path, [("create", "a/x/1", b"one"), ("create", "a/2", b"two")], before=make_and_die)


KEYS = st.sampled_from(["a/x/1", "a/x/2", "a/y/1", "b/1"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "replace"]), KEYS, st.binary(min_size=2, max_size=9)),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("discard"), st.sampled_from(["a/x", "a/y"])),
)
FOLDERS = st.dictionaries(st.sampled_from(["1", "2", "3"]), st.binary(min_size=2, max_size=9), min_size=1)
IMPORTS = st.one_of(
    st.tuples(st.just("create_folder"), st.sampled_from(["a/x", "a/y"]), FOLDERS),
    st.tuples(st.just("create_folder"), st.sampled_from(["a/x", "a/y"]), FOLDERS, st.just(value=True)),
)


@given(st.lists(STEPS, max_size=5))
@settings(max_examples=10)
def test_every_operation_is_done_or_not_when_the_power_fails(tmp_path_factory, steps):
    check(tmp_path_factory.mktemp("power"), steps)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@given(st.lists(st.one_of(STEPS, IMPORTS), max_size=12))
@settings(max_examples=size(300))
def test_the_power_may_fail_at_any_moment_of_a_long_story(tmp_path_factory, steps):
    check(tmp_path_factory.mktemp("power"), steps)


@pytest.mark.parametrize("forgotten", ["file", "folder"])
def test_a_disk_that_is_not_synced_is_found_out(tmp_path, monkeypatch, forgotten):
    real = RecordingDisk.sync

    def sync(self, descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if is_folder is (forgotten == "file"):
            real(self, descriptor)

    monkeypatch.setattr(RecordingDisk, "sync", sync)
    with pytest.raises(AssertionError):
        check(tmp_path, [("create", "a/1", b"one"), ("replace", "a/1", b"two")])
