"""Which files are read, which are skipped, and how a plug-in adds another language."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib import ToolError
from toolcrib.core.catalog import Catalog
from toolcrib.core.file_source import FileSource
from toolcrib.features.scripts.definition import build_tools
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.features.scripts.metadata import Metadata

ROOT = Path(".ai/tools")
YAML = 'tool_id: a-b\ncategory: {}\ntool_type: script\nversion: "1.0.0"\ndescription: D\nexecutor_id: bash\n'
RUBY = "# tool_type: script\n# version: 1.0.0\n# description: Do it\n# category: ops\n# executor_id: ruby\nputs 1\n"


def tools_of(source):
    return [entry.tool for entry in source.entries()]


@pytest.mark.parametrize(
    "name",
    ["a.py", "a.js", "a.mjs", "a.cjs", "a.sh", "a.bash", "a.yaml", "a.yml", "a.toml", "a.json", "A.PY", "test_a.py", "a.rb", "a.ts"],
)  # fmt: skip
def test_a_file_that_may_hold_a_tool_is_read(name):
    assert ScriptFile(ROOT).reads(ROOT / "ops" / name)


@pytest.mark.spec("S3-01")
@pytest.mark.parametrize(
    "name", ["README.md", "logo.png", "data.csv", "a.txt", "Makefile", "a.pyc", ".hidden.yaml", "_helper.py", "a"]
)
def test_another_file_is_skipped(name):
    assert not ScriptFile(ROOT).reads(ROOT / "ops" / name)


@pytest.mark.spec("S3-01")
def test_a_tool_in_an_unknown_language_is_reported(problems):
    assert problems("ops/do-it.rb", f"#!/usr/bin/ruby\n{RUBY}") == [
        (
            "2: metadata is not read from .rb files, so this one is skipped; "
            "describe it in a .yaml file beside it, or install a plug-in whose format reads it"
        )
    ]


@pytest.mark.spec("S3-62")
@pytest.mark.parametrize("text", [b"", b"puts 1\n", b"\xff\0"])
def test_a_helper_in_such_a_language_is_left_alone(text):
    assert ScriptFile(ROOT).read(ROOT / "ops/helper.rb", text) == []


class RubyFile:
    """What a plug-in brings: it finds the fields, and the rest is as for every other language."""

    name = "ruby"

    def __init__(self, root: Path) -> None:
        self.root = root

    def reads(self, path: Path) -> bool:
        return path.suffix == ".rb"

    def read(self, path: Path, code: bytes):
        comments = [line[2:].split(": ", 1) for line in code.decode().splitlines() if line.startswith("# ")]
        return build_tools(Metadata(path=path, fields=dict(comments), language="ruby", code=code), self.root)


@pytest.mark.spec("S3-63")
def test_a_plug_in_adds_a_language_without_touching_ours(tmp_path):
    root = tmp_path / "tools"
    (root / "ops").mkdir(parents=True)
    (root / "ops/do-it.rb").write_text(RUBY)
    (root / "ops/other.yaml").write_text(YAML.format("ops"))
    folder = FileSource(root / "ops", "project", [RubyFile(root), ScriptFile(root)])
    folder.refresh()
    assert folder.problems() == []
    assert [(tool.name, tool.kind, tool.bundle) for tool in tools_of(folder)] == [
        ("do-it", "script", "project"),
        ("a-b", "script", "project"),
    ]
    assert tools_of(folder)[0].run.script.language == "ruby"


def test_a_file_that_is_wrong_costs_only_itself(tmp_path):
    root = tmp_path / "tools"
    (root / "ops").mkdir(parents=True)
    (root / "ops/good.yaml").write_text(YAML.format("ops"))
    (root / "ops/wrong.yaml").write_text(YAML.format("other").replace("a-b", "A"))
    folder = FileSource(root / "ops", "project", [ScriptFile(root)])
    folder.refresh()
    assert [tool.name for tool in tools_of(folder)] == ["a-b"]
    problems = [problem.message for problem in folder.problems()]
    assert len(problems) == 2
    assert all(problem.startswith(f"{root / 'ops/wrong.yaml'}:") for problem in problems)


HEADER = "# tool_type: script\n# executor_id: bash\n# version: 1.0.0\n# category: ops\n# description: D\n"


@pytest.fixture
def ops(tmp_path):
    """The folder of a category, and a way to look at it as a space does."""
    folder = tmp_path / "tools/ops"
    folder.mkdir(parents=True)
    space = FileSource(tmp_path / "tools", "project", [ScriptFile(tmp_path / "tools")], is_tree=True)

    def look() -> tuple[list[str], list[str]]:
        space.refresh()
        found = [problem.message.removeprefix(f"{folder}/") for problem in space.problems()]
        return [tool.name for tool in tools_of(space)], found

    return folder, look


@pytest.mark.spec("S3-01")
def test_a_script_without_an_extension_is_reported(ops):
    folder, look = ops
    (folder / "do-it").write_text(f"#!/bin/bash\n{HEADER}echo hi\n")
    assert look() == (
        [],
        [
            (
                "do-it:2: metadata is not read from files without an extension, so this one is skipped; add the extension of "
                "its language, such as .sh, describe it in a .yaml file beside it, or install a plug-in whose format reads it"
            )
        ],
    )
    (folder / "do-it").rename(folder / "do-it.sh")
    assert look() == (["do-it"], [])


def test_other_files_without_an_extension_are_left_alone(ops):
    folder, look = ops
    (folder / "run").write_text("#!/bin/bash\necho tool_id\n")
    (folder / "Makefile").write_text(HEADER)
    (folder / "program").write_bytes(b"\x7fELF" + b"\0" * 300_000)
    (folder / "installer").write_bytes(b"#!/bin/sh\n" + b"\0" * 300_000)
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "folder")
    (folder / "nowhere").symlink_to(folder / "missing")
    os.mkfifo(folder / "pipe")
    (folder / "link.py").symlink_to(folder / "folder")
    before = len([*Path("/proc/self/fd").iterdir()])
    assert look() == look() == ([], [])
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("types.yaml", "tool_id: types-tool\ntool_type: x\n"),
        ("types.yaml", "tool_type: x\ntool_id: 'types-tool'\nconfig: {a: [\n"),
        ("types.toml", 'tool_type = "x"\ntool_id = "types-tool"\nversion = \n'),
        ("types.json", '{"tool_id": "types-tool", "tool_type": '),
        ("types.json", '{\n  "tool_type": 1,\n  "tool_id": "types-tool"\n}'),
        ("types.py", "__tool_id__ = 'types-tool'\n__tool_type__ = 1\n"),
        ("types.js", "/**\n * @tool_id types-tool\n */\n"),
        ("types.js", "// @tool_id types-tool\n"),
        ("types.sh", "#!/bin/sh\n# tool_id: types-tool\n"),
        ("types.rb", "# tool_id: types-tool\n"),
    ],
)
def test_a_file_that_is_wrong_still_says_its_name(name, text):
    with pytest.raises(ToolError) as caught:
        ScriptFile(ROOT).read(ROOT / "ops" / name, text.encode())
    assert caught.value.details["tool_id"] == "types-tool"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "tool_type: x\nconfig:\n  tool_id: other\n"),
        ("a.py", "__tool_type__ = 1\ndef f():\n    tool_id = other\n# tool_id of a tool\n"),
        ("a.js", "// @tool_type x\nconst a = {\n  tool_id: other }\n"),
    ],
)
def test_what_only_looks_like_a_name_is_none(name, text):
    with pytest.raises(ToolError) as caught:
        ScriptFile(ROOT).read(ROOT / "ops" / name, text.encode())
    assert "tool_id" not in caught.value.details


def test_who_calls_a_tool_by_the_name_in_its_broken_file_is_told_so(ops, tmp_path):
    folder, _ = ops
    (folder / "types.yaml").write_text("tool_id: types-tool\ntool_type: script\n")
    catalog = Catalog()
    catalog.add_source(FileSource(tmp_path / "tools", "project", [ScriptFile(tmp_path / "tools")], is_tree=True))
    for name in ("types-tool", "types_tool", "types"):
        assert catalog.find(name) is None
        assert catalog.suggest(name).startswith("its file is broken: tools/ops/types.yaml:1: ")
    (folder / "types.yaml").write_text(YAML.format("ops").replace("a-b", "types-tool"))
    assert catalog.find("types-tool").tool.name == "types-tool"


def test_a_catalogue_tells_the_problems_of_a_file_one_by_one(ops, tmp_path):
    folder, _ = ops
    (folder / "wrong.yaml").write_text(YAML.format("other").replace("a-b", "A").replace("1.0.0", "1"))
    catalog = Catalog()
    catalog.add_source(FileSource(tmp_path / "tools", "project", [ScriptFile(tmp_path / "tools")], is_tree=True))
    assert [problem.message.removeprefix(f"{folder}/") for problem in catalog.problems()] == [
        "wrong.yaml:1: tool_id: 'A' is not in kebab-case; write tool_id: \"a\"",
        "wrong.yaml:2: category: 'other' is not the folder of the file; write category: \"ops\"",
        "wrong.yaml:4: version: '1' is not X.Y.Z; write version: \"1.0.0\"",
    ]


def test_the_same_text_gives_the_same_tool(load):
    text = YAML.format("ops") + "metadata: {b: 1, a: 2}\n"
    assert load("ops/x.yaml", text)[0].content_hash == load("ops/x.yaml", text)[0].content_hash
    assert load("ops/x.yaml", text)[0].content_hash != load("ops/x.yaml", text + "tags: [a]\n")[0].content_hash


def test_a_file_of_one_language_brings_in_nothing_for_another():
    code = f"""
import sys
from pathlib import Path
from toolcrib.features.scripts.format import ScriptFile
dialect = ScriptFile(Path("t"))
dialect.read(Path("t/ops/do-it.sh"), {RUBY.replace("# tool_type", "# timeout: 30" + chr(10) + "# tool_type")!r}.encode())
dialect.read(Path("t/ops/x.json"), b'{{"a": 1}}')
print([name for name in ("yaml", "ssl", "asyncio", "tomllib") if name in sys.modules])
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "[]\n"


def test_every_problem_names_the_file(tmp_path):
    with pytest.raises(ToolError) as caught:
        ScriptFile(tmp_path).read(tmp_path / "x/a.yaml", b"tool_id: 1\n")
    assert all(line.startswith(f"{tmp_path}/x/a.yaml:1: ") for line in caught.value.message.split("\n"))
