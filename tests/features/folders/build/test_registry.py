"""The registry at start: what is as it was built is a tool, everything else is listed with its reason."""

import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib.build import Registry, build, load_registry, unbuilt_folders
from toolcrib.features.folders.build_files import hash_files, version_of
from toolcrib.model.tool import Handler


def names(registry: Registry) -> list[str]:
    return [tool.name for tool in registry.tools]


def reasons(unbuilt) -> dict[str, str]:
    return {each.folder: each.reason for each in unbuilt}


class TestLoading:
    @pytest.mark.spec("S2-03")
    def test_what_was_built_is_a_tool_with_the_very_bytes_and_the_version(self, tools):
        tools.add("kb-search")
        built = tools.build()
        registry = load_registry(tools.root)
        assert (registry.path, registry.version, registry.problem) == (tools.registry, built.version, "")
        assert (names(registry), registry.unbuilt) == (["kb_search"], ())
        run = registry.tools[0].run
        assert isinstance(run, Handler)
        assert run.registry == built.version
        assert run.files["kb-search/handler.js"] == (tools.root / "kb-search" / "handler.js").read_bytes()
        assert run.shared.keys() == {"_core/error-types.js"}

    def test_without_a_registry_there_is_nothing_to_load(self, tools):
        tools.add("a")
        assert load_registry(tools.root) is None
        assert load_registry(tools.root / "absent") is None
        assert reasons(unbuilt_folders(tools.root)) == {"a": "not built yet"}
        assert unbuilt_folders(tools.root / "absent") == ()

    @pytest.mark.spec("S2-03")
    def test_what_changed_came_or_went_since_is_no_tool_until_it_is_built(self, tools):
        for name in ("a-same", "b-changed", "c-added-file", "d-gone", "e-lost-file"):
            tools.add(name, files={"more.txt": "more"})
        tools.build()
        tools.write("b-changed/handler.js", "export async function execute() { return { ok: true, data: 2 }; }\n")
        tools.write("c-added-file/new.js", "export const x = 1;\n")
        shutil.rmtree(tools.root / "d-gone")
        (tools.root / "e-lost-file" / "more.txt").unlink()
        tools.add("f-new")
        registry = load_registry(tools.root)
        assert names(registry) == ["a_same"]
        assert reasons(registry.unbuilt) == {
            "b-changed": "changed since the build",
            "c-added-file": "changed since the build",
            "d-gone": "removed since the build",
            "e-lost-file": "changed since the build",
            "f-new": "not in the registry",
        }
        assert [each.name for each in registry.unbuilt][-1] == "f_new"
        tools.build()
        assert names(load_registry(tools.root)) == ["a_same", "b_changed", "c_added_file", "e_lost_file", "f_new"]

    def test_a_link_that_came_later_is_named_and_what_lies_beside_it_is_no_tool(self, tools, tmp_path):
        folder = tools.add("a")
        tools.build()
        loaded = load_registry(tools.root)
        (folder / "more.js").symlink_to(tmp_path)
        told = {"a": "tools/a/more.js: is a link that is not followed; put a copy of what it means there"}
        assert reasons(load_registry(tools.root).unbuilt) == told
        assert names(load_registry(tools.root)) == []
        assert reasons(unbuilt_folders(tools.root, loaded)) == told

    def test_a_link_in_a_shared_folder_concerns_every_tool(self, tools, tmp_path):
        tools.add("a")
        tools.build()
        (tools.root / "_core" / "more.js").symlink_to(tmp_path)
        registry = load_registry(tools.root)
        assert (names(registry), reasons(registry.unbuilt)) == ([], {"a": "a shared folder changed since the build"})

    def test_a_changed_shared_file_concerns_every_tool(self, tools):
        tools.add("a")
        tools.add("b")
        tools.build()
        tools.write("_core/error-types.js", "export const ErrorType = {}; export class ToolError extends Error {}\n")
        tools.add("b", description="Another.")
        registry = load_registry(tools.root)
        assert registry.tools == ()
        assert reasons(registry.unbuilt) == {
            "a": "a shared folder changed since the build",
            "b": "changed since the build",
        }

    def test_a_folder_that_cannot_be_read_any_more_says_why(self, tools):
        tools.add("a")
        tools.add("b")
        tools.build()
        os.mkfifo(tools.root / "a" / "pipe")
        registry = load_registry(tools.root)
        assert names(registry) == ["b"]
        assert reasons(registry.unbuilt) == {"a": "tools/a/pipe: is not a regular file; move it away"}

    def test_a_root_that_was_moved_needs_no_new_build(self, tools, tmp_path):
        tools.add("a", category="action", sideEffects="none")
        tools.build()
        shutil.copytree(tools.root, tmp_path / "moved")
        assert names(load_registry(tmp_path / "moved")) == ["a"]

    @pytest.mark.parametrize("folder", ["-x", "x-", "x--y", "1st", "UPPER", "größe", "a" * 64])
    def test_every_name_that_builds_also_loads(self, tools, folder):
        tools.add(folder, files={"odd \\ name.txt": "x", "..x": None, "deep/...": "x"})
        if build(tools.root).ok:
            assert names(load_registry(tools.root)) == [folder.replace("-", "_")]
        else:
            assert load_registry(tools.root) is None

    def test_a_schema_as_deep_as_any_may_be_builds_and_loads(self, tools):
        inner = {"type": "string", "description": "The innermost"}
        for _ in range(27):
            inner = {"type": "array", "items": inner}
        tools.add("a", parameters={"type": "object", "additionalProperties": False, "properties": {"list": inner}})
        tools.build()
        assert names(load_registry(tools.root)) == ["a"]


class TestInForce:
    @pytest.mark.spec("S2-67")
    def test_what_a_build_would_change_is_known_from_what_was_loaded(self, tools):
        for name in ("a", "b", "c", "d"):
            tools.add(name)
        tools.build()
        tools.add("d", description="Changed before the start.")
        registry = load_registry(tools.root)
        assert reasons(unbuilt_folders(tools.root, registry)) == {"d": "changed since the build"}
        tools.add("a", description="Another.")
        shutil.rmtree(tools.root / "b")
        tools.add("e")
        assert reasons(unbuilt_folders(tools.root, registry)) == {
            "a": "changed since the build",
            "b": "removed since the build",
            "d": "changed since the build",
            "e": "not in the registry",
        }

    @pytest.mark.spec("S2-03")
    def test_a_build_after_the_start_does_not_change_what_was_loaded(self, tools):
        tools.add("a")
        tools.build()
        registry = load_registry(tools.root)
        tools.add("a", description="Another.")
        tools.build()
        assert registry.tools[0].description == "Search the knowledge base."
        assert b"knowledge base" in registry.tools[0].run.files["a/schema.json"]
        assert reasons(unbuilt_folders(tools.root, registry)) == {"a": "changed since the build"}
        assert load_registry(tools.root).tools[0].description == "Another."

    def test_a_shared_file_that_changed_concerns_every_tool(self, tools):
        tools.add("a")
        tools.build()
        registry = load_registry(tools.root)
        tools.write("_lib/x.js", "export const x = 1;\n")
        assert reasons(unbuilt_folders(tools.root, registry)) == {"a": "a shared folder changed since the build"}

    @pytest.mark.spec("S2-67")
    def test_nothing_differs_right_after_a_build(self, tools):
        tools.add("a")
        tools.build()
        assert unbuilt_folders(tools.root, load_registry(tools.root)) == ()


def renewed(document: dict) -> dict:
    """The document with the version that fits what it says, as a forger would write it."""
    folders = [entry["files"] for entry in document["tools"].values()]
    return {**document, "registryVersion": version_of(folders, document["shared"])}


class TestForged:
    @pytest.fixture
    def built(self, tools):
        tools.add("a-b")
        tools.add("other")
        tools.build()
        return tools

    @pytest.fixture
    def original(self, built) -> bytes:
        return built.registry.read_bytes()

    def load(self, tools, document) -> Registry | None:
        tools.registry.write_text(json.dumps(document))
        return load_registry(tools.root)

    def refused(self, registry: Registry, text: str) -> None:
        assert registry.tools == ()
        assert text in registry.problem
        assert registry.problem.endswith("; run: crib build")
        assert str(registry.path) not in registry.problem
        assert reasons(registry.unbuilt) == dict.fromkeys(["a-b", "other"], "the registry cannot be used")

    @pytest.mark.parametrize(
        ("folder", "text"),
        [
            ("../a-b", "is not in order"),
            ("/etc", "is not in order"),
            ("a-b/..", "is not in order"),
            ("..", "is not in order"),
            ("_core", "is not in order"),
            (".git", "is not in order"),
            ("", "is not in order"),
            (None, "is not in order"),
            (["a-b"], "is not in order"),
            ("other", "is the folder of another tool"),
        ],
    )
    def test_a_folder_that_is_not_its_own(self, built, folder, text):
        document = built.document()
        document["tools"]["a_b"]["folder"] = folder
        self.refused(self.load(built, document), text)

    @pytest.mark.parametrize(
        "path",
        [
            *("/etc/passwd", "../x", "a-b/../other/doc.md", "other/doc.md", "a-b", "a-b/", "a-b//x", "a-b/./x"),
            *("a-b\\x", "a-b/x\0", "", "A-B/doc.md"),
        ],
    )
    def test_a_path_that_leads_elsewhere(self, built, path):
        document = built.document()
        document["tools"]["a_b"]["files"][path] = "0" * 64
        self.refused(self.load(built, renewed(document)), "does not lead into 'a-b/'")

    @pytest.mark.parametrize("path", ["/etc/passwd", "_core/../../x", "core/x.js", "a-b/doc.md"])
    def test_a_shared_path_that_leads_elsewhere(self, built, path):
        document = built.document()
        document["shared"][path] = "0" * 64
        self.refused(self.load(built, renewed(document)), "does not lead into '_'")

    @pytest.mark.parametrize("field", ["handlerPath", "documentation"])
    @pytest.mark.parametrize("path", ["/etc/passwd", "other/handler.js", None, 7, ["a-b/doc.md"], {}])
    def test_a_handler_or_document_that_is_none_of_its_files(self, built, field, path):
        document = built.document()
        document["tools"]["a_b"][field] = path
        self.refused(self.load(built, document), f"tools.a_b.{field}: ")

    @pytest.mark.parametrize(
        "change",
        [
            {"registryVersion": "1.0.0"},
            {"registryVersion": 1},
            {"gitCommit": "x" * 40},
            {"gitCommit": None},
            {"shared": []},
            {"shared": {"_core/x.js": "abc"}},
            {"shared": {"_core/x.js": 1}},
            {"tools": []},
            {"tools": None},
            {"tools": {"a_b": 1}},
            {"tools": {"a_b": {}}},
            {"tools": {"": {"folder": ""}}},
        ],
    )
    def test_odd_types(self, built, change):
        self.refused(self.load(built, {**built.document(), **change}), "no build wrote this")

    def test_a_version_that_is_not_that_of_its_content(self, built):
        document = built.document()
        del document["tools"]["other"]
        self.refused(self.load(built, document), "is not that of the files it names")

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe",
            b'{"a": 1, "a": 2}',
            b"[" * 100_000,
            b'{"a": NaN}',
            b"{" + b'"a":{' * 90,
        ],
    )
    def test_what_is_no_registry_at_all(self, built, text):
        built.registry.write_bytes(text)
        self.refused(load_registry(built.root), "")

    def test_what_is_no_file_is_not_waited_for(self, built, tmp_path):
        built.registry.rename(tmp_path / "real")
        built.registry.symlink_to(tmp_path / "real")
        self.refused(load_registry(built.root), "links")
        built.registry.unlink()
        os.mkfifo(built.registry)
        self.refused(load_registry(built.root), "not a regular file")
        built.registry.unlink()
        built.registry.mkdir()
        self.refused(load_registry(built.root), "not a regular file")

    def test_what_is_too_large_is_not_read(self, built, monkeypatch):
        monkeypatch.setattr("toolcrib.features.folders.registry.MAX_REGISTRY_BYTES", 100)
        self.refused(load_registry(built.root), "more than 100 bytes")

    def test_definitions_come_from_the_folder_and_not_from_the_registry(self, built):
        document = built.document()
        entry = document["tools"]["a_b"]
        entry.update(description="FORGED", requiresConfirmation=True, parameters={}, summary="FORGED", idempotent=False)
        registry = self.load(built, document)
        tool = next(tool for tool in registry.tools if tool.name == "a_b")
        assert (tool.description, tool.requires_confirmation) == ("Search the knowledge base.", False)
        assert tool.parameters["required"] == ["query"]

    def test_hashes_that_fit_do_not_make_a_tool_of_what_no_build_would_take(self, built):
        (built.root / "other" / "schema.json").write_text("{}")
        document = built.document()
        files = {path: (built.root / path).read_bytes() for path in document["tools"]["other"]["files"]}
        document["tools"]["other"]["files"] = hash_files(files)
        registry = self.load(built, renewed(document))
        assert names(registry) == ["a_b"]
        assert "Missing required field" in reasons(registry.unbuilt)["other"]

    @settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_no_value_anywhere_is_a_crash(self, built, original, data):
        document = json.loads(original)
        spot, last = document, None
        while isinstance(spot, dict) and spot and (last is None or data.draw(st.booleans())):
            holder, last = spot, data.draw(st.sampled_from(sorted(spot)))
            spot = spot[last]
        holder[last] = data.draw(st.sampled_from([None, 1, -1.5, "x", "../x", [], {}, {"x": 1}, [[]], True, "a" * 64]))
        registry = self.load(built, document)
        assert {tool.name for tool in registry.tools} <= {"a_b", "other"}
        assert (registry.problem == "") == (registry.version != "")
