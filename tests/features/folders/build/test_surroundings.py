"""What a build sees to beside the registry: the module of error types, and that git leaves the registry alone."""

import json
import shutil
import subprocess

import pytest

from toolcrib import Kind
from toolcrib.build import build

NODE = shutil.which("node")


class TestErrorTypes:
    @pytest.mark.spec("S2-44")
    def test_it_is_supplied_where_every_tool_folder_imports_it_from(self, tools):
        tools.add("a")
        tools.build()
        text = (tools.root / "_core" / "error-types.js").read_text()
        assert "export class ToolError extends Error" in text
        assert "export const ErrorType = Object.freeze(" in text

    @pytest.mark.spec("S2-44")
    def test_one_that_is_there_is_never_overwritten_and_counts_as_content(self, tools):
        tools.add("a")
        first = tools.build().version
        tools.write("_core/error-types.js", "export const ErrorType = {};\nexport class ToolError extends Error {}\n")
        assert tools.build().version != first
        assert "frozen" not in (tools.root / "_core" / "error-types.js").read_text()

    def test_what_is_checked_is_what_is_supplied(self, tools):
        tools.add("a")
        assert tools.build().version == tools.build().version

    def test_a_file_in_the_place_of_its_folder_is_named(self, tools):
        tools.add("a")
        tools.write("_core", "no folder")
        built = build(tools.root)
        assert "_core" in built.problems[0]
        assert not tools.registry.exists()

    @pytest.mark.spec("S2-44")
    @pytest.mark.skipif(NODE is None, reason="there is no Node on this machine")
    def test_node_finds_all_names_and_errors_with_all_their_facts(self, tools):
        tools.add("a")
        tools.build()
        script = tools.write(
            "a/try.mjs",
            """
            import { ToolError, ErrorType } from '../_core/error-types.js';
            const bare = new ToolError(ErrorType.CONFLICT, 'no');
            const full = new ToolError('TRANSIENT', 'lost', { retryable: true, partialSideEffects: true, details: { a: 1 } });
            const facts = (e) => [e.name, e.type, e.message, e.retryable, e.partialSideEffects, e.details ?? null];
            let frozen = false;
            try { ErrorType.MINE = 'x'; } catch { frozen = Object.isFrozen(ErrorType); }
            console.log(JSON.stringify({
              types: ErrorType, bare: facts(bare), full: facts(full), frozen, isError: bare instanceof Error,
            }));
            """,
        )
        run = subprocess.run([NODE, str(script)], capture_output=True, timeout=30, check=True)
        told = json.loads(run.stdout)
        assert told == {
            "types": {kind: kind for kind in Kind},
            "bare": ["ToolError", "CONFLICT", "no", False, False, None],
            "full": ["ToolError", "TRANSIENT", "lost", True, True, {"a": 1}],
            "frozen": True,
            "isError": True,
        }


class TestOutOfGit:
    @pytest.mark.spec("S2-50")
    def test_git_ignores_what_was_built(self, tools):
        tools.add("a")
        project = tools.root.parent
        git = ["git", "-c", "safe.directory=*", "-C", str(project)]
        subprocess.run([*git, "init", "-q"], check=True, timeout=30)
        tools.build(project=project)
        ignored = subprocess.run([*git, "check-ignore", "tools/tool_registry.json"], check=False, timeout=30)
        assert ignored.returncode == 0
        assert (tools.root / ".gitignore").read_text() == "tool_registry.json\n"

    @pytest.mark.parametrize(("before", "end"), [(b"*.log", b"\n"), (b"*.log\n", b""), (b"", b""), (b"\xff\r\n", b"")])
    def test_a_file_that_is_there_gets_one_line_more_once(self, tools, before, end):
        path = tools.write(".gitignore", before)
        path.chmod(0o600)
        for _ in range(2):
            tools.build()
            assert path.read_bytes() == before + end + b"tool_registry.json\n"
        assert path.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        ("where", "line"),
        [
            ("tools", "tool_registry.json"),
            ("tools", "/tool_registry.json  "),
            ("tools", "!tool_registry.json"),
            ("tools", "*"),
            (".", "tool_registry.json"),
            (".", "**/tool_registry.json"),
            (".", "/tools/tool_registry.json"),
            (".", "tools/"),
        ],
    )
    def test_a_line_that_speaks_of_it_already_is_enough(self, tools, where, line):
        project = tools.root.parent
        (project / where / ".gitignore").write_text(f"# ours\n{line}\n")
        tools.build(project=project)
        found = {path.relative_to(project).as_posix(): path.read_text() for path in project.rglob(".gitignore")}
        assert list(found.values()) == [f"# ours\n{line}\n"]

    @pytest.mark.parametrize("line", ["# tool_registry.json", "other/tool_registry.json", "tool_registry.json.bak"])
    def test_other_lines_are_not(self, tools, line):
        project = tools.root.parent
        (project / ".gitignore").write_text(f"{line}\n")
        tools.build(project=project)
        assert (tools.root / ".gitignore").read_text() == "tool_registry.json\n"

    def test_a_link_in_its_place_is_left_alone(self, tools, tmp_path):
        (tmp_path / "shared").write_text("*.log\n")
        (tools.root / ".gitignore").symlink_to(tmp_path / "shared")
        tools.build()
        assert (tmp_path / "shared").read_text() == "*.log\n"
        assert (tools.root / ".gitignore").is_symlink()
