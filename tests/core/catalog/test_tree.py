"""Trees of tool files: every folder belongs to it, within bounds, and an edit anywhere is seen on the next call."""

import asyncio
import os
import shutil

import pytest

from sample_tools import host_tool
from toolcrib import Crib, Kind
from toolcrib.core.catalog import Catalog
from toolcrib.core.file_source import FileSource
from toolcrib.core.sources import Rank, ToolList
from toolcrib.infra import files as tree_module


@pytest.fixture
def catalog(tree):
    catalog = Catalog()
    catalog.add_source(tree.folder("project"))
    return catalog


def names(catalog: Catalog) -> list[str]:
    return [entry.tool.name for entry in catalog.entries()]


def messages(catalog: Catalog) -> list[str]:
    return [problem.message for problem in catalog.problems()]


@pytest.mark.spec("S3-03")
def test_the_files_of_every_folder_are_tools_without_any_repository_around_them(catalog, tree):
    tree.write("top.card")
    tree.write("utility/hello.card")
    tree.write("deployment/kubernetes/deploy.card", "deploy 2.1.0")
    assert sorted(names(catalog)) == ["deploy", "hello", "top"]
    assert catalog.find("deploy@2.1.0").tool.address == "project/deploy@2.1.0"
    assert [name for name, _ in catalog._sources[1].files] == [
        "deployment/kubernetes/deploy.card",
        "top.card",
        "utility/hello.card",
    ]
    assert messages(catalog) == []


@pytest.mark.parametrize(
    "folder", [".git", ".venv", ".hidden/below", "node_modules/pkg", "__pycache__", "venv/lib", "a/node_modules"]
)
def test_what_package_managers_fill_and_what_is_hidden_is_no_place_for_tools(catalog, tree, folder):
    tree.write("good.card")
    tree.write(f"{folder}/stray.card")
    assert names(catalog) == ["good"]
    assert catalog.find("stray") is None
    assert messages(catalog) == []


def test_a_python_environment_of_any_name_is_no_place_for_tools(catalog, tree):
    tree.write("good.card")
    tree.write("envs/mine/lib/stray.card")
    assert catalog.find("stray") is not None
    tree.settle()
    assert catalog.find("stray") is not None
    (tree.path / "envs/mine/pyvenv.cfg").touch()
    assert catalog.find("stray") is None
    assert names(catalog) == ["good"]
    (tree.path / "pyvenv.cfg").touch()
    assert names(catalog) == ["good"]


def test_a_link_to_a_folder_is_not_followed_and_one_to_a_file_is(catalog, tree, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/outside.card").write_text("outside 1.0.0")
    (tree.path / "link").symlink_to(tmp_path / "elsewhere")
    (tree.path / "link.card").symlink_to(tmp_path / "elsewhere")
    (tree.path / "circle").symlink_to(tree.path)
    tree.write("below/inside.card")
    assert names(catalog) == ["inside"]
    assert messages(catalog) == []
    (tree.path / "below/linked.card").symlink_to(tmp_path / "elsewhere/outside.card")
    assert catalog.find("outside") is not None


def test_a_folder_that_becomes_a_link_is_gone(catalog, tree, tmp_path):
    tree.write("below/hello.card")
    assert catalog.find("hello") is not None
    (tree.path / "below").rename(tmp_path / "elsewhere")
    (tree.path / "below").symlink_to(tmp_path / "elsewhere")
    assert catalog.find("hello") is None


def test_too_deep_a_folder_is_left_out_and_reported(catalog, tree, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_DEPTH", 2)
    tree.write("a/b/good.card")
    tree.write("a/b/c/deep.card")
    tree.write("z/good_too.card")
    assert names(catalog) == ["good", "good_too"]
    (message,) = messages(catalog)
    assert message == (
        f"{tree.path}/a/b/c is left out with all that comes after it: "
        "it lies more than 2 folders deep; move it further up"
    )
    shutil.move(tree.path / "a/b/c", tree.path / "c")
    assert catalog.find("deep") is not None
    assert messages(catalog) == []


def test_too_many_folders_are_left_out_and_reported(catalog, tree, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_FOLDERS", 4)
    for letter in "abcde":
        tree.write(f"{letter}/tool_{letter}.card")
    assert names(catalog) == ["tool_a", "tool_b", "tool_c"]
    (problem,) = catalog.problems()
    assert problem.kind is Kind.LIMIT_EXCEEDED
    assert problem.message == (
        f"{tree.path}/d is left out with all that comes after it: "
        "there are more than 4 folders; move away what holds no tools"
    )
    shutil.rmtree(tree.path / "b")
    assert catalog.find("tool_d") is not None


def test_too_many_files_are_left_out_and_what_is_removed_makes_room(catalog, tree, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_NAMES", 6)
    tree.write("a/good.card")
    for number in range(6):
        tree.write(f"b/data_{number}.card")
    tree.settle()
    assert names(catalog) == ["good"]
    assert messages(catalog) == [
        f"{tree.path}/b is left out with all that comes after it: there are more than 6 files; move away what is not a tool"
    ]
    for number in range(3):
        (tree.path / f"b/data_{number}.card").unlink()
    assert catalog.find("data_5") is not None
    assert messages(catalog) == []


def test_a_flood_of_names_is_not_read_to_its_end(tree, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_NAMES", 10)
    for number in range(50):
        tree.write(f"x{number}.card")
    seen = []
    with os.scandir(tree.path) as entries:
        found = Counted(list(entries), seen)
    monkeypatch.setattr(tree_module.os, "scandir", lambda _: found)
    listing = tree_module.list_files(tree.path)
    assert len(seen) == 11
    assert listing.files == set()


class Counted:
    """Entries of a folder that are counted as they are read."""

    def __init__(self, entries, seen):
        self.entries, self.seen = iter(entries), seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        return self

    def __next__(self):
        entry = next(self.entries)
        self.seen.append(entry.name)
        return entry


def test_a_folder_whose_name_is_not_utf_8_is_reported_in_words_that_can_be_printed(catalog, tree):
    tree.write("good.card")
    folder = tree.path / os.fsdecode(b"\xff\xfe")
    folder.mkdir()
    (folder / "stray.card").write_text("stray 1.0.0")
    assert names(catalog) == ["good"]
    (message,) = messages(catalog)
    assert message == f"{tree.path}: the name b'\\xff\\xfe' is not UTF-8; rename it"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_reported_and_the_others_work(catalog, tree):
    tree.write("good.card")
    tree.write("closed/x.card")
    (tree.path / "closed").chmod(0)
    assert names(catalog) == ["good"]
    assert "Permission denied" in messages(catalog)[0]
    (tree.path / "closed").chmod(0o755)
    assert catalog.find("x") is not None


def test_what_cannot_be_listed_for_a_moment_is_listed_at_the_next_look(catalog, tree, make_tool, monkeypatch):
    tree.write("below/hello.card")
    catalog.add_source(ToolList(Rank.BUILTINS, [make_tool("hello", "builtin")]))
    tree.settle()

    def fail(path):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(tree_module.os, "scandir", fail)
        assert catalog.find("hello").tool.bundle == "builtin"
        assert messages(catalog) == [f"{tree.path}: Too many open files; fix it or move it away"]
    assert catalog.find("hello").tool.bundle == "project"
    assert messages(catalog) == []


def test_a_reload_after_one_edit_reads_one_file(catalog, tree):
    for number in range(60):
        tree.write(f"folder_{number % 6}/tool_{number}.card")
    tree.settle()
    assert len(names(catalog)) == 60
    assert len(tree.dialect.read_files) == 60
    tree.forget_reads()
    for name in ("tool_7", "tool_8", "tool_7@1.0.0", "project/tool_9"):
        assert catalog.find(name) is not None
    assert len(names(catalog)) == 60
    assert tree.dialect.read_files == []

    tree.write("folder_1/tool_7.card", "tool_7 1.0.1")
    assert catalog.find("tool_7").tool.version == "1.0.1"
    assert tree.dialect.read_files == ["tool_7.card"]

    tree.settle()
    tree.forget_reads()
    draft = tree.path / "folder_2/tool_8.draft"
    draft.write_text("tool_8 1.0.2")
    draft.replace(tree.path / "folder_2/tool_8.card")
    assert catalog.find("tool_8").tool.version == "1.0.2"
    assert set(tree.dialect.read_files) <= {"tool_7.card", "tool_8.card"}


def test_a_call_looks_once_at_each_folder_and_at_the_one_file(catalog, tree, monkeypatch):
    for number in range(60):
        tree.write(f"folder_{number % 6}/tool_{number}.card")
    tree.settle()
    assert len(names(catalog)) == 60
    looked = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, *rest, **more: looked.append(str(path)) or stat(path, *rest, **more))
    assert catalog.find("tool_7") is not None
    monkeypatch.undo()
    folders = [str(tree.path), *(f"{tree.path}/folder_{number}" for number in range(6))]
    assert looked == [*folders, f"{tree.path}/folder_1/tool_7.card"]


def test_new_and_removed_files_and_folders_are_noticed_at_the_next_call(catalog, tree):
    tree.write("a/one.card")
    tree.settle()
    assert catalog.find("one") is not None
    tree.write("a/b/c/two.card")
    assert catalog.find("two") is not None
    tree.settle()
    assert catalog.find("two") is not None
    (tree.path / "a/b").rename(tree.path / "moved")
    assert catalog.find("two").tool.origin.place == str(tree.path / "moved/c/two.card")
    tree.settle()
    assert catalog.find("two") is not None
    shutil.rmtree(tree.path / "moved")
    assert catalog.find("two") is None
    (tree.path / "a/one.card").unlink()
    assert catalog.find("one") is None
    shutil.rmtree(tree.path)
    assert names(catalog) == []
    tree.write("again.card")
    assert catalog.find("again") is not None


def test_an_edit_that_only_moves_a_tool_within_its_file_is_seen(catalog, tree):
    tree.write("x.card")
    assert catalog.find("x").tool.origin.line == 1
    tree.write("x.card", "# a note", "x 1.0.0")
    assert catalog.find("x").tool.origin.line == 2


def test_a_file_without_a_tool_is_a_helper_and_no_problem(catalog, tree):
    tree.write("helper.card", "# only code")
    tree.write("good.card")
    assert names(catalog) == ["good"]
    assert messages(catalog) == []
    assert catalog.find("helper") is None
    tree.write("helper.card", "helper 1.0.0")
    assert catalog.find("helper") is not None


def test_a_file_may_hold_several_tools_and_each_comes_and_goes_with_its_line(catalog, tree):
    tree.write("many.card", "one 1.0.0", "two 1.0.0")
    assert sorted(names(catalog)) == ["one", "two"]
    kept = catalog.find("one").tool
    tree.write("many.card", "one 1.0.0", "three 1.0.0")
    assert catalog.find("two") is None
    assert sorted(names(catalog)) == ["one", "three"]
    assert catalog.find("one").tool.content_hash == kept.content_hash


def test_a_broken_file_further_down_keeps_its_name_and_says_where_it_lies(catalog, tree, make_tool):
    catalog.add_source(ToolList(Rank.BUILTINS, [make_tool("hello", "builtin")]))
    tree.write("a/b/hello.card", "broken")
    assert catalog.find("hello") is None
    assert catalog.suggest("hello") == "its file is broken: project/a/b/hello.card:1: broken; correct the line"


class Blocking:
    """A dialect whose tools wait for the test before they answer with the text of their file."""

    name = "blocking"

    def __init__(self):
        self.started, self.may_end = asyncio.Event(), asyncio.Event()

    def reads(self, path):
        return path.suffix == ".wait"

    def read(self, path, code):
        answer = code.decode()

        async def run():
            self.started.set()
            await self.may_end.wait()
            return answer

        yield host_tool(path.stem, run, description=answer)


async def test_a_call_in_flight_ends_on_the_version_it_began_with(project):
    dialect = Blocking()
    (project / "tools/answer.wait").write_text("old")
    async with Crib(project) as crib, asyncio.timeout(25):
        crib._catalog.add_source(FileSource(project / "tools", "waiting", [dialect], is_tree=True))
        first = asyncio.create_task(crib.call("answer"))
        await dialect.started.wait()
        (project / "tools/answer.wait").write_text("new")
        second = asyncio.create_task(crib.call("answer"))
        dialect.started.clear()
        await dialect.started.wait()
        dialect.may_end.set()
        assert [(await first).value, (await second).value] == ["old", "new"]
