"""Finding tool folders and collecting their bytes: within bounds, without waiting, without following links out."""

import os
import stat

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.files import safe_paths
from toolcrib.infra.files.tool_folder import survey_folder, survey_shared, tool_folders


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tools"
    root.mkdir()
    return root


def write(path, data=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def whole(survey):
    """The files that were read; raises the first problem."""
    for problem in survey.problems:
        raise problem
    return survey.files


def collect_files(root, folder):
    return whole(survey_folder(root, folder))


def shared_files(root):
    return whole(survey_shared(root))


def refusal(function, *arguments):
    with pytest.raises(ToolError) as caught:
        function(*arguments)
    return caught.value


@pytest.fixture(params=["kernel", "walk"])
def opener(request, monkeypatch):
    """Both ways to open a path beneath a folder."""
    if request.param == "walk":
        monkeypatch.setattr("toolcrib.infra.files.tool_folder.choose_opener", lambda _: safe_paths.open_by_walk)


@pytest.mark.spec("S2-01", "S2-70")
def test_a_folder_is_a_tool_if_it_holds_one_of_the_files_and_is_not_hidden(root):
    for index, name in enumerate(["schema.json", "doc_summary.md", "doc.md", "handler.js", "handler.py"]):
        write(root / f"t{index}" / name)
    for name in ("_core/handler.js", "_x/schema.json", ".hidden/schema.json", "node_modules/schema.json"):
        write(root / name)
    write(root / "built/tool.json")
    write(root / "built/__init__.py")
    write(root / "deep/down/schema.json")
    write(root / "schema.json")
    write(root / "plain.py")
    (root / "empty").mkdir()
    assert tool_folders(root) == ["t0", "t1", "t2", "t3", "t4"]


def test_a_root_that_is_not_there_holds_no_tools(root):
    assert tool_folders(root / "none") == []
    assert shared_files(root / "none") == {}


def test_a_root_that_is_no_folder_is_told(root):
    problem = refusal(tool_folders, write(root / "file"))
    assert problem.message == f"{root}/file: Not a directory; correct it or move it away"


def test_names_are_sorted(root):
    for name in ("b", "a-b", "a", "B"):
        write(root / name / "doc.md")
    assert tool_folders(root) == ["B", "a", "a-b", "b"]


def test_a_root_with_too_many_names_is_refused(root, monkeypatch):
    monkeypatch.setattr("toolcrib.infra.files.tool_folder.MAX_NAMES", 3)
    for index in range(4):
        write(root / f"{index}.txt")
    assert refusal(tool_folders, root).kind is Kind.LIMIT_EXCEEDED


def test_all_files_of_a_folder_are_collected_by_their_path(root, opener):
    for name in ("schema.json", "handler.js", "lib/deep/a.js", "lib/b.bin"):
        write(root / "my-tool" / name, name.encode())
    for name in (
        ".env",
        ".git/config",
        "node_modules/a.js",
        "__pycache__/a.pyc",
        "lib/node_modules/b.js",
        "lib/.hidden",
    ):
        write(root / "my-tool" / name)
    write(root / "other/schema.json")
    (root / "my-tool/empty").mkdir()
    assert collect_files(root, "my-tool") == {
        f"my-tool/{name}": name.encode() for name in ("handler.js", "lib/b.bin", "lib/deep/a.js", "schema.json")
    }


@pytest.mark.spec("S2-70")
def test_what_tools_share_lies_in_the_folders_with_an_underscore(root):
    write(root / "_core/error-types.js", b"a")
    write(root / "_lib/deep/b.js", b"b")
    write(root / "__pycache__/c.pyc")
    write(root / ".x/d.js")
    write(root / "tool/schema.json")
    assert shared_files(root) == {"_core/error-types.js": b"a", "_lib/deep/b.js": b"b"}


def test_a_folder_that_is_gone_is_told(root):
    assert (
        refusal(collect_files, root, "gone").message
        == "tools/gone: No such file or directory; correct it or move it away"
    )


@pytest.mark.parametrize("folder", ["", ".", "..", "../tools", "a/b", "/etc", ".git"])
def test_only_a_folder_directly_in_the_root_is_collected(folder, root):
    write(root / "a/b/schema.json")
    problem = refusal(collect_files, root, folder)
    assert problem.message == f"tools: {folder!r} is not a folder of tools; name one that lies directly in it"


def test_a_link_in_place_of_a_folder_is_listed_and_not_followed(root, tmp_path, opener):
    write(tmp_path / "outside/schema.json", b"secret")
    (root / "linked").symlink_to(tmp_path / "outside")
    write(root / "real/schema.json")
    (root / "alias").symlink_to("real")
    assert tool_folders(root) == ["alias", "linked", "real"]
    for name in ("alias", "linked"):
        problem = refusal(collect_files, root, name)
        assert problem.message == f"tools/{name}: is a link that is not followed; put a copy of what it means there"
        assert problem.kind is Kind.BLOCKED


def test_a_shared_folder_that_is_a_link_is_not_followed(root, tmp_path, opener):
    write(tmp_path / "outside/a.js", b"secret")
    (root / "_core").symlink_to(tmp_path / "outside")
    assert "tools/_core: is a link that is not followed" in refusal(shared_files, root).message


@pytest.mark.parametrize("target", ["../../outside", "/etc/passwd", "../../../../etc/passwd", "loop.js", "../link"])
def test_a_link_that_leads_out_is_not_followed(target, root, tmp_path, opener):
    write(tmp_path / "outside", b"secret")
    (root / "link").symlink_to(tmp_path / "outside")
    write(root / "tool/schema.json")
    (root / "tool/loop.js").symlink_to(target)
    problem = refusal(collect_files, root, "tool")
    assert problem.message == "tools/tool/loop.js: is a link that is not followed; put a copy of what it means there"


def test_a_link_to_a_folder_inside_is_not_followed(root, opener):
    write(root / "tool/lib/a.js")
    (root / "tool/again").symlink_to(".")
    assert "tools/tool/again: is a link" in refusal(collect_files, root, "tool").message


def test_a_link_to_a_file_inside_the_root_counts_as_that_file(root, opener):
    write(root / "_core/a.js", b"shared")
    write(root / "tool/schema.json")
    (root / "tool/a.js").symlink_to("../_core/a.js")
    assert collect_files(root, "tool")["tool/a.js"] == b"shared"


@pytest.mark.timeout(120)
def test_a_pipe_is_refused_and_not_waited_for(root, opener):
    write(root / "tool/schema.json")
    os.mkfifo(root / "tool/handler.js")
    assert refusal(collect_files, root, "tool").message == "tools/tool/handler.js: is not a regular file; move it away"
    (root / "tool/handler.js").rename(root / "pipe")
    (root / "tool/handler.js").symlink_to("../pipe")
    assert refusal(collect_files, root, "tool").message == "tools/tool/handler.js: is not a regular file; move it away"


def test_what_could_act_upon_being_opened_is_not_opened(root):
    write(root / "tool/schema.json")
    os.mknod(root / "tool/socket", stat.S_IFSOCK | 0o600)
    assert refusal(collect_files, root, "tool").message == "tools/tool/socket: is not a regular file; move it away"


def test_a_folder_in_place_of_a_file_is_a_folder(root):
    write(root / "tool/schema.json/inner")
    assert collect_files(root, "tool") == {"tool/schema.json/inner": b"x"}


@pytest.mark.parametrize(("size", "passes"), [(256_000, True), (256_001, False)])
def test_a_file_has_a_largest_size(size, passes, root):
    write(root / "tool/a.bin", b"x" * size)
    if passes:
        assert len(collect_files(root, "tool")["tool/a.bin"]) == size
    else:
        problem = refusal(collect_files, root, "tool")
        assert problem.message == "tools/tool/a.bin: has more than 256,000 bytes; move data out of the tool"
        assert problem.kind is Kind.LIMIT_EXCEEDED


@pytest.mark.parametrize(("count", "passes"), [(15, True), (16, False)])
def test_a_folder_has_a_largest_size(count, passes, root):
    for index in range(count):
        write(root / f"tool/{index:02}.bin", b"x" * 255_000)
    if passes:
        assert len(collect_files(root, "tool")) == count
    else:
        problem = refusal(collect_files, root, "tool")
        assert problem.message == (
            "tools/tool/15.bin: the folder has more than 4,000,000 bytes in all; move data out of the tool"
        )


@pytest.mark.parametrize("place", ["tool", "tool/lib"])
@pytest.mark.parametrize(("count", "passes"), [(199, True), (201, False)])
def test_a_folder_has_a_largest_number_of_files(count, passes, place, root):
    for index in range(count):
        write(root / place / f"{index}.js")
    if passes:
        assert len(collect_files(root, "tool")) == count
    else:
        problem = refusal(collect_files, root, "tool")
        assert problem.message == (
            f"tools/{place}: more than 200 files and folders; move away what the tool does not need"
        )


def test_a_folder_has_a_largest_depth(root):
    write(root / "tool" / "/".join("d" * 11) / "a.js")
    assert len(collect_files(root, "tool")) == 1
    write(root / "tool" / "/".join("d" * 12) / "a.js")
    problem = refusal(collect_files, root, "tool")
    assert problem.message.endswith("/d: lies more than 12 folders deep; move it further up")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(root):
    write(root / "tool/schema.json").chmod(0)
    problem = refusal(collect_files, root, "tool")
    assert problem.message == "tools/tool/schema.json: Permission denied; correct it or move it away"


@pytest.mark.parametrize("name", [b"a\nb.js", b"a\xffb.js", "a\u202eb.js".encode()])
def test_a_name_that_cannot_be_printed_is_refused_on_one_printable_line(name, root):
    write(root / "tool" / os.fsdecode(name))
    problem = refusal(collect_files, root, "tool")
    assert "tools/tool: the name 'a" in problem.message
    assert problem.message.isprintable()


def test_a_folder_whose_name_cannot_be_printed_is_listed_and_refused(root):
    write(root / os.fsdecode(b"a\xff\n") / "schema.json")
    (name,) = tool_folders(root)
    problem = refusal(collect_files, root, name)
    assert "cannot be printed; rename it" in problem.message
    assert problem.message.isprintable()


def test_places_begin_with_the_name_of_the_root(tmp_path, monkeypatch):
    from pathlib import Path

    write(tmp_path / "mine/tool/schema.json", b"")
    monkeypatch.chdir(tmp_path / "mine")
    assert refusal(collect_files, Path(), "none").message.startswith("mine/none: ")
    assert tool_folders(Path()) == ["tool"]


def test_what_cannot_be_read_is_told_beside_what_can(root, tmp_path, opener):
    write(tmp_path / "outside", b"secret")
    for name in ("schema.json", "lib/a.js"):
        write(root / "tool" / name, name.encode())
    (root / "tool/doc.md").symlink_to(tmp_path / "outside")
    (root / "tool/lib/again").symlink_to("..")
    os.mkfifo(root / "tool/handler.js")
    write(root / "tool/zz.bin", b"x" * 256_001)
    write(root / "tool/a\nb", b"")
    survey = survey_folder(root, "tool")
    assert survey.files == {"tool/schema.json": b"schema.json", "tool/lib/a.js": b"lib/a.js"}
    assert sorted(problem.message.split(": ")[0] for problem in survey.problems) == [
        *("tools/tool", "tools/tool/doc.md", "tools/tool/handler.js", "tools/tool/lib/again", "tools/tool/zz.bin"),
    ]
    assert {"tool/doc.md", "tool/handler.js", "tool/zz.bin"} < survey.unread


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_BYTES"])
def test_of_a_folder_with_too_much_the_files_of_a_tool_are_read_all_the_same(limit, root, monkeypatch):
    monkeypatch.setattr(f"toolcrib.infra.files.tool_folder.{limit}", 3)
    for name in ("aa/1", "aa/2", "aa/3", "aa/4", "schema.json", "doc.md"):
        write(root / "tool" / name, b"xx")
    survey = survey_folder(root, "tool")
    assert [problem.kind for problem in survey.problems] == [Kind.LIMIT_EXCEEDED]
    assert {"tool/schema.json", "tool/doc.md"} <= survey.files.keys()
    assert len(survey.files) <= 3


def test_a_folder_that_is_none_is_a_problem_of_its_survey(root):
    for name in ("gone", "../tools", "a\nb"):
        survey = survey_folder(root, name)
        assert (survey.files, len(survey.problems)) == ({}, 1)
