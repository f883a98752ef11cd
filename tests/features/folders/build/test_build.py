"""The build: every problem in one run, the same bytes everywhere, and the old registry until the new one is whole."""

import errno
import json
import os
import random
import shutil
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.build import build, check_folders
from toolcrib.features.folders.build_files import NO_CONTENT, hash_of
from warm_python import run_python


class TestProblems:
    @pytest.mark.spec("S2-02")
    def test_one_invalid_tool_leaves_the_old_registry_byte_for_byte(self, tools):
        tools.add("first")
        tools.build()
        before, inode = tools.registry.read_bytes(), tools.registry.stat().st_ino
        tools.add("second")
        tools.add("third", version=None)
        built = build(tools.root)
        assert [problem for problem in built.problems if "Missing required field" in problem]
        assert (built.ok, built.written) == (False, False)
        assert (tools.registry.read_bytes(), tools.registry.stat().st_ino) == (before, inode)

    @pytest.mark.spec("S2-02")
    def test_without_a_registry_an_invalid_tool_leaves_none(self, tools):
        tools.add("broken", version=None)
        assert not build(tools.root).ok
        assert sorted(path.name for path in tools.root.iterdir()) == ["broken"]

    @pytest.mark.spec("S2-66")
    def test_every_problem_of_every_tool_is_told_in_one_run_in_the_order_of_folders(self, tools):
        tools.add("a-field", latencyBudgetMs=None, category=None)
        tools.add("b-schema", parameters={"type": "object", "properties": {}})
        tools.add("c-section", files={"doc.md": "# A tool\n"})
        tools.add("d-name", toolId="other")
        tools.add("e-fine")
        problems = build(tools.root).problems
        phrases = {
            "a-field": "Missing required field",
            "b-schema": "Invalid JSON Schema",
            "c-section": "Missing required section",
            "d-name": "toolId doesn't match directory",
        }
        folders = [problem.split("/")[1] for problem in problems]
        assert folders == sorted(folders)
        assert {*folders} == {*phrases}
        assert all(phrases[folder] in problem for folder, problem in zip(folders, problems, strict=True))
        assert folders.count("a-field") == 2
        assert folders.count("c-section") == 7
        assert all(problem.startswith("tools/") for problem in problems)

    def test_two_folders_of_one_name_are_a_problem_of_both(self, tools):
        tools.add("kb-search")
        tools.add("kb_search")
        problems = build(tools.root).problems
        assert problems == (
            "tools/kb-search: would be the same tool as kb_search; rename one of them",
            "tools/kb_search: would be the same tool as kb-search; rename one of them",
        )

    def test_a_folder_that_cannot_be_read_is_a_problem_and_the_others_are_checked(self, tools, tmp_path):
        tools.add("a")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "schema.json").write_text("{}")
        (tools.root / "b").symlink_to(tmp_path / "elsewhere")
        os.mkfifo(tools.add("c") / "pipe")
        tools.add("d", version=None)
        problems = build(tools.root).problems
        assert [problem.split(":")[0] for problem in problems] == ["tools/b", "tools/c/pipe", "tools/d/schema.json"]

    def test_what_cannot_be_read_hides_nothing_else_of_its_folder(self, tools, tmp_path):
        folder = tools.add("a", version=None, files={"doc.md": "# A tool\n", "handler.js": "const a = 1;\n"})
        (tmp_path / "elsewhere").write_text("{}")
        (folder / "lib.js").symlink_to(tmp_path / "elsewhere")
        os.mkfifo(folder / "pipe")
        problems = build(tools.root).problems
        assert [problem.split(":")[0] for problem in problems] == [
            *("tools/a/lib.js", "tools/a/pipe", "tools/a/schema.json"),
            *["tools/a/doc.md"] * 7,
            "tools/a/handler.js",
        ]
        assert not tools.registry.exists()

    @pytest.mark.parametrize("name", ["schema.json", "doc_summary.md", "doc.md", "handler.js"])
    def test_one_of_the_four_files_that_cannot_be_read_is_not_called_missing(self, tools, tmp_path, name):
        folder = tools.add("a")
        cache = tmp_path / "cache"
        tools.build(cache=cache)
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
        for _ in range(2):
            built = build(tools.root, cache=cache)
            assert built.problems == (
                f"tools/a/{name}: is a link that is not followed; put a copy of what it means there",
            )
            assert built.tools == ()

    def test_a_python_handler_that_cannot_be_read_is_not_called_missing(self, tools):
        folder = tools.add("a", files={"handler.js": None})
        os.mkfifo(folder / "handler.py")
        assert build(tools.root).problems == ("tools/a/handler.py: is not a regular file; move it away",)

    def test_a_plain_file_of_the_same_name_is_warned_of_with_who_is_called(self, tools):
        tools.add("my-tool")
        tools.write("my_tool.py", "def my_tool() -> str:\n    return 'plain'\n")
        tools.write("other.py", "def other() -> str:\n    return 'plain'\n")
        told = "tools/my_tool.py:1: is a tool of the same name as the folder my-tool, which is the one called"
        assert tools.build().warnings == (f"{told}; rename one of them",)
        assert build(tools.root, strict=True).problems == (f"{told}; rename one of them",)
        assert tools.document()["tools"]["my_tool"]["warnings"] == []

    def test_a_build_says_whether_there_is_a_registry(self, tools):
        tools.add("a", version=None)
        assert build(tools.root).has_registry is False
        tools.add("a")
        assert tools.build().has_registry is True
        tools.add("b", version=None)
        assert build(tools.root).has_registry is True
        assert build(tools.root / "none").has_registry is False

    def test_what_tools_share_and_cannot_be_read_is_one_problem(self, tools):
        tools.add("a")
        (tools.root / "_core").mkdir()
        os.mkfifo(tools.root / "_core" / "error-types.js")
        problems = build(tools.root).problems
        assert problems == ("tools/_core/error-types.js: is not a regular file; move it away",)
        assert not tools.registry.exists()

    def test_a_root_that_is_no_folder_is_a_problem(self, tmp_path):
        (tmp_path / "file").write_text("")
        assert "does not exist" in build(tmp_path / "absent").problems[0]
        assert "not a folder" in build(tmp_path / "file").problems[0]
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_a_warning_builds_and_with_strict_it_does_not(self, tools):
        tools.add("a", category="action", sideEffects="none")
        strict = build(tools.root, strict=True)
        assert strict.problems
        assert not strict.written
        assert not tools.registry.exists()
        built = build(tools.root)
        assert (built.written, built.warnings) == (True, strict.problems)
        assert built.warnings[0].startswith("tools/a/schema.json:")


class TestRegistry:
    def test_it_says_all_that_a_reader_needs_to_offer_the_tool(self, tools):
        tools.add("kb-search", files={"lib/words.js": "export const words = 1;\n"})
        built = tools.build()
        assert (built.path, built.tools, built.written) == (tools.registry, ("kb_search",), True)
        document = tools.document()
        assert document.keys() == {"registryVersion", "gitCommit", "shared", "tools"}
        assert document["registryVersion"] == built.version
        assert document["shared"].keys() == {"_core/error-types.js"}
        entry = document["tools"]["kb_search"]
        schema = json.loads((tools.root / "kb-search" / "schema.json").read_text())
        for field in (*("version", "description", "category", "sideEffects", "idempotent"), "latencyBudgetMs"):
            assert entry[field] == schema[field]
        assert entry["parameters"] == schema["parameters"]
        assert entry["allowedModes"] == ["text", "voice"]
        assert entry["requiresConfirmation"] is False
        assert entry["summary"].strip() == "Search the knowledge base."
        assert entry["folder"] == "kb-search"
        assert entry["handlerPath"] == "kb-search/handler.js"
        assert entry["documentation"] == "kb-search/doc.md"
        assert sorted(entry["files"]) == [
            f"kb-search/{name}" for name in ("doc.md", "doc_summary.md", "handler.js", "lib/words.js", "schema.json")
        ]
        assert entry["providerSchemas"]["openai"]["function"]["name"] == "kb_search"
        assert entry["providerSchemas"]["geminiNative"]["name"] == "kb_search"
        assert (entry["losses"], entry["warnings"]) == ([], [])

    def test_fields_that_a_tool_may_have_are_there_if_it_has_them(self, tools):
        options = {
            "requires": ["net.http", "fs.read"],
            "hosts": [],
            "outputSchema": {"type": "object"},
            "timeoutMs": 9000,
            "tags": ["words"],
            "displayName": "My Tool",
        }
        tools.add("a", **options)
        tools.add("b")
        tools.build()
        entries = tools.document()["tools"]
        assert {name: entries["a"][name] for name in options} == {**options, "requires": ["fs.read", "net.http"]}
        assert not entries["b"].keys() & options.keys()

    def test_what_a_provider_cannot_express_is_said_as_a_warning(self, tools):
        text = {"type": "string", "description": "A word", "if": {"minLength": 3}, "then": {"pattern": "a"}}
        tools.add("a", parameters={"type": "object", "additionalProperties": False, "properties": {"word": text}})
        (warning, *_) = tools.build().warnings
        assert warning.startswith("tools/a/schema.json:1: for gemini: parameters#/properties/word: if: ")
        entry = tools.document()["tools"]["a"]
        assert entry["losses"][0].keys() == {"provider", "path", "keyword", "text"}
        assert entry["losses"][0]["provider"] == "gemini"
        assert f"tools/{entry['warnings'][0]}" == warning

    @pytest.mark.spec("S2-70")
    def test_folders_that_begin_with_an_underscore_or_a_dot_are_no_tools(self, tools):
        tools.add("kb-search")
        for folder in ("_core", ".hidden", "_draft"):
            shutil.copytree(tools.root / "kb-search", tools.root / folder)
        assert tools.build().tools == ("kb_search",)

    def test_no_tools_give_a_valid_registry_without_any(self, tools):
        built = tools.build()
        assert (built.version, built.tools, built.written) == (NO_CONTENT, (), True)
        assert NO_CONTENT == "1.0.0000000000000000"
        assert tools.document()["tools"] == {}
        assert not (tools.root / "_core").exists()

    def test_integers_of_any_size_arrive_as_they_were_written(self, tools):
        number = {"type": "integer", "maximum": 2**70}
        tools.add("a", parameters={"type": "object", "additionalProperties": False, "properties": {"n": number}})
        cache = tools.root.parent / "cache"
        for _ in range(2):
            tools.build(cache=cache)
            assert tools.document()["tools"]["a"]["parameters"]["properties"]["n"]["maximum"] == 2**70
            tools.registry.unlink()

    def test_one_that_holds_these_very_bytes_is_left_alone(self, tools):
        tools.add()
        tools.build()
        before = tools.registry.stat()
        assert tools.build().written is False
        after = tools.registry.stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_others_may_read_it(self, tools):
        tools.add()
        old = os.umask(0o022)
        try:
            tools.build()
        finally:
            os.umask(old)
        assert stat.S_IMODE(tools.registry.stat().st_mode) == 0o644


class TestSameBytes:
    @pytest.mark.spec("S2-53")
    def test_two_clones_made_in_other_orders_at_other_times_give_the_same_bytes(self, tools_at, tmp_path):
        names = [f"tool-{number}" for number in range(8)]
        clones = [tools_at(tmp_path / "here" / "tools"), tools_at(tmp_path / "far" / "away" / "with-other-name")]
        for seed, clone in enumerate(clones):
            shuffled = random.Random(seed).sample(names, len(names))
            clone.write("_lib/one.js" if seed else "_lib/two.js", "export const x = 1;\n")
            for name in shuffled:
                folder = clone.add(name, category="action", sideEffects="none")
                os.utime(folder / "doc.md", (seed * 10_000, seed * 10_000))
            clone.write("_lib/two.js" if seed else "_lib/one.js", "export const x = 1;\n")
            assert clone.build(cache=clone.root / ".cache").warnings
        assert clones[0].registry.read_bytes() == clones[1].registry.read_bytes()
        assert str(tmp_path).encode() not in clones[0].registry.read_bytes()

    @pytest.mark.spec("S2-53")
    @settings(max_examples=40)
    @given(data=st.data())
    def test_any_byte_that_changes_in_any_file_changes_the_version(self, data):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            files = {
                "a/schema.json": b"{}",
                "a/doc.md": b"# A",
                "a/lib/x.js": b"",
                "b-c/handler.py": b"x = 1\n",
                "_core/y.js": b"y",
            }
            for path, content in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(content)
            before = check_folders(root).version
            path = data.draw(st.sampled_from(sorted(files)))
            content = bytearray(files[path])
            at = data.draw(st.integers(0, len(content)))
            if at == len(content):
                content.append(data.draw(st.integers(0, 255)))
            else:
                content[at] ^= data.draw(st.integers(1, 255))
            (root / path).write_bytes(content)
            assert check_folders(root).version != before
            (root / path).write_bytes(files[path])
            assert check_folders(root).version == before

    @pytest.mark.spec("S2-53")
    def test_bytes_that_move_from_one_file_to_the_next_change_the_version(self, tools):
        tools.add("a", files={"x.txt": "12", "y.txt": "3"})
        before = tools.build().version
        tools.add("a", files={"x.txt": "1", "y.txt": "23"})
        middle = tools.build().version
        (tools.root / "a" / "x.txt").rename(tools.root / "a" / "z.txt")
        assert len({before, middle, tools.build().version}) == 3

    @pytest.mark.spec("S2-53")
    def test_no_path_can_pass_for_a_path_and_a_hash(self):
        one, two = "1" * 64, "2" * 64
        assert hash_of({"a": one, "b": two}) != hash_of({f"a{one}b": two})


class TestCache:
    def test_an_unchanged_folder_is_not_looked_into_again(self, tools, tmp_path):
        cache = tmp_path / ".toolcrib" / "build.json"
        tools.add("a", category="action", sideEffects="none")
        tools.add("b")
        looked: list[str] = []
        first = check_folders(tools.root, cache=cache, say=looked.append)
        assert looked == ["a", "b"]
        assert check_folders(tools.root, cache=cache, say=looked.append) == first
        assert looked == ["a", "b"]
        assert first.warnings
        tools.add("b", description="Another one.")
        changed = check_folders(tools.root, cache=cache, say=looked.append)
        assert looked == ["a", "b", "b"]
        assert changed.tools["b"]["description"] == "Another one."

    def test_what_tools_share_counts_for_each_of_them(self, tools, tmp_path):
        cache = tmp_path / "build.json"
        tools.add("a")
        looked: list[str] = []
        check_folders(tools.root, cache=cache, say=looked.append)
        tools.write("_lib/x.js", "export const x = 1;\n")
        check_folders(tools.root, cache=cache, say=looked.append)
        assert looked == ["a", "a"]

    def test_a_problem_is_told_every_time(self, tools, tmp_path):
        cache = tmp_path / "build.json"
        tools.add("a", version=None)
        first = check_folders(tools.root, cache=cache)
        assert first.problems
        assert check_folders(tools.root, cache=cache) == first

    def test_a_registry_is_the_same_with_and_without_it(self, tools, tmp_path):
        for name in ("a", "b"):
            tools.add(name, category="action", sideEffects="none")
        found = set()
        for cache in (None, tmp_path / "cache", tmp_path / "cache"):
            tools.build(cache=cache)
            found.add(tools.registry.read_bytes())
            tools.registry.unlink()
        assert len(found) == 1

    @pytest.mark.parametrize("damage", ["cut", "flip", "foreign", "empty", "binary", "folder", "link", "code"])
    def test_one_that_is_damaged_or_foreign_is_ignored_and_made_anew(self, tools, tmp_path, damage, monkeypatch):
        cache = tmp_path / "cache"
        tools.add("a")
        right = check_folders(tools.root, cache=cache)
        content = cache.read_bytes()
        if damage == "folder":
            cache.unlink()
            cache.mkdir()
        elif damage == "link":
            cache.rename(tmp_path / "other")
            cache.symlink_to(tmp_path / "other")
        elif damage == "code":
            monkeypatch.setattr("toolcrib.features.folders.build_files._code", lambda: "0" * 64)
        else:
            forged = content.replace(b"Search the knowledge", b"Delete the knowledge")
            texts = {"cut": content[:-20], "flip": forged, "foreign": b'{"a": 1}', "empty": b"", "binary": b"\0\xff"}
            cache.write_bytes(texts[damage])
        looked: list[str] = []
        assert check_folders(tools.root, cache=cache, say=looked.append) == right
        assert looked == ["a"]

    def test_one_that_cannot_be_written_costs_nothing_but_time(self, tools, tmp_path):
        tools.add("a")
        (tmp_path / "file").write_text("")
        assert check_folders(tools.root, cache=tmp_path / "file" / "cache").problems == ()

    def test_it_never_says_which_bytes_were_checked(self, tools, tmp_path):
        from toolcrib.features.folders import build_files as module

        cache = tmp_path / "cache"
        tools.add("a")
        right = tools.build(cache=cache)
        document = json.loads(cache.read_bytes().partition(b"\n")[2])
        for entry in document.values():
            entry.update(files={}, hash="0" * 64, folder="../x", handlerPath="/etc/passwd", documentation="x")
        forged = json.dumps(document).encode()
        cache.write_bytes(module._seal(forged) + forged)
        tools.registry.unlink()
        assert tools.build(cache=cache) == right
        entry = tools.document()["tools"]["a"]
        assert (entry["folder"], entry["handlerPath"], len(entry["files"])) == ("a", "a/handler.js", 4)


class TestWriting:
    KILLED = """
import os, signal, sys
from pathlib import Path
from toolcrib.build import build
os.rename = lambda *words, **more: os.kill(os.getpid(), signal.SIGKILL)
build(Path(sys.argv[1]))
"""

    @pytest.mark.spec("S2-02")
    def test_a_build_that_is_killed_before_the_last_step_leaves_the_old_one(self, tools):
        tools.add("a")
        tools.build()
        before = tools.registry.read_bytes()
        tools.add("b")
        killed = run_python([sys.executable, "-c", self.KILLED, str(tools.root)], timeout=30, check=False)
        assert killed.returncode == -9
        assert tools.registry.read_bytes() == before
        assert list(tools.root.glob(".crib-*"))
        tools.build()
        assert tools.document()["tools"].keys() == {"a", "b"}
        assert not list(tools.root.glob(".crib-*"))

    @pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
    @pytest.mark.spec("S2-02")
    def test_a_root_that_takes_no_files_is_named_and_keeps_its_registry(self, tools, monkeypatch, number):
        tools.add("a")
        tools.build()
        before = tools.registry.read_bytes()
        tools.add("b")
        open_file = os.open

        def refuse(path, flags, *more, **others):
            if flags & os.O_CREAT:
                raise OSError(number, os.strerror(number))
            return open_file(path, flags, *more, **others)

        monkeypatch.setattr(os, "open", refuse)
        built = build(tools.root)
        monkeypatch.undo()
        assert len(built.problems) == 1
        assert str(tools.registry) in built.problems[0]
        assert tools.registry.read_bytes() == before

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_root_is_named(self, tools):
        tools.add("a")
        tools.root.chmod(0o555)
        try:
            built = build(tools.root)
        finally:
            tools.root.chmod(0o755)
        assert "not permitted; change the permissions" in built.problems[0]

    def test_a_link_in_its_place_is_replaced_and_what_it_leads_to_is_left_alone(self, tools, tmp_path):
        tools.add("a")
        (tmp_path / "precious").write_text("precious")
        tools.registry.symlink_to(tmp_path / "precious")
        tools.build()
        assert (tmp_path / "precious").read_text() == "precious"
        assert not tools.registry.is_symlink()
        assert tools.document()["tools"].keys() == {"a"}

    def test_one_that_no_start_could_read_is_not_written(self, tools, monkeypatch):
        tools.add("a")
        monkeypatch.setattr("toolcrib.features.folders.registry.MAX_REGISTRY_BYTES", 500)
        built = build(tools.root)
        assert built.problems[0].startswith(f"{tools.registry}: content: has ")
        assert not tools.registry.exists()

    def test_builds_that_race_leave_one_whole_registry_and_nothing_else(self, tools, tmp_path):
        for number in range(5):
            tools.add(f"tool-{number}")
        with ThreadPoolExecutor(8) as pool:
            builds = [pool.submit(build, tools.root, cache=tmp_path / "cache") for _ in range(16)]
            results = [each.result(timeout=30) for each in builds]
        assert all(built.ok for built in results)
        assert sum(built.written for built in results) == 1
        assert len(tools.document()["tools"]) == 5
        assert not list(tools.root.glob(".crib-*"))

    def test_a_build_waits_for_the_one_before_it(self, tools):
        # The later one must not be overtaken by an earlier one that saw older files.
        import fcntl

        tools.add("a")
        folder = os.open(tools.root, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(build, tools.root)
            try:
                with pytest.raises(TimeoutError):
                    waiting.result(timeout=0.2)
            finally:
                os.close(folder)
            assert waiting.result(timeout=30).ok
