"""Files of tools: every edit is seen on the next call, and nothing that lies in the folder can stop the others."""

import gc
import os
import shutil
import socket
import threading

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.core.catalog import Catalog
from toolcrib.core.file_source import MAX_FILE_BYTES, FileSource
from toolcrib.core.sources import Rank, ToolList
from toolcrib.infra import files as stamps_module


@pytest.fixture
def catalog(files):
    catalog = Catalog()
    catalog.add_source(files.folder())
    return catalog


def code(catalog: Catalog, name: str) -> bytes | None:
    entry = catalog.find(name)
    return None if entry is None else entry.tool.run.code


def messages(catalog: Catalog) -> list[str]:
    return [problem.message for problem in catalog.problems()]


def test_an_edit_is_seen_on_the_next_call(catalog, files):
    path = files.write("x.py", "one")
    assert b"'one'" in code(catalog, "x")
    files.settle()
    before = catalog.find("x").tool
    assert catalog.find("x").tool is before
    path.write_text(path.read_text().replace("one", "two"))
    assert b"'two'" in code(catalog, "x")


def test_edits_within_one_tick_of_the_clock_are_all_seen(catalog, files, monkeypatch):
    # Same length, same file, and a file system whose clock has not moved on in between.
    monkeypatch.setattr(stamps_module, "stamp_of", lambda status: (0, 0, status.st_size, status.st_ino))
    # However long a step takes on a busy machine, the file counts as one that was just written.
    monkeypatch.setattr(stamps_module, "RACY_NANOSECONDS", 10**15)
    path = files.write("x.py", "000")
    for number in range(20):
        with path.open("r+b") as file:
            file.seek(path.read_bytes().index(b"'") + 1)
            file.write(b"%03d" % number)
        assert b"'%03d'" % number in code(catalog, "x")


def test_an_edit_that_puts_the_time_of_writing_back_is_seen(catalog, files):
    path = files.write("x.py", "one")
    files.settle()
    assert b"'one'" in code(catalog, "x")
    before = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"one", b"two"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert b"'two'" in code(catalog, "x")


def test_a_file_that_is_as_it_was_keeps_its_tool(catalog, files):
    path = files.write("x.py")
    files.write("y.py")
    before = catalog.find("x").tool
    os.utime(path)
    files.write("z.py")
    assert catalog.find("z") is not None
    assert catalog.find("x").tool is before


def test_a_deleted_file_is_gone_and_a_new_one_is_found(catalog, files):
    assert catalog.find("x") is None
    path = files.write("x.py")
    assert catalog.find("x") is not None
    files.settle()
    assert catalog.find("x") is not None
    path.unlink()
    assert catalog.find("x") is None
    assert list(catalog.entries()) == []
    shutil.rmtree(files.path)
    assert catalog.find("x") is None
    assert messages(catalog) == []
    files.path.mkdir()
    files.write("x.py")
    assert catalog.find("x") is not None


def test_a_file_that_was_renamed_is_found_by_its_new_name_alone(catalog, files):
    path = files.write("x.py")
    assert catalog.find("x") is not None
    path.rename(files.path / "y.py")
    assert catalog.find("x") is None
    assert catalog.find("y").tool.name == "y"


def test_a_file_that_breaks_is_no_longer_callable_and_says_why(catalog, files):
    path = files.write("weather.py")
    assert catalog.find("weather") is not None
    path.write_text("def weather(:\n")
    assert catalog.find("weather") is None
    assert catalog.suggest("weather").startswith("its file is broken: tools/weather.py:1: ")
    assert str(files.path.parent) not in catalog.suggest("weather")
    assert [message.split(": ")[0] for message in messages(catalog)] == [f"{path}:1"]
    files.write("weather.py")
    assert catalog.find("weather") is not None
    assert messages(catalog) == []


async def test_who_calls_a_broken_file_is_told_what_is_wrong_with_it(project):
    (project / "tools" / "weather.py").write_text("def weather(:\n")
    async with Crib(project) as crib:
        result = await crib.call("weather")
    assert result.error.kind is Kind.NOT_FOUND
    assert "its file is broken: tools/weather.py:1: " in result.error.message


def test_a_broken_file_keeps_its_name_from_tools_further_back(catalog, files, make_tool, tmp_path):
    later = tmp_path / "later"
    later.mkdir()
    shutil.copy(files.write("read_file.py"), later)
    catalog.add_source(FileSource(later, "later", files.folder()._formats))
    catalog.add_source(ToolList(Rank.BUILTINS, [make_tool("read_file", "builtin")]))
    assert catalog.find("read_file").tool.bundle == "tools"
    files.write_text("read_file.py", "not python")
    assert catalog.find("read_file") is None
    assert catalog.find("read-file") is None
    assert catalog.find("later/read_file").tool.bundle == "later"
    assert catalog.find("builtin/read_file").tool.bundle == "builtin"
    (files.path / "read_file.py").unlink()
    assert catalog.find("read_file").tool.bundle == "later"


def test_a_new_file_takes_its_name_from_tools_further_back_on_the_next_call(catalog, files, make_tool):
    catalog.add_source(ToolList(Rank.BUILTINS, [make_tool("fetch", "builtin")]))
    files.settle()
    assert catalog.find("fetch").tool.bundle == "builtin"
    files.write("fetch.py")
    assert catalog.find("fetch").tool.bundle == "tools"
    assert catalog.same_name(catalog.find("fetch").tool) == ["builtin/fetch@1.0.0"]


def test_a_tool_of_the_host_program_that_stands_before_the_folder_does_not_wait_for_it(files, make_tool, monkeypatch):
    catalog = Catalog()
    catalog.add(make_tool("fast"))
    folder = files.folder()
    catalog.add_source(folder)

    def fail(*_):
        raise AssertionError

    for door in ("refresh", "refresh_names", "refresh_file"):
        monkeypatch.setattr(folder, door, fail)
    for _ in range(2):
        assert catalog.find("fast").tool.bundle == "host"


def test_one_broken_file_does_not_hide_the_others(catalog, files):
    files.write("good.py")
    files.write_text("broken.py", "def broken(:")
    files.write_text("empty.py", "")
    (files.path / "latin.py").write_bytes("# Grüße\ndef latin(): ...\n".encode("latin-1"))
    (files.path / "nul.py").write_bytes(b"def nul(): ...\0")
    (files.path / "huge.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    (files.path / "deep.py").write_text("x = " + "(" * 5_000)
    (files.path / "bad name.py").write_text("def f(): ...")
    (files.path / "notes.txt").write_text("no tool")
    (files.path / "folder.py").mkdir()
    assert [entry.tool.name for entry in catalog.entries()] == ["good"]
    told = {message.removeprefix(f"{files.path}/").split(":")[0]: message for message in messages(catalog)}
    assert sorted(told) == ["bad name.py", "broken.py", "deep.py", "empty.py", "huge.py", "latin.py", "nul.py"]
    assert f"has more than {MAX_FILE_BYTES} bytes" in told["huge.py"]
    assert "not UTF-8" in told["latin.py"]


@pytest.mark.timeout(20)
def test_what_is_no_plain_file_is_reported_and_never_waited_for(catalog, files):
    files.write("good.py")
    os.mkfifo(files.path / "pipe.py")
    (files.path / "lost.py").symlink_to("nowhere.py")
    (files.path / "loop.py").symlink_to("loop.py")
    (files.path / "zero.py").symlink_to("/dev/zero")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(files.path / "talk.py"))
    listener.close()
    assert [entry.tool.name for entry in catalog.entries()] == ["good"]
    assert catalog.find("pipe") is None
    told = dict(message.removeprefix(f"{files.path}/").split(": ", 1) for message in messages(catalog))
    assert sorted(told) == ["loop.py", "lost.py", "pipe.py", "talk.py", "zero.py"]
    assert told["pipe.py"] == told["zero.py"] == "is not a regular file; move it away"


def test_a_link_to_a_file_is_that_file_and_an_edit_behind_it_is_seen(catalog, files, tmp_path):
    real = tmp_path / "real.py"
    real.write_text("def linked(): return 'one'\n")
    (files.path / "linked.py").symlink_to(real)
    assert b"'one'" in code(catalog, "linked")
    files.settle(real)
    assert b"'one'" in code(catalog, "linked")
    real.write_text("def linked(): return 'two'\n")
    assert b"'two'" in code(catalog, "linked")


def test_a_file_whose_name_is_not_utf_8_is_reported_in_words_that_can_be_printed(catalog, files):
    files.write("good.py")
    (files.path / os.fsdecode(b"\xff\xfe.py")).write_text("def f(): ...")
    assert catalog.find("good") is not None
    (message,) = messages(catalog)
    assert "b'\\xff\\xfe.py' is not UTF-8; rename it" in message
    message.encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(catalog, files):
    files.write("secret.py").chmod(0)
    assert catalog.find("secret") is None
    assert "Permission denied" in messages(catalog)[0]


def test_a_folder_that_is_a_file_is_reported_and_the_others_work(files, tmp_path, make_tool):
    (tmp_path / "file").write_text("x")
    files.write("good.py")
    catalog = Catalog()
    catalog.add_source(FileSource(tmp_path / "file", "file", []))
    catalog.add_source(files.folder())
    catalog.add_source(FileSource(tmp_path / "absent", "absent", []))
    assert catalog.find("good") is not None
    assert messages(catalog) == [f"{tmp_path}/file: Not a directory; fix it or move it away"]


def test_two_files_with_one_slug_are_reported_and_the_first_by_name_is_meant(catalog, files):
    first, second = files.write("my-tool.py", "first"), files.write("my_tool.py", "second")
    assert b"'first'" in code(catalog, "my_tool")
    assert messages(catalog) == [f"{second}:1: tools/my-tool@1.0.0 is already defined in {first}:1; rename one of them"]
    first.unlink()
    assert b"'second'" in code(catalog, "my-tool")
    assert messages(catalog) == []


def test_a_file_that_a_tool_of_the_host_program_hides_is_reported(files, make_tool):
    files.write("same.py")
    catalog = Catalog()
    catalog.add(make_tool("same", "tools"))
    catalog.add_source(files.folder())
    assert catalog.find("tools/same").tool.kind == "function"
    (message,) = messages(catalog)
    assert "tools/same@1.0.0 is already defined in the host program; rename one of them" in message


def test_files_are_switched_off_and_stay_so_when_they_change(files):
    files.write("x.py", "one")
    files.write("y.py", "one")
    catalog = Catalog(frozenset({"tools/x", "broken"}), "disabled in toolcrib.toml")
    catalog.add_source(files.folder())
    assert not catalog.find("x").enabled
    files.write("x.py", "other")
    assert not catalog.find("x").enabled
    assert catalog.find("y").enabled
    files.write_text("broken.py", "(")
    assert [message for message in messages(catalog) if "disabled" in message] == []


def test_a_format_that_fails_costs_one_file(files, caplog):
    class Moody:
        name = "moody"

        def reads(self, path):
            return path.suffix == ".moody"

        def read(self, path, code):
            raise ZeroDivisionError

    files.write("good.py")
    (files.path / "x.moody").write_text("")
    catalog = Catalog()
    catalog.add_source(FileSource(files.path, "tools", [Moody(), *files.folder()._formats]))
    assert catalog.find("good") is not None
    assert messages(catalog) == [
        f"{files.path}/x.moody: the format 'moody' failed on it (ZeroDivisionError); see the log"
    ]
    assert "could not be read by the format moody" in caplog.text


def test_a_call_of_a_file_looks_at_that_file_alone(catalog, files, monkeypatch):
    for number in range(50):
        files.write(f"tool_{number}.py")
    files.settle()
    assert len(list(catalog.entries())) == 50
    looked = []
    _, folder = catalog._sources
    look = folder._look_at
    monkeypatch.setattr(folder, "_look_at", lambda name: looked.append(name) or look(name))
    assert catalog.find("tool_7") is not None
    assert catalog.find("tools/tool_8") is not None
    assert looked == ["tool_7.py", "tool_8.py"]


def test_threads_see_whole_tools_while_files_are_replaced(catalog, files):
    files.write("x.py", "a" * 500)
    stop, wrong = threading.Event(), []

    def look():
        while not stop.is_set():
            try:
                text = code(catalog, "x")
            except (ToolError, RuntimeError, KeyError) as problem:
                wrong.append(repr(problem))
            else:
                if text is None or len({*text.split(b"'")[1]}) != 1:
                    wrong.append(text)

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    for number in range(100):
        files.write("x.part", "abcdefghij"[number % 10] * 500)
        (files.path / "x.part").replace(files.path / "x.py")
    stop.set()
    for looker in lookers:
        looker.join(20)
    assert wrong == []


class Watching:
    """A format that notes whether the garbage collector runs while it reads."""

    name = "watching"

    def __init__(self) -> None:
        self.collecting: list[bool] = []

    def reads(self, path) -> bool:
        return True

    def read(self, path, code) -> list:
        self.collecting.append(gc.isenabled())
        if path.name == "inner.py":
            return []
        # Another source is read meanwhile, as a second thread would.
        inner = path.parent.parent / "other"
        inner.mkdir()
        (inner / "inner.py").touch()
        FileSource(inner, "other", [self]).entries()
        self.collecting.append(gc.isenabled())
        raise RuntimeError


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_pauses_while_files_are_read_and_is_then_as_the_program_set_it(files, enabled):
    files.write("x.py")
    watching = Watching()
    try:
        if not enabled:
            gc.disable()
        FileSource(files.path, "tools", [watching]).entries()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert watching.collecting == [False, False, False]


def test_a_function_that_is_no_tool_leaves_the_collector_running():
    def wrong(*items: int) -> int:
        return sum(items)

    with pytest.raises(ToolError):
        Crib(tools=[wrong])
    assert gc.isenabled()
