"""list_files, read_file and write_file as an agent calls them."""

import errno
import os

import jsonschema_rs
import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.builtins.tools import MAX_FILE_BYTES, file_tools
from toolcrib.infra.files.jail import Jail


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "README.md").write_text("Grüße")
    (folder / "src").mkdir()
    return folder


@pytest.fixture
def tools(workspace):
    with Jail(workspace, is_sensitive=lambda path: path.endswith("/.env")) as jail:
        yield {tool.name: tool for tool in file_tools(jail)}


@pytest.fixture
def run(tools):
    """Calls a tool with arguments and holds its value against the tool's own output schema."""

    def call(name, **arguments):
        tool = tools[name]
        value = tool.run.call(**arguments)
        jsonschema_rs.validator_for(tool.output_schema).validate(value)
        return value

    return call


@pytest.fixture
def refuse(tools):
    def call(name, **arguments):
        with pytest.raises(ToolError) as caught:
            tools[name].run.call(**arguments)
        return caught.value

    return call


class TestDefinitions:
    def test_each_is_an_ordinary_tool_of_the_built_in_bundle(self, tools):
        assert sorted(tools) == ["list_files", "read_file", "write_file"]
        assert {tool.address for tool in tools.values()} == {
            "builtin/list-files@1.0.0",
            "builtin/read-file@1.0.0",
            "builtin/write-file@1.0.0",
        }
        assert not any(tool.run.is_async for tool in tools.values())
        # A write is synced, and judged by every repository of the workspace: the event loop goes on meanwhile.
        assert {name for name, tool in tools.items() if tool.run.thread} == {"write_file"}

    def test_every_schema_is_closed_and_describes_each_property(self, tools):
        for tool in tools.values():
            assert tool.parameters["type"] == "object"
            assert tool.parameters["additionalProperties"] is False
            assert tool.parameters["required"] == list(tool.parameters["properties"])
            for schema in tool.parameters["properties"].values():
                assert schema["type"] == "string"
                assert schema["description"]

    def test_a_missing_or_unknown_argument_does_not_pass_the_schema(self, tools):
        check = jsonschema_rs.validator_for(tools["write_file"].parameters)
        assert check.is_valid({"path": "a", "content": ""})
        assert not check.is_valid({"path": "a"})
        assert not check.is_valid({"path": "a", "content": "", "mode": "a"})
        assert not check.is_valid({"path": "a", "content": None})

    def test_what_each_may_change_is_declared(self, tools):
        effects = {name: (tool.side_effects, set(tool.requires), tool.idempotent) for name, tool in tools.items()}
        assert effects == {
            "list_files": ("read_only", {"fs.read"}, True),
            "read_file": ("read_only", {"fs.read"}, True),
            "write_file": ("writes", {"fs.write"}, True),
        }

    def test_two_jails_give_the_same_tools(self, tools, tmp_path):
        with Jail(tmp_path, is_sensitive=lambda path: False) as jail:
            others = {tool.name: tool.content_hash for tool in file_tools(jail)}
        assert others == {name: tool.content_hash for name, tool in tools.items()}


class TestListFiles:
    @pytest.mark.spec("S4-03")
    def test_names_types_and_sizes_come_sorted(self, run, workspace):
        (workspace / "link").symlink_to("README.md")
        os.mkfifo(workspace / "fifo")
        assert run("list_files", path=".") == [
            {"name": "README.md", "type": "file", "size": 7},
            {"name": "fifo", "type": "other", "size": None},
            {"name": "link", "type": "symlink", "size": None},
            {"name": "src", "type": "directory", "size": None},
        ]

    def test_an_empty_folder_has_no_items(self, run):
        assert run("list_files", path="src") == []

    @pytest.mark.spec("S4-03")
    @pytest.mark.parametrize(
        ("path", "kind", "message"),
        [
            ("absent", Kind.NOT_FOUND, "'absent' does not exist; list the folder to see what does"),
            (
                "README.md",
                Kind.VALIDATION,
                "'README.md' is not a folder; list the folder that holds it, or read the file",
            ),
            ("..", Kind.BLOCKED, "'..' leads out of the workspace; use a path inside it, and only relative links"),
            ("/etc", Kind.BLOCKED, "'/etc' lies outside the workspace; use a path relative to the workspace"),
        ],
    )
    def test_what_cannot_be_listed_is_named(self, refuse, path, kind, message):
        error = refuse("list_files", path=path)
        assert (error.kind, error.message) == (kind, message)

    @pytest.mark.spec("S4-03")
    def test_a_folder_that_the_system_does_not_permit_is_named(self, refuse, monkeypatch):
        # Permissions do not stop root, so the system's answer is put in its mouth.
        def refuse_scan(folder):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "scandir", refuse_scan)
        error = refuse("list_files", path="src")
        assert error.kind is Kind.PERMANENT
        assert error.message == "'src' is not permitted; change the permissions of the file or its folder"

    def test_a_folder_beyond_the_limit_gives_what_fits_beside_the_error(self, run, refuse, workspace, monkeypatch):
        monkeypatch.setattr("toolcrib.features.builtins.tools.MAX_ITEMS", 20)
        for number in range(20):
            (workspace / "src" / f"{number:02}").touch()
        assert len(run("list_files", path="src")) == 20
        (workspace / "src" / "more").touch()
        error = refuse("list_files", path="src")
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == (
            "'src' holds more than 20 items, these are 20 of them; name the file you look for, or spread them over folders"
        )
        assert len(error.value) == 20


class TestReadFile:
    @pytest.mark.spec("S4-04")
    @pytest.mark.parametrize(
        "path", ["README.md", "./README.md", "src/../README.md", "workspace/README.md", "src\\..\\README.md"]
    )
    def test_the_content_comes_as_text(self, run, path):
        assert run("read_file", path=path) == "Grüße"

    def test_line_ends_and_marks_come_as_they_are(self, run, workspace):
        (workspace / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\x00")
        assert run("read_file", path="dos.txt") == "\ufeffa\r\nb\r\x00"

    @pytest.mark.spec("S4-04")
    def test_a_million_bytes_are_read_and_one_more_is_refused_with_both_sizes(self, run, refuse, workspace):
        (workspace / "big").write_bytes(b"x" * 1_000_000)
        assert len(run("read_file", path="big")) == MAX_FILE_BYTES == 1_000_000
        (workspace / "big").write_bytes(b"x" * 1_000_001)
        error = refuse("read_file", path="big")
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "'big' has 1000001 bytes, the limit is 1000000 bytes; read a smaller file"

    @pytest.mark.spec("S4-04")
    @pytest.mark.parametrize("data", [b"ok \xff", b"\xed\xa0\x80", b"\xc0\x80", "Grüße".encode("latin-1"), b"\xe2\x82"])
    def test_what_is_not_utf8_is_refused(self, refuse, workspace, data):
        (workspace / "binary").write_bytes(data)
        error = refuse("read_file", path="binary")
        assert error.kind is Kind.VALIDATION
        assert error.message.startswith("'binary' is not UTF-8 text (byte ")
        assert error.message.endswith("); read a text file, or convert it to UTF-8")

    @pytest.mark.spec("S4-04")
    @pytest.mark.parametrize(
        ("path", "kind", "message"),
        [
            ("missing.txt", Kind.NOT_FOUND, "'missing.txt' does not exist; list the folder to see what does"),
            ("src", Kind.VALIDATION, "'src' is a folder; name a file in it"),
            (
                "../secret",
                Kind.BLOCKED,
                "'../secret' leads out of the workspace; use a path inside it, and only relative links",
            ),
        ],
    )
    def test_what_cannot_be_read_is_named(self, refuse, path, kind, message):
        error = refuse("read_file", path=path)
        assert (error.kind, error.message) == (kind, message)

    def test_a_sensitive_file_is_blocked(self, refuse, workspace):
        (workspace / ".env").write_text("KEY=1")
        assert refuse("read_file", path=".env").kind is Kind.BLOCKED


class TestWriteFile:
    @pytest.mark.spec("S4-05")
    def test_the_message_counts_bytes_and_not_characters(self, run, workspace):
        assert run("write_file", path="output.txt", content="Hello, wörld €😀") == "Wrote 21 bytes to output.txt"
        assert (workspace / "output.txt").read_bytes() == "Hello, wörld €😀".encode()

    @pytest.mark.spec("S4-05")
    def test_folders_are_created_and_files_replaced(self, run, workspace):
        run("write_file", path="a/b/c.txt", content="first, longer")
        assert run("write_file", path="a/b/c.txt", content="second") == "Wrote 6 bytes to a/b/c.txt"
        assert (workspace / "a/b/c.txt").read_text() == "second"
        assert run("write_file", path="a/b/c.txt", content="") == "Wrote 0 bytes to a/b/c.txt"

    def test_line_ends_are_written_as_they_come(self, run, workspace):
        run("write_file", path="lines.txt", content="a\nb\r\nc")
        assert (workspace / "lines.txt").read_bytes() == b"a\nb\r\nc"

    def test_a_million_bytes_are_written_and_one_more_is_refused_with_both_sizes(self, run, refuse, workspace):
        run("write_file", path="big", content="é" * 500_000)
        error = refuse("write_file", path="big", content="é" * 500_000 + "x")
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "content for 'big' has 1000001 bytes, the limit is 1000000 bytes; write smaller files"
        assert (workspace / "big").stat().st_size == 1_000_000

    def test_half_a_character_is_refused(self, refuse, workspace):
        error = refuse("write_file", path="half.txt", content="a\ud800")
        assert error.kind is Kind.VALIDATION
        assert not (workspace / "half.txt").exists()

    @pytest.mark.spec("S4-05")
    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("README.md/below.txt", Kind.VALIDATION),
            ("src", Kind.VALIDATION),
            ("../out.txt", Kind.BLOCKED),
            ("/etc/out.txt", Kind.BLOCKED),
            (".env", Kind.BLOCKED),
            ("read-only.txt", Kind.PERMANENT),
        ],
    )
    def test_where_nothing_may_be_written_nothing_is(self, refuse, workspace, tmp_path, path, kind):
        (workspace / "read-only.txt").write_text("old")
        (workspace / "read-only.txt").chmod(0o444)
        before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
        error = refuse("write_file", path=path, content="new")
        assert error.kind is kind
        assert repr(path) in error.message
        assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before

    @pytest.mark.spec("S4-05")
    def test_a_full_disk_leaves_the_old_file_and_nothing_else(self, refuse, workspace, monkeypatch):
        real = os.write
        room = [100_000]

        def write(descriptor, data):
            if not room[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            written = real(descriptor, bytes(data[: room[0]]))
            room[0] -= written
            return written

        monkeypatch.setattr(os, "write", write)
        error = refuse("write_file", path="README.md", content="x" * 200_000)
        monkeypatch.undo()
        assert error.kind is Kind.PERMANENT
        assert error.message == "'README.md' has no room: the disk is full; free some space"
        assert sorted(path.name for path in workspace.iterdir()) == ["README.md", "src"]
        assert (workspace / "README.md").read_text() == "Grüße"


def test_settings_and_tools_of_the_project_are_read_and_not_written(workspace):
    (workspace / "tools").mkdir()
    (workspace / "tools" / "greet.py").write_text("mine")
    protected = [workspace / "toolcrib.toml", workspace / "tools"]
    with Jail(workspace, is_sensitive=lambda path: False, protected=protected) as jail:
        tools = {tool.name: tool.run.call for tool in file_tools(jail)}
        for path in ("toolcrib.toml", "tools/greet.py", "tools/new.py", "workspace/tools/new.py"):
            with pytest.raises(ToolError) as caught:
                tools["write_file"](path=path, content="import os")
            assert caught.value.kind is Kind.BLOCKED
            assert caught.value.message == (
                f"{path!r} is protected: settings and tools of the project are not for tools to change; "
                "the operator may set `workspace` to another folder"
            )
        assert tools["read_file"](path="tools/greet.py") == "mine"
        assert [item["name"] for item in tools["list_files"](path="tools")] == ["greet.py"]
    assert not (workspace / "toolcrib.toml").exists()


def test_every_run_looks_at_the_disk_anew(run, workspace):
    assert run("read_file", path="README.md") == "Grüße"
    (workspace / "README.md").unlink()
    (workspace / "other.txt").write_text("other")
    assert [item["name"] for item in run("list_files", path=".")] == ["other.txt", "src"]
    run("write_file", path="README.md", content="new")
    assert run("read_file", path="README.md") == "new"
