"""`crib init`: write a small project with a first tool and its test."""

from __future__ import annotations

from pathlib import Path

import click

from toolcrib.core.project_data import DATA_FOLDER
from toolcrib.infra.settings import FILE_NAME
from toolcrib.toolkit.cli.console import ExitCode, on_one_line, say
from toolcrib.toolkit.cli.new_files import explain_failure, report_file, write_files, write_new

SETTINGS = """\
# Settings of this project. `crib doctor` shows those in force and where each one is set.

# What tools may use; fs.* means the files of this project. The built-in fetch needs "net.http", shell needs "shell.execute".
# grants = ["fs.*"]

# How long a call may take if its tool does not say.
# timeout_ms = 30000

# Tools that cannot be called: by name, or "builtin/*" for all that come with Toolcrib.
# disabled = ["shell"]
"""

TOOL = '''\
"""A first tool. The function named like the file is the tool; its hints and its docstring are what a model is told."""


def greet(name: str, times: int = 1) -> str:
    """Greet a person by name.

    Args:
        name: Who is greeted.
        times: How many times.
    """
    return " ".join([f"Hello, {name}!"] * times)
'''

TEST = '''\
"""The test of tools/greet.py: the plain function, and the tool as an agent calls it."""

from pathlib import Path
from runpy import run_path

from toolcrib import Crib

PROJECT = Path(__file__).parent.parent


def test_greet_says_the_name_as_often_as_asked():
    greet = run_path(str(PROJECT / "tools" / "greet.py"))["greet"]
    assert greet("Ada", times=2) == "Hello, Ada! Hello, Ada!"


def test_an_agent_gets_the_greeting():
    with Crib(PROJECT) as crib:
        result = crib.call_sync("greet", name="Ada")
    assert result.value == "Hello, Ada!"


def test_an_agent_that_forgets_the_name_is_told():
    with Crib(PROJECT) as crib:
        result = crib.call_sync("greet")
    assert "name" in result.error.message
'''

FILES = {FILE_NAME: SETTINGS, "tools/greet.py": TOOL, "tests/test_greet.py": TEST}
IGNORED = f"{DATA_FOLDER}/"


@click.command("init")
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
def init(folder: str) -> int:
    """Write a project with a first tool and its test.

    Nothing that is there is overwritten.
    """
    return start_project(folder)


def start_project(folder: str) -> ExitCode:
    """`crib init [DIR]`: write what is not there yet, and say what to do next."""
    root = Path(folder)
    write_files(root, FILES)
    with explain_failure():
        report_file(".gitignore", written=_ignore(root / ".gitignore"))
    say("")
    say("Next:")
    if root.resolve() != Path.cwd():
        say(f"  cd {on_one_line(folder)}")
    say("  crib call greet name=Ada")
    say("  crib list")
    say("  pytest    (pip install pytest)")
    return ExitCode.DONE


def _ignore(path: Path) -> bool:
    """Keep our own data out of the repository; lines that are there stay."""
    if write_new(path, f"{IGNORED}\n"):
        return True
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    if IGNORED in (line.strip().removeprefix("/") for line in text.splitlines()):
        return False
    gap = "" if not text or text.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{gap}{IGNORED}\n")
    return True
