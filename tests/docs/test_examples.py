"""Every example that a reader sees is a file that runs, or a command whose output was compared."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from consoles import Shell, matches, steps_of
from toolcrib.core.plugins import Plugins
from toolcrib.infra.settings import load_settings
from toolcrib.interfaces.cli.program import cli
from warm_python import run_python

LANGUAGES = {"python", "javascript", "bash", "yaml", "json", "markdown", "console", "toml", "text", "sh", "mermaid"}
# Files of examples that no page shows whole: the tour, which runs by itself, and settings.
NOT_SHOWN = {
    "examples/demo.py",
    "examples/programs/toolcrib.toml",
    "examples/words/toolcrib.toml",
    "examples/folders/toolcrib.toml",
    "examples/auth/bundle.json",
    "examples/auth/toolcrib.toml",
    "examples/http/bundle.json",
    "examples/http/toolcrib.toml",
    "examples/sql/bundle.json",
    "examples/sql/toolcrib.toml",
    "examples/folders/tools/refund-order/doc.md",
    "examples/folders/tools/refund-order/doc_summary.md",
    "examples/folders/tools/refund-order/schema.json",
    "examples/requests/toolcrib.toml",
    "examples/client/toolcrib.toml",
    "examples/client/tools/show-folders/doc.md",
    "examples/client/tools/show-folders/doc_summary.md",
    "examples/client/tools/show-folders/schema.json",
    "examples/scripts/toolcrib.toml",
    "examples/scripts/lines.txt",
    "examples/scripts/.ai/tools/numbers/fibonacci.awk",
    "examples/scripts/.ai/tools/text/peek.py",
}
# Programs that something else runs: the settings of an example load it, another one imports it, or it is added or delivered.
MODULES = {
    "examples/server/dice.py",
    "examples/requests/made/slug_maker.py",
    "examples/tutorial/refund.py",
    "examples/tutorial/first_try/slug_maker.py",
    "examples/tutorial/scripted_model.py",
}


class Programs:
    """Runs the programs of console blocks with the Python of the tests."""

    def __init__(self) -> None:
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("TOOLCRIB_")}
        # Nobody decides while a command of a page waits for it.
        self.environment["TOOLCRIB_APPROVALS_WAIT_SECONDS"] = "1"

    def __call__(self, command: str, words: list[str], folder: Path) -> tuple[int, str]:
        if command == "pip":
            return 0, ""  # it is installed here; tests/walk_readme.py installs it for real
        # What a program logs depends on how busy the machine is; what it prints does not.
        stderr = subprocess.DEVNULL if command == "python" else subprocess.STDOUT
        assert command in {"python", "crib"}, f"nobody runs {command!r} here"
        return self.run(words if command == "python" else ["-m", "toolcrib", *words], folder, stderr=stderr)

    def run(self, words: list[str], folder: Path, *, stderr: int) -> tuple[int, str]:
        done = run_python(
            [sys.executable, *words],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        return done.returncode, done.stdout


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def shell(root, tmp_path, programs) -> Shell:
    ignored = shutil.ignore_patterns("__pycache__", ".toolcrib", "_core", "tool_registry.json", ".gitignore")
    shutil.copytree(root / "examples", tmp_path / "examples", ignore=ignored)
    return Shell(tmp_path, programs)


def install_plugin(root: Path, folder: Path) -> None:
    """Leave behind what pip would: the module, and a dist-info with the entry points of its pyproject.toml."""
    shutil.copy(root / "examples/plugin/crib_templates.py", folder)
    project = tomllib.loads((root / "examples/plugin/pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in points.items()) for group, points in groups]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def test_every_block_can_be_held_to_something(blocks):
    assert [str(block) for block in blocks if block.language not in LANGUAGES] == []
    # The reference shows signatures, which are read off the code.
    told = (block for block in blocks if block.language == "python" and block.page != "docs/reference.md")
    assert [str(block) for block in told if block.file is None] == []


def test_a_block_that_names_a_file_shows_that_file(blocks, root):
    named = (block for block in blocks if block.file is not None)
    assert [str(block) for block in named if (root / block.file).read_text(encoding="utf-8") != block.text] == []


def test_settings_that_a_page_shows_are_settings(blocks, tmp_path):
    shown = [block for block in blocks if block.language == "toml" and block.file is None]
    for block in shown:
        (tmp_path / "toolcrib.toml").write_text(block.text, encoding="utf-8")
        assert load_settings(tmp_path, {}, Plugins().tables()).places, str(block)
    assert shown


def test_a_shell_block_installs_or_names_a_target_of_the_makefile_or_a_command(blocks, root):
    targets = re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE)
    lines = [line.split()[:2] for block in blocks if block.language == "sh" for line in block.text.splitlines()]
    allowed = [
        ["pip", "install"],
        *(["make", target] for target in targets),
        *(["crib", name] for name in cli.list_commands(click.Context(cli))),
    ]
    assert [line for line in lines if line not in allowed] == []


def test_every_console_block_of_a_page_prints_what_it_shows(console, root, shell, programs, tmp_path_factory):
    for block in console:
        if "plugin" in block.words:
            site = tmp_path_factory.mktemp("site")
            install_plugin(root, site)
            programs.environment["PYTHONPATH"] = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
        for command, expected in steps_of(block.text):
            output = shell.run(command)
            assert matches(expected, output), f"{block}: {command}\n--- shown\n{expected}--- printed\n{output}"


def test_every_example_is_shown_on_a_page(blocks, root):
    shown = {block.file for block in blocks}
    files = {
        file.relative_to(root).as_posix()
        for file in (root / "examples").rglob("*")
        if file.is_file()
        and not {"__pycache__", ".toolcrib", "_core", "tool_registry.json", ".gitignore"} & set(file.parts)
    }
    assert files - shown == NOT_SHOWN


def test_every_program_that_is_shown_is_run(blocks):
    shown = {block.file for block in blocks if block.language == "python" and block.file}
    consoles = "".join(block.text for block in blocks if block.language == "console")
    programs = {file for file in shown if not {"tools", "tests", "plugin"} & set(Path(file).parts)} - MODULES
    assert {file for file in programs if file not in consoles} == set()


def test_the_tests_that_are_shown_pass(shell, programs):
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]
    _, printed = programs.run(words, shell.folder / "examples" / "folders", stderr=subprocess.STDOUT)
    assert "2 passed" in printed


def test_what_is_shown_and_what_is_printed_must_agree():
    assert matches("a\nb\n", "a\nb\n")
    assert matches("a …c\n", "a b c\n")
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert matches("a\n…\nd\n", "a\nd\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a …c\n", "a b\nc\n")
    assert not matches("", "a\n")
