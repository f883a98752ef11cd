"""Documents as files that people and other programs can look at, edit, break and replace."""

import os
import socket
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.infra.storage import file_store, is_key
from toolcrib.lib.document_format import to_filename
from toolcrib.lib.names import new_id


@pytest.fixture
def store(tmp_path):
    return file_store.FileStore(tmp_path)


def within(seconds, action):
    """What comes of the action, which may not hang."""
    outcome = []

    def run():
        try:
            outcome.append(action())
        except ToolError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, "it hangs"
    return outcome[0]


class TestNames:
    @pytest.mark.spec("S1-45")
    def test_names_that_differ_in_case_alone_are_different_files_on_every_file_system(self, store, tmp_path):
        for slug in ("Weather", "weather", "WEATHER", "größe", "GRÖSSE", "Größe"):
            assert store.create(f"bundles/b/{to_filename(slug)}@{to_filename('V1')}.json", slug.encode())
        names = [path.name for path in (tmp_path / "bundles" / "b").iterdir()]
        assert len({name.casefold() for name in names}) == 6
        assert all(name.isascii() and name == name.lower() for name in names)
        assert store.get("bundles/b/_weather@_v1.json") == b"Weather"

    @given(slug=st.text(min_size=1, max_size=64), version=st.text(min_size=1, max_size=64))
    def test_every_slug_and_version_has_a_key(self, slug, version):
        assert is_key(f"bundles/{new_id()}/{to_filename(slug)}@{to_filename(version)}.json")

    def test_a_document_is_a_file_that_an_editor_can_read_and_change(self, store, tmp_path):
        store.create("bundles/b/weather@v1.json", b'{"slug": "weather"}\n')
        path = tmp_path / "bundles" / "b" / "weather@v1.json"
        assert path.read_text() == '{"slug": "weather"}\n'
        before = store.stamp("bundles/b/weather@v1.json")
        path.write_text('{"slug": "changed"}\n')
        assert store.get("bundles/b/weather@v1.json") == b'{"slug": "changed"}\n'
        assert store.stamp("bundles/b/weather@v1.json") != before

    @pytest.mark.parametrize(
        "name", [".hidden", "Upper", "with space", "ümlaut", "a~", "-dash", b"\xff".decode("utf-8", "surrogateescape")]
    )
    def test_files_of_others_are_no_documents(self, store, tmp_path, name):
        store.create("a/x/1", b"")
        for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "x"):
            (folder / name).mkdir()
            (folder / name / "file").touch()
        (tmp_path / "a" / f"{name}.json").touch()
        assert store.keys() == ["a/x/1"]
        assert list(store.folders("a")) == ["x"]


class TestNotADocument:
    KEY = "a/b/c"

    def doors(self, store):
        return {
            "get": lambda: store.get(self.KEY),
            "replace": lambda: store.replace(self.KEY, b"new"),
            "remove": lambda: store.remove(self.KEY),
        }

    def make(self, kind, path, tmp_path):
        path.parent.mkdir(parents=True)
        if kind == "link":
            (tmp_path / "secret").write_bytes(b"secret")
            path.symlink_to(tmp_path / "secret")
        elif kind == "dangling link":
            path.symlink_to(tmp_path / "nowhere")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))

    @pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "socket"])
    @pytest.mark.parametrize("door", ["get", "replace", "remove"])
    def test_it_is_listed_and_reported_and_neither_followed_nor_waited_for(self, store, tmp_path, kind, door):
        path = tmp_path / "a" / "b" / "c"
        self.make(kind, path, tmp_path)
        before = path.lstat()
        assert store.keys() == [self.KEY]
        assert list(store.stamps("a/")) == [self.KEY]
        error = within(10, self.doors(store)[door])
        assert isinstance(error, ToolError)
        assert error.message == f"'{path}' is not a regular file; move it away"
        assert path.lstat().st_ino == before.st_ino
        assert not (tmp_path / "nowhere").exists()
        assert within(10, lambda: store.create(self.KEY, b"new")) is False
        assert not (tmp_path / "secret").exists() or (tmp_path / "secret").read_bytes() == b"secret"

    @pytest.mark.parametrize("door", ["get", "create", "replace", "remove", "stamps", "folders", "discard"])
    def test_a_folder_that_is_a_link_is_not_entered(self, store, tmp_path, door):
        outside = tmp_path / "outside"
        (outside / "b").mkdir(parents=True)
        (outside / "b" / "c").write_bytes(b"secret")
        root = tmp_path / "root"
        store = file_store.FileStore(root)
        store.create("a/other/1", b"")
        (root / "a" / "x").symlink_to(outside)
        doors = {
            "get": lambda: store.get("a/x/b/c"),
            "create": lambda: store.create("a/x/b/d", b""),
            "replace": lambda: store.replace("a/x/b/c", b""),
            "remove": lambda: store.remove("a/x/b/c"),
            "stamps": lambda: store.stamps("a/x/"),
            "folders": lambda: store.folders("a/x"),
            "discard": lambda: store.discard("a/x"),
        }
        with pytest.raises(ToolError, match="'x' is a link where a folder of our own should be") as caught:
            doors[door]()
        assert caught.value.kind is Kind.BLOCKED
        assert [path.name for path in outside.rglob("*")] == ["b", "c"]
        assert (outside / "b" / "c").read_bytes() == b"secret"
        assert store.folders("a").keys() == {"other"}
        assert store.keys() == ["a/other/1", "a/x"]

    def test_a_folder_or_what_leads_through_a_file_is_no_document(self, store):
        store.create("a/b/c", b"x")
        assert store.get("a/b") is None
        assert store.stamp("a/b") is None
        assert not store.create("a/b", b"y")
        assert not store.remove("a/b")
        assert store.get("a/b/c/d") is None
        assert not store.remove("a/b/c/d")
        for action in (
            lambda: store.create("a/b/c/d", b"z"),
            lambda: store.replace("a/b/c/d", b"z"),
            lambda: store.replace("a/b", b"z"),
            lambda: store.discard("a/b/c"),
        ):
            with pytest.raises(ToolError) as caught:
                action()
            assert caught.value.kind is Kind.VALIDATION
        assert store.keys() == ["a/b/c"]
        assert store.get("a/b/c") == b"x"


class TestLeftovers:
    def test_what_a_killed_writer_left_is_no_document_and_goes_at_the_next_look(self, store, tmp_path):
        store.create("a/b", b"x")
        left = tmp_path / "a" / ".crib-0123456789abcdef.part"
        left.write_bytes(b"half")
        assert store.keys("a/") == ["a/b"]
        assert not left.exists()

    def test_what_a_killed_writer_left_goes_at_the_next_write(self, store, tmp_path):
        left = tmp_path / "a" / ".crib-0123456789abcdef.part"
        trash = tmp_path / ".crib-0123456789abcdef.trash"
        left.parent.mkdir()
        trash.mkdir()
        left.write_bytes(b"half")
        store.create("a/b", b"x")
        assert not left.exists()
        assert not trash.exists()

    def test_a_link_that_is_named_like_trash_is_not_followed(self, store, tmp_path):
        store.create("a/b/1", b"kept")
        (tmp_path / "a" / ".crib-0123456789abcdef.trash").symlink_to("b")
        assert store.keys() == ["a/b/1"]
        assert store.get("a/b/1") == b"kept"

    def test_a_store_that_may_only_be_read_can_be_listed(self, tmp_path):
        file_store.FileStore(tmp_path).create("a/b", b"x")
        (tmp_path / "a" / ".crib-0123456789abcdef.part").write_bytes(b"half")
        (tmp_path / "a").chmod(0o500)
        try:
            assert file_store.FileStore(tmp_path).keys() == ["a/b"]
        finally:
            (tmp_path / "a").chmod(0o700)


class TestGenerations:
    def test_a_generation_is_another_after_another_boot(self, tmp_path, monkeypatch):
        file_store.FileStore(tmp_path).create("a/b", b"")
        here = file_store.FileStore(tmp_path).generation("a")
        assert file_store.FileStore(tmp_path).generation("a") == here
        (tmp_path / "boot").write_text("another\n")
        monkeypatch.setattr(file_store, "BOOT_ID", tmp_path / "boot")
        there = file_store.FileStore(tmp_path).generation("a")
        assert there.startswith("another.")
        assert there.rpartition(".")[2] == here.rpartition(".")[2]

    def test_where_no_boot_can_be_told_from_another_marks_alone_count(self, tmp_path, monkeypatch):
        monkeypatch.setattr(file_store, "BOOT_ID", tmp_path / "nowhere")
        store = file_store.FileStore(tmp_path)
        before = store.generation("a")
        store.create("a/b", b"")
        assert store.generation("a") != before

    def test_marks_are_small_private_and_of_one_size(self, store, tmp_path):
        for number in range(20):
            store.replace("a/b", str(number).encode())
        status = (tmp_path / ".generations" / "a").stat()
        assert (status.st_size, stat.S_IMODE(status.st_mode)) == (16, 0o600)

    def test_a_mark_that_was_deleted_or_emptied_is_made_anew(self, store, tmp_path):
        store.create("a/b", b"")
        seen = {store.generation("a")}
        (tmp_path / ".generations" / "a").write_bytes(b"")
        seen.add(store.generation("a"))
        store.replace("a/b", b"")
        seen.add(store.generation("a"))
        (tmp_path / ".generations" / "a").unlink()
        seen.add(store.generation("a"))
        store.remove("a/b")
        seen.add(store.generation("a"))
        assert len(seen) == 5

    def test_a_link_in_place_of_a_mark_is_neither_read_nor_written(self, store, tmp_path):
        (tmp_path / ".generations").mkdir()
        (tmp_path / "secret").write_bytes(b"0123456789abcdef")
        (tmp_path / ".generations" / "a").symlink_to(tmp_path / "secret")
        for action in (lambda: store.generation("a"), lambda: store.create("a/b", b"")):
            with pytest.raises(ToolError) as caught:
                action()
            assert caught.value.kind is Kind.BLOCKED
        assert (tmp_path / "secret").read_bytes() == b"0123456789abcdef"
        assert store.get("a/b") is None

    def test_a_pipe_in_place_of_a_mark_does_not_block(self, store, tmp_path):
        (tmp_path / ".generations").mkdir()
        os.mkfifo(tmp_path / ".generations" / "a")
        within(10, lambda: store.generation("a"))
        assert isinstance(within(10, lambda: store.create("a/b", b"")), ToolError)


@pytest.mark.parametrize("prefix", ["x/", "x/f/", "x/f/g/", "x/f/g/1"])
def test_a_folder_that_is_discarded_while_it_is_listed_is_gone_as_a_whole(store, monkeypatch, prefix):
    for number in range(10, 30):
        store.create(f"x/f/g/{number}", b"")
    real, read = os.scandir, []

    class Interrupted:
        def __init__(self, folder):
            self.scan = real(folder)

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            self.scan.close()

        def __iter__(self):
            for entry in self.scan:
                yield entry
                read.append(entry.name)
                if len(read) == 12:
                    monkeypatch.setattr(os, "scandir", real)
                    store.discard("x/f")

    monkeypatch.setattr(os, "scandir", Interrupted)
    assert store.keys(prefix) == []
    assert len(read) >= 12


def test_locks_and_marks_are_no_keys(store):
    store.create("a/b", b"")
    with store.lock("store"), store.lock("bundle/1"):
        assert store.keys() == ["a/b"]
        assert sorted(store.stamps("")) == ["a/b"]


@pytest.mark.spec("S1-82")
def test_readers_see_one_whole_document_or_the_other(store):
    documents = [bytes([letter]) * 50_000 for letter in b"ab"]
    store.replace("a/b", documents[0])
    stop, torn = threading.Event(), []

    def watch():
        while not stop.is_set():
            if (data := store.get("a/b")) not in documents:
                torn.append(data)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(60):
        store.replace("a/b", documents[number % 2])
    stop.set()
    watcher.join(10)
    assert torn == []


def test_a_huge_file_in_the_place_of_a_document_is_read_no_further_than_the_limit(store):
    store.create("a/b", b"")
    os.truncate(store._root / "a" / "b", 1 << 40)
    with pytest.raises(ToolError, match="has more than 1000 bytes; make it smaller, or move it away"):
        store.get("a/b", 1_000)
