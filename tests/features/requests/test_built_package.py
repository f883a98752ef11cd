"""Built packages: loaded only if they are what was proved, and run from the very bytes that were loaded."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_requests import request_of
from toolcrib import Crib, Kind, ToolError
from toolcrib.features.agent_classes.classes import to_tool_result
from toolcrib.features.requests.built_package import digest_of
from toolcrib.features.requests.candidate import publish, read_candidate, tool_of_candidate
from toolcrib.features.requests.format import read_package
from toolcrib.infra.programs import package_files, refuse_changed_files
from toolcrib.lib.presentation import to_builder, to_platform

WANTED: dict[str, object] = {
    "id": "req_20240115_001",
    "name": "text_shouter",
    "description": "Shouts a text",
    "inputs": [{"name": "text", "type": "string", "description": "What to shout", "required": True}],
    "outputs": [{"name": "loud", "type": "string"}],
    "requirements": ["Must be loud"],
    "example_usage": 'from tools.text_shouter import shout\n\nprint(shout(text="Ahoy").loud)\n',
}
CODE = "import helper\n\ndef shout(text):\n    return {'loud': helper.loud(text)}\n"
GONE = object()
HELPER = "def loud(text):\n    return text.upper()\n"


def wanted(**fields: object):
    return request_of({**WANTED, **fields})


def put(project: Path, code: str = CODE, request=None, **files: str) -> Path:
    """Publish a package; its folder."""
    request = request or wanted()
    made = project / ".made" / request.name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for name, text in {request.name: code, "helper": HELPER, **files}.items():
        (made / f"{name}.py").write_text(text)
    publish(read_candidate(made, request), request, project_tools=project / "tools")
    shutil.rmtree(project / ".made")
    return project / "tools" / request.name


def edit(folder: Path, **changes: object) -> None:
    """Change the description by hand; GONE takes a key out."""
    document = {**json.loads((folder / "tool.json").read_bytes()), **changes}
    kept = {name: value for name, value in document.items() if value is not GONE}
    (folder / "tool.json").write_text(json.dumps(kept, indent=2))


def problem(folder: Path) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read_package(folder / "tool.json", (folder / "tool.json").read_bytes())
    return caught.value


class TestWhatIsLoaded:
    def test_the_tool_is_the_one_that_was_proved(self, project):
        folder = put(project)

        (tool,) = read_package(folder / "tool.json", (folder / "tool.json").read_bytes())

        made = project / ".made"
        made.mkdir()
        (made / "text_shouter.py").write_text(CODE)
        (made / "helper.py").write_text(HELPER)
        proved = tool_of_candidate(read_candidate(made, wanted()), wanted(), folder=folder)
        assert tool.content_hash == proved.content_hash
        assert tool.metadata == {"requirements": ["Must be loud"], "requestID": "req_20240115_001"}
        assert str(tool.origin) == f"{folder}/text_shouter.py:1"

    def test_an_absent_output_schema_stays_absent(self, project):
        fields = {name: value for name, value in WANTED.items() if name != "outputs"}
        folder = put(project, request=request_of(fields))

        (tool,) = read_package(folder / "tool.json", (folder / "tool.json").read_bytes())

        assert tool.output_schema is None

    def test_what_interpreters_and_editors_leave_is_ignored(self, project):
        folder = put(project)
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "helper.pyc").write_text("old")
        (folder / ".helper.py.swp").write_text("draft")

        assert len(read_package(folder / "tool.json", (folder / "tool.json").read_bytes())) == 1

    def test_another_layout_of_the_same_description_is_no_change(self, project):
        folder = put(project)
        document = json.loads((folder / "tool.json").read_bytes())

        assert len(read_package(folder / "tool.json", json.dumps(document, sort_keys=True).encode())) == 1

    def test_it_may_move_to_a_folder_of_tools_of_another_name(self, project, tmp_path):
        folder = put(project)
        (tmp_path / "elsewhere").mkdir()
        shutil.move(folder, tmp_path / "elsewhere")

        moved = tmp_path / "elsewhere" / "text_shouter"
        assert len(read_package(moved / "tool.json", (moved / "tool.json").read_bytes())) == 1


class TestWhatIsNotWhatWasProved:
    CURE = (
        "changed since it was proved; to have it proved again, move the folder away and run: "
        "crib request deliver req_20240115_001 FOLDER; or make it a tool of your own: "
        "move text_shouter.py to tools/text_shouter.py and remove the folder"
    )

    @pytest.mark.parametrize("name", ["text_shouter.py", "helper.py", "__init__.py"])
    def test_a_file_that_was_changed_is_refused_with_the_cure(self, project, name):
        folder = put(project)
        (folder / name).write_text((folder / name).read_text() + "\n")

        error = problem(folder)

        assert error.kind is Kind.CONFLICT
        assert error.message == f"tools/text_shouter/{name}: {self.CURE}"

    @pytest.mark.parametrize("name", ["helper.py", "__init__.py", "text_shouter.py"])
    def test_a_file_that_was_removed_is_refused(self, project, name):
        folder = put(project)
        (folder / name).unlink()

        assert problem(folder).message == f"tools/text_shouter/{name}: {self.CURE}"

    def test_a_file_that_was_added_is_refused(self, project):
        folder = put(project)
        (folder / "extra.py").touch()

        assert problem(folder).message == f"tools/text_shouter/extra.py: {self.CURE}"

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"description": "Whispers"}, "description"),
            ({"requires": ["shell.execute"]}, "requires"),
            ({"hosts": ["evil.example"]}, "hosts"),
            ({"function": "cry"}, "function"),
            ({"requirements": []}, "requirements"),
            ({"isEnabled": False}, "isEnabled"),
            ({"type": "http"}, "type"),
            ({"version": "2.0.0"}, "version"),
            ({"slug": "other"}, "slug"),
            ({"displayName": "Other"}, "displayName"),
            ({"argSchema": {"type": "object"}}, "argSchema"),
            ({"outputSchema": {}}, "outputSchema"),
            ({"impl": {"goFunc": "os.system"}}, "impl"),
            ({"digest": "0" * 64}, "digest"),
            ({"tags": ["mine"]}, "tags"),
            ({"isEnabled": 1}, "isEnabled"),
            ({"requirements": "Must be loud"}, "requirements"),
            ({"files": []}, "files"),
            ({"argSchema": GONE}, "argSchema"),
            ({"hosts": GONE}, "hosts"),
        ],
    )
    def test_a_description_that_was_edited_is_refused(self, project, changes, named):
        folder = put(project)
        edit(folder, **changes)

        error = problem(folder)

        assert error.kind is Kind.CONFLICT
        assert error.message.startswith("tools/text_shouter/tool.json: ")
        assert error.message.endswith(self.CURE)
        # Where a key says something that was proved, the digest tells first.
        assert f"tool.json: {named}:" in error.message or "tool.json: digest:" in error.message

    def test_a_hash_that_was_adapted_to_another_file_does_not_help(self, project):
        folder = put(project)
        (folder / "helper.py").write_text("evil")
        files = json.loads((folder / "tool.json").read_bytes())["files"]
        edit(folder, files={**files, "helper.py": hashlib.sha256(b"evil").hexdigest()})

        assert problem(folder).message == f"tools/text_shouter/tool.json: digest: {self.CURE}"

    def test_a_folder_that_was_renamed_is_refused(self, project):
        folder = put(project)
        renamed = folder.rename(folder.with_name("loud_shouter"))

        assert problem(renamed).kind is Kind.CONFLICT

    @pytest.mark.parametrize(
        "text", ['{"digest": 1, "requestID"', '["digest", "requestID"]', '{"digest": "", "requestID": ""}']
    )
    def test_what_is_left_of_a_description_is_refused(self, project, text):
        folder = put(project)
        (folder / "tool.json").write_text(text)

        assert problem(folder).message.startswith("tools/text_shouter/tool.json")

    def test_a_link_in_the_place_of_a_file_is_not_followed(self, project, tmp_path):
        folder = put(project)
        shutil.move(folder / "helper.py", tmp_path / "helper.py")
        (folder / "helper.py").symlink_to(tmp_path / "helper.py")

        assert problem(folder).kind is Kind.BLOCKED

    def test_one_of_a_later_toolcrib_is_left_to_that(self, project):
        folder = put(project)
        edit(folder, schemaVersion="toolcrib-2")

        assert "a later version of Toolcrib" in problem(folder).message

    async def test_a_crib_that_runs_says_so_on_the_next_call_and_takes_it_back_when_it_is_mended(
        self, project, crib_of
    ):
        folder = put(project)
        crib = crib_of(project=project)
        assert (await crib.call("text_shouter", text="ahoy")).ok

        (folder / "helper.py").write_text("def loud(text):\n    return 'evil'\n")
        refused = await crib.call("text_shouter", text="ahoy")
        assert refused.error.kind is Kind.NOT_FOUND
        assert f"tools/text_shouter/helper.py: {self.CURE}" in refused.error.message
        assert [str(problem) for problem in crib.problems] == [f"tools/text_shouter/helper.py: {self.CURE}"]

        (folder / "helper.py").write_text(HELPER)
        assert (await crib.call("text_shouter", text="ahoy")).value == {"loud": "AHOY"}
        assert crib.problems == []

    @pytest.mark.parametrize("act", ["add", "remove"])
    async def test_a_crib_that_runs_sees_what_comes_and_goes_in_a_package(self, project, crib_of, act):
        folder = put(project)
        crib = crib_of(project=project)
        assert (await crib.call("text_shouter", text="ahoy")).ok

        if act == "add":
            (folder / "extra.py").touch()
        else:
            (folder / "helper.py").unlink()

        assert (await crib.call("text_shouter", text="ahoy")).error.kind is Kind.NOT_FOUND


class TestOtherFolders:
    @pytest.mark.parametrize(
        "text",
        ["{}", "not json", '{"slug": "weather", "type": "http", "digest": "x"}', "", '{"requestID": 1}', "\udcff"],
    )
    async def test_a_tool_json_of_another_program_is_ignored(self, project, crib_of, text):
        (project / "tools" / "weather").mkdir()
        (project / "tools" / "weather" / "tool.json").write_bytes(text.encode("utf-8", "surrogateescape"))

        crib = crib_of(project=project)

        assert crib.problems == []
        assert "weather" not in {tool.name for tool in crib.tools}

    async def test_a_large_or_odd_file_of_that_name_is_ignored_too(self, project, crib_of, tmp_path):
        tools = project / "tools"
        for name in ("large", "pipe", "link", "folder"):
            (tools / name).mkdir()
        (tools / "large" / "tool.json").write_bytes(b"x" * 300_000)
        os.mkfifo(tools / "pipe" / "tool.json")
        (tools / "link" / "tool.json").symlink_to("/etc/hostname")
        (tools / "folder" / "tool.json").mkdir()

        assert crib_of(project=project).problems == []

    async def test_a_link_to_a_package_elsewhere_is_not_followed(self, project, crib_of, tmp_path):
        folder = put(project)
        shutil.move(folder, tmp_path / "elsewhere")
        (project / "tools" / "text_shouter").symlink_to(tmp_path / "elsewhere")

        assert "text_shouter" not in {tool.name for tool in crib_of(project=project).tools}

    @pytest.mark.spec("S0-35")
    async def test_a_single_file_is_a_plain_tool_as_ever(self, project, crib_of):
        (project / "tools" / "email_validator.py").write_text("def run(email: str) -> bool:\n    return '@' in email\n")
        put(project)
        crib = crib_of(project=project)

        assert (await crib.call("email_validator", email="a@b")).value is True
        assert (await crib.call("text_shouter", text="ahoy")).value == {"loud": "AHOY"}

    async def test_a_broken_package_keeps_its_own_name_from_others_and_no_other_name(self, project, crib_of):
        def tool(text: str) -> str:
            """A tool that is called like the file that describes packages."""
            return text

        folder = put(project)
        (folder / "helper.py").write_text("changed")
        crib = crib_of(tool, project=project)

        assert (await crib.call("tool", text="x")).value == "x"
        assert crib.find("tools/tool@1.0.0") is None

    def test_calling_a_plain_file_loads_nothing_of_this(self, project):
        (project / "tools" / "hello.py").write_text("def hello() -> str:\n    return 'ahoy'\n")

        ended = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "toolcrib", "-C", project, "call", "hello"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

        assert ended.stdout.strip() == "ahoy"
        ours = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines() if "toolcrib." in line}
        strangers = ("toolcrib.built", "toolcrib.features.requests.built", "toolcrib.features.bundles.format")
        assert not [
            name
            for name in ours
            if name.startswith(
                (
                    *strangers,
                    "toolcrib.features.requests.queues",
                    "toolcrib.features.requests.makers",
                    "toolcrib.features.requests.gate",
                )
            )
        ]


class TestWhatRuns:
    """The bytes that were loaded, within their walls."""

    async def test_files_beside_it_are_found_as_they_were_loaded_even_if_they_changed(self, tmp_path, crib_of):
        made = tmp_path / "made"
        (made / "words").mkdir(parents=True)
        (made / "text_shouter.py").write_text(
            "from pathlib import Path\nimport helper\n\ndef shout(text):\n"
            "    return {'loud': helper.loud(text) + (Path(__file__).parent / 'words' / 'end.txt').read_text()}\n"
        )
        (made / "helper.py").write_text(HELPER)
        (made / "words" / "end.txt").write_text("!")
        tool = tool_of_candidate(read_candidate(made, wanted()), wanted(), folder=made)
        crib = crib_of(tool)
        assert (await crib.call("text_shouter", text="ahoy")).value == {"loud": "AHOY!"}

        (made / "helper.py").write_text("def loud(text):\n    return 'evil'\n")
        (made / "words" / "end.txt").write_text("?")
        result = await crib.call("text_shouter", text="ahoy")

        if "mounts" in result.meta.get("sandbox", {}).get("layers", ()):
            assert result.value == {"loud": "AHOY!"}
        else:
            assert result.error.kind is Kind.CONFLICT

    async def test_a_file_that_has_gone_is_not_missed_silently(self, tmp_path, crib_of):
        made = tmp_path / "made"
        made.mkdir()
        (made / "text_shouter.py").write_text(CODE)
        (made / "helper.py").write_text(HELPER)
        crib = crib_of(tool_of_candidate(read_candidate(made, wanted()), wanted(), folder=made))
        (made / "helper.py").unlink()

        error = (await crib.call("text_shouter", text="ahoy")).error

        assert error.kind is Kind.CONFLICT
        assert error.message == "made/helper.py changed since it was loaded; crib check says what to do"

    def test_without_mounts_a_changed_file_is_refused(self, tmp_path):
        made = tmp_path / "made"
        made.mkdir()
        (made / "text_shouter.py").write_text(CODE)
        tool = tool_of_candidate(read_candidate(made, wanted()), wanted(), folder=made)
        files = package_files(tool.run.script)

        def changed(path: Path) -> ToolError:
            return ToolError(Kind.CONFLICT, path.name)

        refuse_changed_files(tool, files, (), [], changed)
        (made / "text_shouter.py").write_text("changed")
        refuse_changed_files(tool, files, (), ["mounts"], changed)
        with pytest.raises(ToolError, match="text_shouter.py"):
            refuse_changed_files(tool, files, (), [], changed)

    async def test_a_script_that_is_run_without_a_chain_has_its_files_too(self, tmp_path, crib_of):
        made = tmp_path / "made"
        made.mkdir()
        (made / "text_shouter.py").write_text(
            "import helper\ndef shout(text):\n    return {'result': None, 'success': False, 'error': helper.loud(text)}\n"
        )
        (made / "helper.py").write_text(HELPER)
        tool = tool_of_candidate(read_candidate(made, wanted()), wanted(), folder=made)
        crib = crib_of(replace(tool, run=tool.run.script))
        (made / "helper.py").write_text("def loud(text):\n    return 'evil'\n")

        result = await crib.call("text_shouter", text="ahoy")

        covered = "mounts" in result.meta.get("sandbox", {}).get("layers", ())
        assert result.error.message == "AHOY" if covered else result.error.kind is Kind.CONFLICT

    @pytest.mark.parametrize("name", ["helper.py", "new.py", "__pycache__/helper.cpython-311.pyc", "tool.json"])
    async def test_a_package_cannot_write_to_its_own_folder_even_if_it_may_write_to_the_workspace(
        self, project, crib_of, name
    ):
        code = (
            "from pathlib import Path\n\ndef shout(text):\n    place = Path(__file__).parent / text\n    try:\n"
            "        place.parent.mkdir(exist_ok=True)\n        place.write_text('evil')\n"
            "    except OSError as problem:\n        return {'loud': 'denied'}\n    return {'loud': 'written'}\n"
        )
        folder = put(project, code, wanted(capabilities=["fs.write", "fs.read"]))
        before = (folder / "helper.py").read_text()
        crib = crib_of(project=project, grants={"*": ["fs.write", "fs.read"]})

        result = await crib.call("text_shouter", text=name)

        assert (result.error, result.value) == (None, {"loud": "denied"})
        assert (folder / "helper.py").read_text() == before
        assert not (folder / "new.py").exists()

    async def test_its_files_are_imported_by_no_other_tool(self, project, crib_of):
        folder = put(project)
        loads = "    return {'loud': importlib.import_module(text).__file__}\n"
        other = wanted(name="text_looker", example_usage=str(WANTED["example_usage"]).replace("shouter", "looker"))
        put(project, f"import importlib\ndef shout(text):\n{loads}", other)
        own = folder.parent / "own.py"
        first = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n"
        for before in ("", first):
            own.write_text(f"{before}from text_shouter import text_shouter\ndef own() -> str:\n    return 'ran'\n")
            async with Crib(project) as crib:
                assert (await crib.call("text_shouter", text="a")).value == {"loud": "A"}
                error = (await crib.call("own")).error
                looked = (await crib.call("text_looker", text="text_shouter.text_shouter")).error
            assert error.reason.startswith("own " if before else "own may not import text_shouter: "), error.reason
            assert looked.reason.startswith("text_looker needs the Python module text_shouter")

    async def test_a_package_reads_its_own_files_and_nothing_else_there(self, project, crib_of):
        code = (
            "from pathlib import Path\n\ndef shout(text):\n    try:\n"
            "        return {'loud': (Path(__file__).parent / text).read_text()}\n"
            "    except OSError as problem:\n        return {'loud': type(problem).__name__}\n"
        )
        folder = put(project, code)
        (folder / ".env").write_text("SECRET")
        (project / "tools" / "other.py").write_text("SECRET = 1\ndef run(): ...\n")
        crib = crib_of(project=project)

        assert (await crib.call("text_shouter", text="helper.py")).value == {"loud": HELPER}
        for name in (".env", "../other.py", "../../toolcrib.toml"):
            assert "SECRET" not in (await crib.call("text_shouter", text=name)).value["loud"]

    @pytest.mark.parametrize("requires", [[], ["fs.read"]])
    async def test_bytecode_that_was_put_beside_it_never_runs(self, project, crib_of, requires):
        folder = put(project, request=wanted(capabilities=requires))
        source = folder / "helper.py"
        other = compile("def loud(text):\n    return 'mine'\n", str(source), "exec")
        unchecked = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
        planted = Path(importlib.util.cache_from_source(str(source)))
        planted.parent.mkdir()
        planted.write_bytes(unchecked + marshal.dumps(other))
        crib = crib_of(project=project, grants={"*": requires})

        result = await crib.call("text_shouter", text="ahoy")

        if not requires:
            assert result.value == {"loud": "AHOY"}
            return
        place = "text_shouter/__pycache__"
        assert result.error.kind is Kind.CONFLICT
        assert result.error.message == (f"{place}/{planted.name} would run in place of what was proved; remove {place}")
        planted.rename(planted.with_name(f"__init__.{sys.implementation.cache_tag}.pyc"))
        assert (await crib.call("text_shouter", text="ahoy")).value == {"loud": "AHOY"}

    async def test_a_capability_that_was_not_granted_is_refused_before_anything_runs(self, project, crib_of):
        put(project, CODE, wanted(capabilities=["net.http"]))

        result = await crib_of(project=project).call("text_shouter", text="ahoy")

        assert (result.error.kind, result.refused) == (Kind.CAPABILITY_MISSING, True)


class TestTheEnvelopeOfOldMakers:
    """`{"result", "success", "error"}`, which a built function may return."""

    PARTIAL = (
        "def shout(text):\n    return {'result': {'loud': text.upper()}, 'success': text != 'fail',"
        " 'error': None if text != 'fail' else 'the voice broke'}\n"
    )

    async def test_a_success_is_what_is_in_it(self, project, crib_of):
        put(project, self.PARTIAL)

        result = await crib_of(project=project).call("text_shouter", text="ahoy")

        assert (result.ok, result.value) == (True, {"loud": "AHOY"})

    @pytest.mark.spec("S0-27")
    async def test_a_failure_keeps_what_was_achieved_beside_the_error_in_every_form(self, project, crib_of):
        put(project, self.PARTIAL)
        crib = crib_of(project=project)

        result = await crib.call("text_shouter", text="fail")

        assert (result.error.kind, result.error.message) == (Kind.PERMANENT, "the voice broke")
        assert result.value == {"loud": "FAIL"}
        assert to_platform(result)["error"]["details"]["partialValue"] == {"loud": "FAIL"}
        assert to_builder(result) == {"result": {"loud": "FAIL"}, "success": False, "error": "the voice broke"}
        agent = to_tool_result(result, "call_1")
        assert (agent.success, agent.output, agent.error) == (False, '{"loud":"FAIL"}', "the voice broke")

    async def test_the_partial_value_need_not_be_whole(self, project, crib_of):
        put(project, "def shout(text):\n    return {'result': {'begun': 1}, 'success': False, 'error': 'broke'}\n")

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert (result.error.kind, result.value) == (Kind.PERMANENT, {"begun": 1})

    async def test_a_failure_without_a_reason_says_so(self, project, crib_of):
        put(project, "def shout(text):\n    return {'result': None, 'success': False, 'error': 5}\n")

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert result.error.message == "text_shouter failed and does not say why; have it say so in error"

    async def test_what_is_in_it_is_held_to_the_outputs(self, project, crib_of):
        put(project, "def shout(text):\n    return {'result': {'low': 1}, 'success': True, 'error': None}\n")

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert result.error.kind is Kind.OUTPUT_INVALID

    async def test_outputs_of_those_names_are_no_envelope(self, project, crib_of):
        outputs = [
            {"name": "result", "type": "string"},
            {"name": "success", "type": "boolean"},
            {"name": "error", "type": "string | null"},
        ]
        code = "def shout(text):\n    return {'result': text, 'success': False, 'error': None}\n"
        put(project, code, wanted(outputs=outputs))

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert (result.ok, result.value) == (True, {"result": "x", "success": False, "error": None})

    async def test_one_key_more_is_no_envelope(self, project, crib_of):
        fields = {name: value for name, value in WANTED.items() if name != "outputs"}
        code = "def shout(text):\n    return {'result': 1, 'success': False, 'error': 'x', 'more': 1}\n"
        put(project, code, request_of(fields))

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert result.value == {"result": 1, "success": False, "error": "x", "more": 1}

    async def test_a_plain_file_of_the_same_answer_is_left_as_it_is(self, project, crib_of):
        (project / "tools" / "plain.py").write_text(
            "def plain() -> dict:\n    return {'result': 1, 'success': False, 'error': 'x'}\n"
        )

        result = await crib_of(project=project).call("plain")

        assert result.value == {"result": 1, "success": False, "error": "x"}

    @pytest.mark.spec("S0-27")
    async def test_an_error_that_is_raised_keeps_its_value_too(self, project, crib_of):
        code = (
            "from toolcrib import Kind, ToolError\n\ndef shout(text):\n"
            "    raise ToolError(Kind.RATE_LIMIT, 'too loud', retryable=True, value={'loud': text})\n"
        )
        put(project, code)

        result = await crib_of(project=project).call("text_shouter", text="x")

        assert (result.error.kind, result.error.retryable, result.value) == (Kind.RATE_LIMIT, True, {"loud": "x"})


@given(
    st.dictionaries(st.text("ab", max_size=3), st.binary(max_size=3), max_size=3),
    st.dictionaries(st.text("ab", max_size=3), st.binary(max_size=3), max_size=3),
)
def test_two_sets_of_files_have_one_digest_only_if_they_are_one(one, other):
    assert (digest_of(one, b"") == digest_of(other, b"")) is (one == other)


async def test_calls_side_by_side_each_get_their_own_answer(project, crib_of):
    put(project)
    crib = crib_of(project=project)

    results = await asyncio.gather(*(crib.call("text_shouter", text=f"n{number}") for number in range(5)))

    assert [result.value["loud"] for result in results] == ["N0", "N1", "N2", "N3", "N4"]


def test_a_crib_of_plain_code_calls_it(project):
    put(project)
    with Crib(project) as crib:
        assert crib.call_sync("text-shouter", text="ahoy").value == {"loud": "AHOY"}
