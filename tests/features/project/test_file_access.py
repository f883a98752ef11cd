"""A tool that opens files of the project without requiring it is told so, by a call, `crib check` and `crib add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib import Crib

PYTHON = 'import os\n\n\ndef show() -> str:\n    """Show it."""\n    return open(os.environ["TOOLCRIB_WORKSPACE"] + "/a.txt").read()\n'
NODE = """const fs = require("fs");
/** Show it. */
exports.show = () => fs.readFileSync(`${process.env.TOOLCRIB_WORKSPACE}/a.txt`, "utf8");
"""
BASH = '#!/bin/bash\n# Show it.\n# @requires [shell.execute]\ncat "$TOOLCRIB_WORKSPACE/a.txt"\n'
OPENS = '''from pathlib import Path


def count(path: str, mode: str = "r") -> int:
    """Count letters."""
    Path(__file__).with_name("beside.txt").write_text("x")
    return len({opened})
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/tools").mkdir(parents=True)
    (tmp_path / "project/toolcrib.toml").write_text("")
    (tmp_path / "project/a.txt").write_text("hello")
    return tmp_path / "project"


@pytest.mark.parametrize(("name", "code"), [("show.py", PYTHON), ("show.cjs", NODE), ("show.sh", BASH)])
def test_a_tool_that_sees_no_file_of_the_project_is_told_the_capability(project, cli, name, code):
    (project / "tools" / name).write_text(code)
    cure = "list fs.read in its requires, without which it sees no file of the project"
    with Crib(project, grants={"*": ["fs.*", "shell.execute"]}) as crib:
        error = crib.call_sync("show").error
        assert error.message.endswith(cure)
        assert "access.variables" not in error.message
    needs = "it needs fs.read in its requires, without which it sees no file of the project"
    assert (needs in cli("check", "-C", str(project)).out) == (name != "show.sh")


@pytest.mark.parametrize(
    ("opened", "needed"),
    [
        ("open(path).read()", "fs.read"),
        ("Path(path).read_text()", "fs.read"),
        ("open(path, 'w').name", "fs.write"),
        ("open(path, mode='a').name + Path(path).read_text()", "fs.read and fs.write"),
        ("path", ""),
        ("Path(__file__).read_text()", ""),
    ],
)
def test_adding_a_function_that_opens_a_path_names_the_capability(project, tmp_path, cli, opened, needed):
    (tmp_path / "count.py").write_text(OPENS.replace("{opened}", opened))
    said = cli("add", "-C", str(project), str(tmp_path / "count.py")).out.splitlines()[1:]
    line = f"  warning: count opens files; those of the project need {needed}: list it in its requires"
    assert said == ([line] if needed else [])
    (tmp_path / "count.py").write_text('__requires__ = ["fs.read", "fs.write"]\n' + OPENS.replace("{opened}", opened))
    assert cli("add", "--replace", "-C", str(project), str(tmp_path / "count.py")).out.count("\n") == 1
