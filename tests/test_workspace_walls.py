"""What would be obeyed or run at the next start is not for tools to write, whichever way they come to it."""

import os

import pytest

from toolcrib import Crib, Kind, ToolError

WRITE = """\
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "files"
__tool_description__ = "Write a file of the workspace"
__requires__ = ["fs.write"]

import os


def main(path: str) -> str:
    place = os.path.join(os.environ["TOOLCRIB_WORKSPACE"], path)
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:
            file.write("planted")
    except OSError as problem:
        return type(problem).__name__
    return "written"
"""

PLANT = '''\
from pathlib import Path

__requires__ = ["fs.write"]


def plant() -> None:
    """Write a file."""
    place = Path({place!r})
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("planted")
'''


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / ".ai" / "tools" / "files"
    folder.mkdir(parents=True)
    (folder / "write-file-there.py").write_text(WRITE)
    (tmp_path / "toolcrib.toml").write_text("")
    return tmp_path


PLANTED = [
    "toolcrib.toml",
    ".ai/tools/files/evil.py",
    ".ai/node_modules/x/index.js",
    ".ai/evil",
    "node_modules/x/index.js",
    "package.json",
    ".venv/pyvenv.cfg",
    "venv/pyvenv.cfg",
    "tools/evil.py",
    ".toolcrib/key",
]


@pytest.mark.parametrize("path", PLANTED)
async def test_a_script_cannot_plant_what_others_would_run_or_obey(root, path):
    before = {
        str(file): file.read_bytes() for file in root.rglob("*") if file.is_file() and ".toolcrib" not in str(file)
    }
    async with Crib(root, environment={"PATH": os.environ["PATH"]}) as crib:
        result = await crib.call("write-file-there", path=path)
        assert result.value != "written", result
        assert (await crib.call("write-file-there", path="docs/note.txt")).value == "written"
    after = {
        str(file): file.read_bytes() for file in root.rglob("*") if file.is_file() and ".toolcrib" not in str(file)
    }
    assert after == {**before, str(root / "docs/note.txt"): b"planted"}


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("tools", "node_modules/x/index.js"),
        ("tools", ".venv/bin/say"),
        ("lib/scripts", "lib/node_modules/x/index.js"),
        ("lib/scripts", "package.json"),
    ],
)
async def test_nothing_is_planted_that_a_program_finds_in_a_folder_around_its_own(tmp_path, folder, path):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "toolcrib.toml").write_text(f'scripts.folders = ["{folder}"]\n' if folder != "tools" else "")
    (tmp_path / folder / "say.js").write_text("// Say a word.\nconsole.log(require('x'));\n")
    (tmp_path / "tools").mkdir(exist_ok=True)
    (tmp_path / "tools" / "plant.py").write_text(PLANT.format(place=str(tmp_path / path)))
    async with Crib(tmp_path, environment={"PATH": os.environ["PATH"]}) as crib:
        assert (await crib.call("plant")).error is not None
        assert (await crib.call("write_file", path=path, content="planted")).error is not None
    assert not (tmp_path / path).is_file() or not (tmp_path / path).read_text()


@pytest.mark.parametrize(
    "path", [path for path in PLANTED if not path.startswith(".toolcrib")] + ["docs/toolcrib.toml"]
)
async def test_neither_can_the_built_in_file_tool(root, path):
    async with Crib(root, environment={}) as crib:
        result = await crib.call("write_file", path=path, content="planted")
        assert result.error is not None
        assert not (root / path).exists() or "planted" not in (root / path).read_text()


async def test_no_child_writes_to_a_workspace_inside_of_a_module(root):
    package = root / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mytools.py").write_text("")
    async with Crib(root, environment={}, workspace={"folder": "pkg"}, modules={"tools": ["pkg.mytools"]}) as crib:
        error = (await crib.call("write-file-there", path="mytools.py")).error
        assert error.kind is Kind.SANDBOX_UNAVAILABLE
        assert "set workspace.folder to one of its own" in error.message
        assert (package / "mytools.py").read_text() == ""


PEP_723 = """\
# /// script
# requires-python = ">=3.99"
# dependencies = []
# ///
"""


async def test_environments_that_a_project_brings_along_are_not_used(root):
    (root / ".ai/tools/files/later.py").write_text(
        PEP_723 + WRITE.replace("Write a file", "Need another Python for a file")
    )
    for name in ("HOME", "XDG_CACHE_HOME"):
        async with Crib(root, environment={name: str(root / "planted")}) as crib:
            assert crib._resources.get("environments") is None
            error = (await crib.call("later", path="x")).error
            assert error.kind is Kind.EXECUTOR_NOT_FOUND
            with pytest.raises(ToolError, match="there is no folder outside of the project"):
                crib.prepare("later")


def test_a_tree_of_scripts_that_is_a_link_out_of_the_project_holds_no_tools_of_it(root, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (root / ".ai").rename(outside / "ai")
    (root / ".ai").symlink_to(outside / "ai")
    assert Crib(root, environment={}).find("write-file-there") is None
