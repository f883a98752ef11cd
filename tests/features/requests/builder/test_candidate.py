"""What a maker made is read as it lies there: within bounds, nothing followed, nothing waited for, nothing run."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tool_requests import allowance_of, request_of
from toolcrib import Kind, ToolError
from toolcrib.features.requests.candidate import Candidate, read_candidate, tool_of_candidate
from toolcrib.features.requests.format import read_folder

WANTED: dict[str, object] = {
    "id": "req_20240115_001",
    "name": "text_shouter",
    "description": "Shouts a text",
    "inputs": [{"name": "text", "type": "string", "description": "What to shout", "required": True}],
    "outputs": [{"name": "loud", "type": "string"}],
    "requirements": ["Must be loud"],
    "example_usage": 'from tools.text_shouter import shout\n\nprint(shout(text="Ahoy").loud)\n',
}
CODE = "import re\nimport helper\n\ndef shout(text):\n    return {'loud': helper.loud(text)}\n"


def wanted(**fields: object):
    return request_of({**WANTED, **fields})


REQUEST = wanted()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace" / "package"
    folder.mkdir(parents=True)
    (folder / "text_shouter.py").write_text(CODE)
    (folder / "helper.py").write_text("def loud(text):\n    return text.upper()\n")
    return folder


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def refusal(path: Path, request=REQUEST) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read_candidate(path, request)
    return caught.value


class TestWhatIsRead:
    def test_a_folder_is_read_with_everything_in_it(self, package):
        (package / "data").mkdir()
        (package / "data" / "words.txt").write_bytes(b"\x00\xff")

        candidate = read_candidate(package, REQUEST)

        assert (candidate.name, candidate.entry) == ("text_shouter", "text_shouter.py")
        assert candidate.files == {
            "text_shouter.py": CODE.encode(),
            "helper.py": b"def loud(text):\n    return text.upper()\n",
            "data/words.txt": b"\x00\xff",
        }

    def test_one_file_is_a_package_under_any_name(self, tmp_path):
        (tmp_path / "mine.py").write_text("def shout(text):\n    return {'loud': text}\n")

        candidate = read_candidate(tmp_path / "mine.py", REQUEST)

        assert candidate.files == {"text_shouter.py": b"def shout(text):\n    return {'loud': text}\n"}

    def test_what_editors_and_interpreters_leave_is_no_part_of_it(self, package):
        for name in ("__pycache__", ".pytest_cache", ".git", "node_modules"):
            (package / name).mkdir()
            (package / name / "rest").write_text("rest")
        (package / ".env").write_text("SECRET=1")

        assert sorted(read_candidate(package, REQUEST).files) == ["helper.py", "text_shouter.py"]

    def test_nothing_of_it_runs(self, package, tmp_path):
        (package / "text_shouter.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef shout(text): ...\n")

        candidate = read_candidate(package, REQUEST)
        tool_of_candidate(candidate, REQUEST, folder=package)

        assert not (tmp_path / "ran").exists()


class TestWhatIsRefused:
    @pytest.mark.parametrize("target", ["/etc/hostname", "helper.py", "../request.yaml", "nowhere"])
    def test_a_link_is_not_followed_to_any_target(self, package, target):
        (package.parent / "request.yaml").write_text("secret")
        (package / "link.py").symlink_to(target)

        error = refusal(package)

        assert error.kind is Kind.BLOCKED
        assert (
            error.message == "package/link.py: is a link, which is not followed; replace it with a copy of its target"
        )

    @pytest.mark.parametrize("place", ["inner", "package"])
    def test_a_link_to_a_folder_is_not_followed(self, package, tmp_path, place):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "text_shouter.py").write_text("secret")
        link = package / "inner" if place == "inner" else tmp_path / "package"
        link.symlink_to(elsewhere)

        error = refusal(package if place == "inner" else link)

        assert (error.kind, "is a link" in error.message) == (Kind.BLOCKED, True)

    def test_a_file_that_is_named_itself_may_not_be_a_link(self, package, tmp_path):
        (tmp_path / "one.py").symlink_to(package / "text_shouter.py")

        assert refusal(tmp_path / "one.py").kind is Kind.BLOCKED

    def test_a_pipe_is_refused_without_blocking(self, package):
        os.mkfifo(package / "pipe.py")

        assert refusal(package).message == "package/pipe.py: is not a regular file; move it away"
        assert refusal(package / "pipe.py").message == "pipe.py: is not a regular file; move it away"

    def test_a_socket_is_refused(self, package, monkeypatch):
        monkeypatch.chdir(package)  # the name of a socket has to be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("door")
            assert refusal(package).message == "package/door: is not a regular file; move it away"

    def test_a_device_is_refused(self, package):
        try:
            os.mknod(package / "zero", 0o600 | 0o020000, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root can make a device")

        assert refusal(package).message == "package/zero: is not a regular file; move it away"

    @pytest.mark.parametrize("name", ["a\nb.py", "a\x1b[31m.py", "a\u202eyp.py", os.fsdecode(b"a\xff.py")])
    def test_a_name_that_cannot_be_printed_is_refused(self, package, name):
        (package / name).write_text("")

        error = refusal(package)

        assert error.kind is Kind.VALIDATION
        assert error.message.endswith("cannot be printed; rename it")
        assert error.message.isprintable()

    def test_thousands_of_files_are_refused(self, package):
        for number in range(2_000):
            (package / f"{number}.txt").touch()

        error = refusal(package)

        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "package: more than 200 files and folders; move away what the tool does not need"

    def test_a_file_of_a_gigabyte_is_refused_unread(self, package):
        with (package / "data.bin").open("wb") as file:
            file.truncate(1_000_000_000)

        error = refusal(package)

        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "package/data.bin: has more than 256,000 bytes; move data out of the tool"

    def test_too_much_in_all_is_refused(self, package):
        for number in range(17):
            (package / f"{number}.bin").write_bytes(b"x" * 250_000)

        assert refusal(package).message == (
            "package/9.bin: more than 4,000,000 bytes in all; move data out of the tool"
        )

    def test_folders_without_end_are_refused(self, package):
        deep = package
        for _ in range(14):
            deep = deep / "d"
            deep.mkdir()

        assert refusal(package).message.endswith("lies more than 12 folders deep; move it further up")

    def test_a_file_that_changes_while_it_is_read_is_refused(self, package, monkeypatch):
        target = package / "helper.py"
        real = os.read

        def read_slowly(descriptor: int, size: int) -> bytes:
            data = real(descriptor, size)
            if os.fstat(descriptor).st_ino == target.stat().st_ino:
                os.utime(target, ns=(1, 1))
                target.write_text("def loud(text):\n    return text.lower()\n")
            return data

        monkeypatch.setattr(os, "read", read_slowly)

        error = refusal(package)

        assert (error.kind, error.retryable) == (Kind.TRANSIENT, True)
        assert error.message == "package/helper.py: changed while it was read; try again when no program writes to it"

    def test_a_file_that_becomes_a_pipe_holds_up_no_one_else(self, package, monkeypatch):
        real = os.open

        def replace_and_open(path: object, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if path == "helper.py":
                (package / "helper.py").unlink()
                os.mkfifo(package / "helper.py")
            return real(path, flags, mode, dir_fd=dir_fd)  # type: ignore[arg-type]  # as it was given

        monkeypatch.setattr(os, "open", replace_and_open)

        assert refusal(package).message == "package/helper.py: is not a regular file; move it away"

    @pytest.mark.parametrize("name", ["tool.json", "__init__.py"])
    def test_what_toolcrib_writes_itself_is_not_brought_along(self, package, name):
        (package / name).write_text("{}")

        assert refusal(package).message == (f"package/{name}: is written when the tool is published; remove it")

    def test_a_file_of_that_name_further_down_is_the_makers_own(self, package):
        (package / "parts").mkdir()
        (package / "parts" / "__init__.py").touch()

        assert "parts/__init__.py" in read_candidate(package, REQUEST).files

    @pytest.mark.parametrize("name", ["schema.json", "handler.py", "doc.md"])
    def test_a_file_that_would_make_it_another_kind_of_tool_is_refused(self, package, name):
        (package / name).write_text("{}")

        assert refusal(package).message == f"package/{name}: marks other tool folders; rename it"

    def test_a_folder_without_the_file_says_what_to_write_and_what_is_there(self, package):
        (package / "text_shouter.py").rename(package / "shouter.py")

        error = refusal(package)

        assert error.kind is Kind.NOT_FOUND
        assert error.message == (
            "package: there is no text_shouter.py; write def shout(…) there (found: helper.py, shouter.py)"
        )

    def test_nothing_there_is_said_so(self, tmp_path):
        assert refusal(tmp_path / "package").message == "package: does not exist; create it, or name another"
        assert refusal(tmp_path / "one.py").kind is Kind.NOT_FOUND

    def test_code_that_cannot_be_read_is_refused_with_its_line(self, package):
        (package / "text_shouter.py").write_text("import re\ndef shout(:\n")
        candidate = read_candidate(package, REQUEST)

        with pytest.raises(ToolError, match="package/text_shouter.py:2: "):
            tool_of_candidate(candidate, REQUEST, folder=package)

    def test_no_descriptor_stays_open(self, package):
        before = open_descriptors()
        (package / "inner").mkdir()
        (package / "inner" / "link").symlink_to("/")
        for _ in range(5):
            refusal(package)

        assert open_descriptors() == before

    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(path=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3), content=st.binary(max_size=50))
    def test_any_content_of_the_folder_is_taken_or_refused(self, tmp_path_factory, path, content):
        folder = tmp_path_factory.mktemp("package")
        try:
            place = folder.joinpath(*(part.replace("/", "").replace("\0", "") or "x" for part in path))
            if not place.is_relative_to(folder) or ".." in place.parts:
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except (OSError, UnicodeEncodeError):
            return
        try:
            found = read_folder(folder)
        except ToolError as error:
            found, said = {}, error.message
        else:
            said = ""

        assert set(found.values()) <= {content}
        assert said.isprintable()


class TestWhichCandidateItIs:
    def test_the_same_files_for_the_same_request_have_the_same_digest(self, package, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        for file in package.iterdir():
            (other / file.name).write_bytes(file.read_bytes())

        again = read_candidate(other, wanted(id="req_20240115_002", priority="high", experiment_blocked="exp_1"))

        assert again.digest == read_candidate(package, REQUEST).digest

    @pytest.mark.parametrize(
        "fields",
        [
            {"description": "Shouts louder"},
            {"requirements": ["Must be louder"]},
            {"capabilities": ["net.http"]},
            {"hosts": ["example.com"]},
            {"outputs": [{"name": "loud", "type": "string | null"}]},
            {"inputs": [{"name": "text", "type": "list", "description": "What to shout", "required": True}]},
            {"example_usage": 'from tools.text_shouter import cry\n\ncry(text="Ahoy")\n'},
        ],
    )
    def test_another_request_makes_it_another(self, package, fields):
        assert read_candidate(package, wanted(**fields)).digest != read_candidate(package, REQUEST).digest

    def test_bytes_cannot_move_from_one_file_to_another_unseen(self, package):
        before = read_candidate(package, REQUEST)
        helper = (package / "helper.py").read_bytes()
        (package / "helper.py").unlink()
        (package / "helper.pyd").write_bytes(helper[1:])

        assert read_candidate(package, REQUEST).digest != before.digest


class TestTheToolItWouldBe:
    def test_it_is_what_was_asked_for(self, package):
        request = wanted(capabilities=["net.http"], hosts=["api.example.com"])
        allowance = allowance_of("fs.read", hosts=("example.org", "api.example.com"))

        tool = tool_of_candidate(read_candidate(package, request), request, folder=package, allowance=allowance)

        assert (tool.name, tool.version, tool.description) == ("text_shouter", "1.0.0", "Shouts a text")
        assert tool.parameters == request.parameters
        assert tool.output_schema == request.output_schema
        assert tool.requires == {"net.http", "fs.read"}
        assert tool.run.executor == "python_runtime"
        assert tool.run.hosts == ("api.example.com", "example.org")
        assert tool.run.script.entry == "shout"
        assert tool.run.script.imports == ("re", "helper")
        assert tool.run.script.files == read_candidate(package, request).files
        assert tool.metadata == {"requirements": ["Must be loud"], "requestID": "req_20240115_001"}

    def test_hosts_are_narrowed_only_on_request(self, package):
        candidate = read_candidate(package, REQUEST)
        narrowed = allowance_of(hosts=("example.org",))

        assert tool_of_candidate(candidate, REQUEST, folder=package).run.hosts is None
        assert tool_of_candidate(candidate, REQUEST, folder=package, allowance=narrowed).run.hosts == ("example.org",)

    def test_every_file_makes_it_another_tool(self, package):
        before = tool_of_candidate(read_candidate(package, REQUEST), REQUEST, folder=package)
        (package / "helper.py").write_text("def loud(text):\n    return text\n")
        after = tool_of_candidate(read_candidate(package, REQUEST), REQUEST, folder=package)

        assert before.content_hash != after.content_hash

    def test_where_it_lies_makes_no_other_tool(self, package, tmp_path):
        candidate = read_candidate(package, REQUEST)

        hashes = {tool_of_candidate(candidate, REQUEST, folder=place).content_hash for place in (package, tmp_path)}

        assert len(hashes) == 1

    @pytest.mark.parametrize(
        ("outputs", "enveloped"),
        [
            (["loud"], True),
            (None, True),
            (["result", "success"], True),
            (["result", "success", "error"], False),
        ],
    )
    def test_three_words_are_an_envelope_unless_they_are_outputs(self, package, outputs, enveloped):
        declared = None if outputs is None else [{"name": name, "type": "string"} for name in outputs]
        fields = {name: value for name, value in {**WANTED, "outputs": declared}.items() if value is not None}
        request = request_of(fields)

        tool = tool_of_candidate(read_candidate(package, request), request, folder=package)

        assert tool.run.script.enveloped is enveloped


def test_many_may_read_the_same_at_once(package):
    found: list[Candidate] = []
    threads = [threading.Thread(target=lambda: found.append(read_candidate(package, REQUEST))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(25)

    assert len(found) == 8
    assert len({candidate.digest for candidate in found}) == 1
